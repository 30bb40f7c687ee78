"""Names that decide what becomes of a file: kept out of sight because it holds secrets, or kept as it is because it
makes programs run.

Capitals make no difference: some file systems know none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection

from clew.secrecy import is_secret_file

DENIED_NAMES = frozenset(
    {
        *(".env", ".envrc", ".ssh", ".aws", ".gnupg", ".clew", ".netrc", ".git-credentials"),
        *(".npmrc", ".pypirc", ".pgpass"),
    }
)
"""Never given to a program, wherever they lie. Outside of libraries, all that `is_secret_file` names is not either."""
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
"""Files that make programs run when a user opens the folder, enters it, or uses git there. Programs in a sandbox
neither change nor make them; a `*` stands for any beginning. What runs only when somebody asks for it (a Makefile) or
elsewhere (`.github/workflows`) is not meant."""
GIT_NAME = ".git"
GIT_GUARDED = frozenset({"config", "config.worktree", "hooks", "info", "commondir", "gitdir"})
"""The parts of a repository that can make git run programs. Commits need the others: objects, refs, index, HEAD."""
GIT_DATA = frozenset({"objects", "refs", "logs", "lfs", "rr-cache"})
"""Large parts of a repository in which nothing is looked for."""
LIBRARIES = frozenset({"node_modules", "site-packages", "dist-packages"})
"""Folders of code of others: certificates and modules called `credentials` are theirs to read."""

_ENV_FILE = re.compile(r"\.env\.(?!example$|sample$|template$|dist$)")


def is_denied_name(name: str) -> bool:
    """Whether a file or folder of this name is never given to a program."""
    return is_denied_in_library(name) or is_secret_file(name)


def is_denied_in_library(name: str) -> bool:
    """As `is_denied_name`, for what lies in a folder of libraries."""
    folded = name.casefold()
    return folded in DENIED_NAMES or _ENV_FILE.match(folded) is not None


def is_guarded_name(name: str) -> bool:
    """Whether a file or folder of this name stays as it is, or is not made, while a program runs."""
    folded = name.casefold()
    return folded in GUARDED_NAMES or f"*{os.path.splitext(folded)[1]}" in GUARDED_NAMES


def is_repository(name: str, names: Collection[str]) -> bool:
    """Whether a folder of this name, with these names in it, is where git keeps a repository: with its files beside
    it, without any, or for a second set of files."""
    if name.casefold() == GIT_NAME:
        return True
    return "HEAD" in names and (("objects" in names and "refs" in names) or "commondir" in names)
