"""Asking git, so that nothing that a repository configures is run: no hooks, pagers, filters or helpers, no prompts, no
locks, nothing fetched, and never for longer than a limit."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryFile

from clew.errors import SourceError

TIMEOUT = 60.0
_CHUNK = 1 << 18
_SAFE = (
    "--no-pager",
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.quotePath=false"),
    *("-c", "log.showSignature=false"),
    *("-c", "log.showRoot=true"),
    *("-c", "diff.external="),
    *("-c", "protocol.allow=never"),
    "--literal-pathspecs",
)


class GitFailed(SourceError):
    """git ended with an error: what it said first."""


def run_git(root: Path, arguments: Sequence[str], *, timeout: float = TIMEOUT) -> bytes:
    """What git answers in a folder. Raises SourceError when git is missing, fails, or takes too long."""
    try:
        done = subprocess.run(
            ["git", *_SAFE, *arguments],
            cwd=root,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SourceError("git", f"{arguments[0]} took over {timeout:.0f} s") from None
    except OSError as error:
        raise SourceError("git", f"cannot be started: {error.strerror}", hint="Install git") from None
    if done.returncode:
        raise GitFailed("git", _first_line(done.stderr) or f"{arguments[0]} ended with {done.returncode}")
    return done.stdout


def stream_git(root: Path, arguments: Sequence[str], *, end: bytes = b"\0") -> Iterator[bytes]:
    """What git answers, piece by piece between `end`s, while it is still at work. git is stopped when the caller
    stops reading. Raises as `run_git`, without a limit of time."""
    with TemporaryFile() as said:
        try:
            process = subprocess.Popen(
                ["git", *_SAFE, *arguments],
                cwd=root,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
            )
        except OSError as error:
            raise SourceError("git", f"cannot be started: {error.strerror}", hint="Install git") from None
        with process:
            try:
                assert process.stdout is not None  # it was asked for above
                rest = b""
                while chunk := process.stdout.read(_CHUNK):
                    *pieces, rest = (rest + chunk).split(end)
                    yield from pieces
                if rest:
                    yield rest
            except GeneratorExit:
                process.kill()
                raise
        if process.returncode:
            said.seek(0)
            raise GitFailed("git", _first_line(said.read()) or f"{arguments[0]} ended with {process.returncode}")


def find_head(root: Path) -> str | None:
    """The commit that is checked out, or None: no repository, no commit yet, no git."""
    try:
        return run_git(root, ["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).decode().strip()
    except SourceError:
        return None


def folder_in_repository(root: Path) -> str:
    """Where a folder lies in its repository: empty at the top, else with a `/` at the end."""
    return run_git(root, ["rev-parse", "--show-prefix"]).decode(errors="replace").strip("\n")


def is_partial(root: Path) -> bool:
    """Whether a repository holds only a part of its contents, and would fetch the others."""
    try:
        return bool(run_git(root, ["config", "--get", "extensions.partialclone"]).strip())
    except GitFailed:
        return False


def _environment() -> dict[str, str]:
    """Our own, without what would send git elsewhere or have it ask."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**kept, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}


def _first_line(said: bytes) -> str:
    return next(iter(said.decode(errors="replace").strip().splitlines()), "")[:300]
