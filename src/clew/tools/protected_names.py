"""Names of protected files: hidden because they hold secrets, or read-only because they make programs run.

Names are case-insensitive, because some file systems are.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from clew.lazy_pattern import lazy_pattern
from clew.secrecy import is_secret_file

DENIED_NAMES = frozenset(
    {
        *(".env", ".envrc", ".ssh", ".aws", ".gnupg", ".clew", ".netrc", ".git-credentials"),
        *(".npmrc", ".pypirc", ".pgpass"),
    }
)
"""Names that no program can reach, at any depth. Outside libraries, the names of `is_secret_file` are hidden too."""
GUARDED_NAMES = frozenset(
    {
        *(".clew", ".mcp.json", ".claude", ".codex", ".cursor", ".gemini", ".windsurf"),  # agents
        *(".opencode", "opencode.json", "opencode.jsonc", ".kiro", ".roo", ".continue", ".aider.conf.yml"),
        *(".vscode", "*.code-workspace", ".idea", ".zed", ".fleet", ".helix"),  # editors
        *(".devcontainer", ".devcontainer.json", ".dir-locals.el", ".dir-locals-2.el"),
        *(".vim", ".exrc", ".nvimrc", ".nvim.lua"),
        *(".envrc", "mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml"),  # shells
        *(".husky", ".githooks"),  # git
    }
)
"""Files that make programs run when a user opens the folder, enters it, or uses git there. Programs in a sandbox can
neither change nor create them. A `*` matches any beginning. Files that run only on request (a Makefile) or elsewhere
(`.github/workflows`) do not count."""
GIT_NAME = ".git"
GIT_GUARDED = frozenset({"config", "config.worktree", "hooks", "info", "commondir", "gitdir"})
"""The parts of a repository that can make git run programs. Commits need the others: objects, refs, index, HEAD."""
GIT_DATA = frozenset({"objects", "refs", "logs", "lfs", "rr-cache"})
"""Large parts of a repository that the scan skips."""
LIBRARIES = frozenset({"node_modules", "site-packages", "dist-packages"})
"""Folders of installed libraries, which contain readable certificates and modules called `credentials`."""

_ENV_FILE = lazy_pattern(r"\.env\.(?!example$|sample$|template$|dist$)")


def is_denied_name(name: str) -> bool:
    """Whether programs can never reach a file or folder of this name."""
    return is_denied_in_library(name) or is_secret_file(name)


def is_denied_in_library(name: str) -> bool:
    """Like `is_denied_name`, for files in a folder of libraries."""
    folded = name.casefold()
    return folded in DENIED_NAMES or _ENV_FILE.match(folded) is not None


def is_guarded_name(name: str) -> bool:
    """Whether programs can neither change nor create a file or folder of this name."""
    folded = name.casefold()
    return folded in GUARDED_NAMES or f"*{os.path.splitext(folded)[1]}" in GUARDED_NAMES


def is_repository(name: str, names: Collection[str]) -> bool:
    """Whether a folder of this name with these entries is a git repository: a `.git` folder, a bare repository, or the
    data of a work tree."""
    if name.casefold() == GIT_NAME:
        return True
    return "HEAD" in names and (("objects" in names and "refs" in names) or "commondir" in names)
