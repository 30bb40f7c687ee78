"""Asking git, so that nothing that a repository configures is run: no hooks, pagers, filters or helpers, no prompts, no
locks, nothing fetched, and never for longer than a limit. Its complaints are not passed on: they may quote files."""

from __future__ import annotations

import os
import re
import selectors
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from clew.errors import SourceError

TIMEOUT = 60.0
QUICK_SECONDS = 10.0
"""What a question takes at most whose answer lies ready: git waits for something else then, such as a pipe that was put
in the place of a file of settings."""
REMEMBERED_SECONDS = 300.0
"""So long what git did not answer is not asked again in a folder."""
MAX_ANSWER = 64_000_000
MAX_PIECE = 1_000_000
"""Bytes of a piece that are passed on; a message may have any length."""
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
    *("-c", "protocol.allow=never"),
    *("-c", "credential.helper="),
    *("-c", "core.askPass="),
    *("-c", "core.sshCommand=false"),
    "--literal-pathspecs",
)
_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_stuck: dict[tuple[str, str], float] = {}
"""Until when a command is not asked in a folder, by the two; none is where the name is empty."""


class GitFailed(SourceError):
    """git ended with an error."""


class Workplace(NamedTuple):
    """Where git is started, if not in the folder that is asked about, and with what in its environment besides."""

    folder: str
    environment: Mapping[str, str]


def start_git(root: str | Path, arguments: Sequence[str], place: Workplace | None = None) -> subprocess.Popen[bytes]:
    """git at work on a folder. Raises SourceError when it is missing, and when it did not answer there lately."""
    if is_stuck(root, arguments[0]):
        raise SourceError("git", f"{arguments[0]} did not answer lately in {root}", hint="Look for pipes in its place")
    try:
        return subprocess.Popen(
            ["git", *_SAFE, *arguments],
            cwd=place.folder if place else root,
            env=_environment() | dict(place.environment if place else {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError as error:
        raise SourceError("git", f"cannot be started: {error.strerror}", hint="Install git") from None


def is_stuck(root: str | Path, command: str) -> bool:
    """Whether a command of git did not answer in a folder lately."""
    return max(_stuck.get((str(root), known), 0.0) for known in ("", command)) > time.monotonic()


def note_stuck(root: str | Path, command: str) -> None:
    """Remember that a command did not answer in a folder. Where it is a quick one, no other is asked there either."""
    _stuck[str(root), "" if command in _QUICK else command] = time.monotonic() + REMEMBERED_SECONDS


def run_git(
    root: Path, arguments: Sequence[str], *, timeout: float | None = None, place: Workplace | None = None
) -> bytes:
    """What git answers in a folder. Raises SourceError when git is missing, fails, takes too long or says too much."""
    is_quick = arguments[0] in _QUICK
    seconds = timeout or (QUICK_SECONDS if is_quick else TIMEOUT)
    with start_git(root, arguments, place) as process:
        try:
            answer = _read_all(process, arguments[0], seconds)
        except (TimeoutError, subprocess.TimeoutExpired):
            process.kill()
            if is_quick:
                note_stuck(root, arguments[0])
            raise SourceError("git", f"{arguments[0]} took over {seconds:.0f} s") from None
        except BaseException:
            process.kill()
            raise
    _check(process, arguments[0])
    return answer


def stream_git(root: Path, arguments: Sequence[str], *, place: Workplace | None = None) -> Iterator[bytes]:
    """What git answers, piece by piece between NULs, while it is still at work; the beginning of what is over
    MAX_PIECE. git is stopped when the caller stops reading. Raises as `run_git`; the limit is on how long no piece
    comes."""
    with start_git(root, arguments, place) as process:
        try:
            yield from _pieces(process)
        except TimeoutError:
            process.kill()
            note_stuck(root, arguments[0])
            raise SourceError("git", f"{arguments[0]} said nothing for {TIMEOUT:.0f} s") from None
        except BaseException:
            process.kill()
            raise
    _check(process, arguments[0])


def _read_all(process: subprocess.Popen[bytes], command: str, seconds: float) -> bytes:
    """All that a process prints. Raises TimeoutError, TimeoutExpired, SourceError."""
    end, parts, size = time.monotonic() + seconds, list[bytes](), 0
    for chunk in _chunks(process, seconds):
        parts.append(chunk)
        size += len(chunk)
        if size > MAX_ANSWER:
            raise SourceError("git", f"{command} answered with over {MAX_ANSWER:,} bytes")
        if time.monotonic() > end:
            raise TimeoutError
    process.wait(max(0.1, end - time.monotonic()))
    return b"".join(parts)


def _pieces(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """What stands between NULs. Raises TimeoutError when none ends for too long."""
    begun, since = bytearray(), time.monotonic()
    for chunk in _chunks(process, TIMEOUT):
        *ended, rest = chunk.split(b"\0")
        for piece in ended:
            yield bytes(begun + piece[: MAX_PIECE - len(begun)])
            begun.clear()
        since = time.monotonic() if ended else since
        begun += rest[: MAX_PIECE - len(begun)]
        if time.monotonic() - since > TIMEOUT:
            raise TimeoutError
    if begun:
        yield bytes(begun)


def _chunks(process: subprocess.Popen[bytes], seconds: float) -> Iterator[bytes]:
    """What a process prints, as it comes. Raises TimeoutError when nothing comes for so long."""
    assert process.stdout is not None  # it was asked for
    printed = process.stdout.fileno()
    with selectors.DefaultSelector() as waiting:
        waiting.register(printed, selectors.EVENT_READ)
        while waiting.select(seconds):
            chunk = os.read(printed, _CHUNK)
            if not chunk:
                return
            yield chunk
    raise TimeoutError


def _check(process: subprocess.Popen[bytes], command: str) -> None:
    if process.returncode:
        hint = "`git fsck` tells whether the repository is whole"
        raise GitFailed("git", f"{command} ended with {process.returncode}", hint=hint)


def read_sha(printed: bytes) -> str:
    """The name of a commit that git printed. Raises SourceError when it is none."""
    sha = printed.decode(errors="replace").strip()
    if not _SHA.fullmatch(sha):
        raise SourceError("git", "did not print the name of a commit")
    return sha


def read_folder(root: Path, *arguments: str) -> Path:
    """A folder of a repository that git prints for a question. Raises SourceError."""
    printed = run_git(root, ["rev-parse", *arguments]).removesuffix(b"\n")
    if not printed or len(printed) > 4_096 or b"\0" in printed:
        raise SourceError("git", "did not print the name of a folder")
    return Path(root, os.fsdecode(printed))


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
