"""Asking git, so that nothing that a repository configures is run: no hooks, pagers, filters or helpers, no prompts, no
locks, nothing fetched, and never for longer than a limit."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from clew.errors import SourceError

TIMEOUT = 60.0
QUICK_SECONDS = 10.0
"""What a question takes at most whose answer lies ready: git waits for something else then, such as a pipe that was put
in the place of a file of settings."""
REMEMBERED_SECONDS = 300.0
"""So long what git did not answer is not asked again in a folder."""
_CHUNK = 1 << 18
_QUICK = ("rev-parse", "config")
_SAFE = (
    "--no-pager",
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.quotePath=false"),
    *("-c", "log.showSignature=false"),
    *("-c", "log.showRoot=true"),
    *("-c", "log.mailmap=false"),
    *("-c", "diff.external="),
    *("-c", "diff.orderFile=/dev/null"),
    *("-c", "blame.ignoreRevsFile="),
    *("-c", "protocol.allow=never"),
    *("-c", "credential.helper="),
    *("-c", "core.askPass="),
    *("-c", "core.sshCommand=false"),
    "--literal-pathspecs",
)
_stuck: dict[tuple[str, str], float] = {}
"""Until when a command is not asked in a folder, by the two; none is where the name is empty."""


class GitFailed(SourceError):
    """git ended with an error: what it said first."""


def start_git(root: str | Path, arguments: Sequence[str], *, errors: IO[bytes] | int) -> subprocess.Popen[bytes]:
    """git at work in a folder; `errors` is where it complains. Raises SourceError when it is missing, and when it did
    not answer there lately."""
    if is_stuck(root, arguments[0]):
        raise SourceError("git", f"{arguments[0]} did not answer lately in {root}", hint="Look for pipes in its place")
    try:
        return subprocess.Popen(
            ["git", *_SAFE, *arguments],
            cwd=root,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
    except OSError as error:
        raise SourceError("git", f"cannot be started: {error.strerror}", hint="Install git") from None


def is_stuck(root: str | Path, command: str) -> bool:
    """Whether a command of git did not answer in a folder lately."""
    return max(_stuck.get((str(root), known), 0.0) for known in ("", command)) > time.monotonic()


def note_stuck(root: str | Path, command: str) -> None:
    """Remember that a command did not answer in a folder. Where it is a quick one, no other is asked there either."""
    _stuck[str(root), "" if command in _QUICK else command] = time.monotonic() + REMEMBERED_SECONDS


def run_git(root: Path, arguments: Sequence[str], *, timeout: float | None = None) -> bytes:
    """What git answers in a folder. Raises SourceError when git is missing, fails, or takes too long."""
    timeout = timeout or (QUICK_SECONDS if arguments[0] in _QUICK else TIMEOUT)
    with start_git(root, arguments, errors=subprocess.PIPE) as process:
        try:
            answer, complaint = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            if arguments[0] in _QUICK:
                note_stuck(root, arguments[0])
            raise SourceError("git", f"{arguments[0]} took over {timeout:.0f} s") from None
        except BaseException:
            process.kill()
            raise
    _check(process, arguments, complaint)
    return answer


def stream_git(root: Path, arguments: Sequence[str], *, end: bytes = b"\0") -> Iterator[bytes]:
    """What git answers, piece by piece between `end`s, while it is still at work. git is stopped when the caller
    stops reading. Raises as `run_git`; the limit is on how long nothing comes."""
    with TemporaryFile() as said:
        with start_git(root, arguments, errors=said) as process:
            try:
                yield from _pieces(process, end)
            except TimeoutError:
                process.kill()
                note_stuck(root, arguments[0])
                raise SourceError("git", f"{arguments[0]} said nothing for {TIMEOUT:.0f} s") from None
            except BaseException:
                process.kill()
                raise
        said.seek(0)
        _check(process, arguments, said.read())


def _pieces(process: subprocess.Popen[bytes], end: bytes) -> Iterator[bytes]:
    rest = b""
    for chunk in _chunks(process):
        *pieces, rest = (rest + chunk).split(end)
        yield from pieces
    if rest:
        yield rest


def _chunks(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """What a process prints, as it comes. Raises TimeoutError when nothing comes for too long."""
    assert process.stdout is not None  # it was asked for
    printed = process.stdout.fileno()
    with selectors.DefaultSelector() as waiting:
        waiting.register(printed, selectors.EVENT_READ)
        while waiting.select(TIMEOUT):
            chunk = os.read(printed, _CHUNK)
            if not chunk:
                return
            yield chunk
    raise TimeoutError


def _check(process: subprocess.Popen[bytes], arguments: Sequence[str], complaint: bytes) -> None:
    if process.returncode:
        raise GitFailed("git", _first_line(complaint) or f"{arguments[0]} ended with {process.returncode}")


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
    """Our own, without what would send git elsewhere or have it ask. What is said here holds against all settings of a
    repository: no protocol is spoken, whichever it allows."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {
        **kept,
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }


def _first_line(said: bytes) -> str:
    return next(iter(said.decode(errors="replace").strip().splitlines()), "")[:300]
