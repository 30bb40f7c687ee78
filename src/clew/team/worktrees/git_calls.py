"""Safe git calls that write. They run in a git folder of Clew's own that shares only the objects with the user's
repository, so no hook, filter, merge driver or other setting of that repository can run a program. In the repository
itself only refs are written, with hooks disabled.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from clew.errors import SourceError
from clew.knowledge.git.run import SAFE_OPTIONS, GitFailed, git_environment, read_sha

WRITE_SECONDS = 300.0
MAX_OUTPUT = 64_000_000
NO_OBJECT = "0" * 40
SUBMODULE = "160000"
_NEEDED = (2, 38)
_ALWAYS = (
    *("-c", "commit.gpgSign=false"),
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
    *("-c", "advice.detachedHead=false"),
    *("-c", "core.attributesFile=/dev/null"),
    *("-c", "merge.renames=true"),
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class GitOutput:
    """The exit code of git, and its output."""

    code: int
    stdout: bytes

    def fields(self) -> list[bytes]:
        """The NUL-separated fields of the output."""
        return self.stdout.removesuffix(b"\0").split(b"\0") if self.stdout else []


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The author of commits."""

    name: str = "Clew"
    email: str = "clew@localhost"


@dataclass(frozen=True, slots=True, kw_only=True)
class GitFolder:
    """A git folder of Clew's own for one work tree. New objects go to `objects`, which belong to the user's
    repository."""

    gitdir: Path
    objects: Path
    work_tree: Path | None = None
    index: Path | None = None
    shallow: Path | None = None

    def run(
        self,
        arguments: Sequence[str],
        *,
        stdin: bytes = b"",
        codes: Sequence[int] = (0,),
        env: Mapping[str, str] | None = None,
    ) -> GitOutput:
        """Run git with this folder. Raises SourceError when git is missing or takes too long, GitFailed for an exit
        code that is not expected."""
        cwd = self.work_tree if self.work_tree is not None else self.gitdir
        return call_git(arguments, cwd=cwd, env={**self._environment(), **(env or {})}, stdin=stdin, codes=codes)

    def text(self, *arguments: str, stdin: bytes = b"") -> str:
        """The output of git as one stripped line."""
        return os.fsdecode(self.run(arguments, stdin=stdin).stdout).strip()

    def sha(self, *arguments: str, stdin: bytes = b"") -> str:
        """The object name that git prints. Raises SourceError for anything else."""
        return read_sha(self.run(arguments, stdin=stdin).stdout)

    def tree_of(self, commit: str) -> str:
        return self.sha("rev-parse", "--verify", f"{commit}^{{tree}}")

    def with_index(self, index: Path, work_tree: Path | None = None) -> GitFolder:
        return replace(self, index=index, work_tree=work_tree or self.work_tree)

    def _environment(self) -> dict[str, str]:
        own = {
            "GIT_DIR": str(self.gitdir),
            "GIT_OBJECT_DIRECTORY": str(self.objects),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "HOME": str(self.gitdir),
            "XDG_CONFIG_HOME": str(self.gitdir),
        }
        if self.work_tree is not None:
            own["GIT_WORK_TREE"] = str(self.work_tree)
        if self.index is not None:
            own["GIT_INDEX_FILE"] = str(self.index)
        if self.shallow is not None:
            own["GIT_SHALLOW_FILE"] = str(self.shallow)
        return own


def call_git(
    arguments: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    codes: Sequence[int] = (0,),
    seconds: float = WRITE_SECONDS,
) -> GitOutput:
    """Run git. Its error messages are only logged, because they may quote file contents. Raises SourceError and
    GitFailed."""
    command = ["git", *SAFE_OPTIONS, *_ALWAYS, *arguments]
    try:
        ran = subprocess.run(
            command,
            cwd=cwd,
            env={**git_environment(), **(env or {})},
            input=stdin,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SourceError("git", f"{arguments[0]} took over {seconds:.0f} s") from None
    except OSError as error:
        raise SourceError("git", f"cannot be started: {error.strerror}", hint="Install git") from None
    if ran.returncode not in codes:
        _log.debug("git %s: %s", arguments[0], ran.stderr.decode(errors="replace")[:2_000])
        raise GitFailed("git", f"{arguments[0]} ended with {ran.returncode}", hint="`git fsck` checks the repository")
    if len(ran.stdout) > MAX_OUTPUT:
        raise SourceError("git", f"{arguments[0]} answered with over {MAX_OUTPUT:,} bytes")
    return GitOutput(code=ran.returncode, stdout=ran.stdout)


def require_version() -> None:
    """Raise SourceError for a git without `merge-tree --write-tree`."""
    printed = call_git(["version"], cwd=Path("/")).stdout.decode(errors="replace")
    found = re.search(r"(\d+)\.(\d+)", printed)
    if found is None or (int(found[1]), int(found[2])) < _NEEDED:
        raise SourceError("git", f"{printed.strip()[:60]} is too old", hint="Install git 2.38 or newer")


def json_name(path: bytes) -> str:
    """A path as text that JSON can carry; bytes that are not UTF-8 are replaced."""
    return path.decode("utf-8", "replace")


def split_entries(output: GitOutput) -> Iterator[tuple[str, str, bytes]]:
    """Mode, object and path of each entry of `ls-tree -z -r` or `ls-files -z -s`."""
    for field in output.fields():
        about, _, path = field.partition(b"\t")
        parts = about.decode().split()
        yield parts[0], parts[2] if parts[1] in ("blob", "commit", "tree") else parts[1], path
