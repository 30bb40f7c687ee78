"""Runs programs on this machine, each in its own process group: streams the output, enforces limits of time and output,
and leaves no process behind.

There is no isolation here. Programs that need it run in a sandbox.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import secrets
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from clew.errors import InvalidInput
from clew.tools.sandbox.output_text import clean_text
from clew.tools.sandbox.program import KilledBy
from clew.tools.sandbox.wall import UNCOMPILED

OnOutput = Callable[[str], Awaitable[None]]
"""Receives the output of a running program, as text that is safe to show."""

PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "VIRTUAL_ENV")
"""Environment variables that a program gets. None of them holds a key."""
QUIET = {"TERM": "dumb", "NO_COLOR": "1", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}
MARK = "CLEW_PROCESS"
"""An environment variable that marks a program and all its descendants."""

_FLOOD = 64
"""A program is killed when it prints more than this multiple of the output limit."""
_CHUNK = 65_536
_PIECE = 4_096
_ROUNDS = 400
_DRAIN_SECONDS = 2.0
"""Seconds to wait for output after a program has ended, if others keep it open."""


class ProcessResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a process. Long output has its beginning and its end, with a line about the omitted part between
    them."""

    code: int
    stdout: bytes
    stderr: bytes
    seconds: float
    killed_by: KilledBy | None = None


def safe_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of an environment that a program gets."""
    return {**{name: environ[name] for name in PASSED_ON if name in environ}, **QUIET, **UNCOMPILED}


async def run_process(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | None = None,
    stdin: bytes = b"",
    seconds: float = 60.0,
    output_bytes: int = 1_000_000,
    on_output: OnOutput | None = None,
) -> ProcessResult:
    """Run a program to its end, or kill it at the limit of time or output. All its descendants are dead before this
    returns, even after cancellation. Raises InvalidInput if the program cannot start."""
    mark = secrets.token_hex(16)
    started = time.monotonic()
    process = await _start_whole(argv, {**env, MARK: mark}, cwd, mark, has_input=bool(stdin))
    out, err = BoundedOutput(output_bytes), BoundedOutput(output_bytes)
    readers = {
        asyncio.create_task(_feed(process, stdin)),
        asyncio.create_task(_read(process.stdout, out, on_output)),
        asyncio.create_task(_read(process.stderr, err, on_output)),
    }
    try:
        killed_by = await _wait(process, readers, seconds)
    finally:
        # shielded, so that a second cancellation leaves no process behind
        await asyncio.shield(asyncio.create_task(_end(process, mark, readers)))
    return ProcessResult(
        code=process.code,
        stdout=out.content(),
        stderr=err.content(),
        seconds=round(time.monotonic() - started, 3),
        killed_by=killed_by,
    )


class BoundedOutput:
    """The beginning and the end of a stream, within a limit of bytes."""

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, chunk: bytes) -> None:
        room = self._half - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:] if room > 0 else chunk
        if (extra := len(self._tail) - self._half) > 0:
            del self._tail[:extra]
            self._left_out += extra

    @property
    def is_flooded(self) -> bool:
        return self._left_out > _FLOOD * 2 * self._half

    def content(self) -> bytes:
        note = b"\n[... %d bytes left out ...]\n" % self._left_out if self._left_out else b""
        return bytes(self._head) + note + bytes(self._tail)


class _Flooded(Exception):
    pass


class _Protocol(asyncio.subprocess.SubprocessStreamProtocol):
    """Reports the end of the process itself, even if others keep its output open."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=_CHUNK, loop=loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        self.exited.set()
        super().process_exited()


class _Process:
    """A process with its streams."""

    def __init__(self, transport: asyncio.SubprocessTransport, protocol: _Protocol) -> None:
        self._transport = transport
        self.pid = transport.get_pid()
        self.exited = protocol.exited
        self.stdin, self.stdout, self.stderr = protocol.stdin, protocol.stdout, protocol.stderr

    @property
    def code(self) -> int:
        code = self._transport.get_returncode()
        return code if code is not None else -signal.SIGKILL

    def close(self) -> None:
        self._transport.close()


async def _start_whole(
    argv: Sequence[str], env: Mapping[str, str], cwd: str | None, mark: str, *, has_input: bool
) -> _Process:
    """Start a process. A cancellation before the event loop has its pipes kills the process and its descendants."""
    starting = asyncio.create_task(_start(argv, env, cwd, has_input=has_input))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.shield(asyncio.create_task(_abandon(starting, mark)))
        raise


async def _abandon(starting: asyncio.Task[_Process], mark: str) -> None:
    with contextlib.suppress(InvalidInput):
        await _end(await starting, mark, ())


async def _start(argv: Sequence[str], env: Mapping[str, str], cwd: str | None, *, has_input: bool) -> _Process:
    loop = asyncio.get_running_loop()
    try:
        transport, protocol = await loop.subprocess_exec(
            lambda: _Protocol(loop),
            *argv,
            stdin=asyncio.subprocess.PIPE if has_input else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=cwd,
            env=dict(env),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidInput("command", f"cannot start ({reason})") from None
    return _Process(transport, protocol)


async def _wait(process: _Process, readers: Collection[asyncio.Task[None]], seconds: float) -> KilledBy | None:
    """Wait for the process itself, not for its background processes."""
    exit = asyncio.create_task(process.exited.wait())
    watched: set[asyncio.Task[Any]] = {exit, *readers}
    try:
        async with asyncio.timeout(seconds):
            while not exit.done():
                done, watched = await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
                for each in done:
                    each.result()
    except TimeoutError:
        return "timeout"
    except _Flooded:
        return "output"
    finally:
        exit.cancel()
    return None


async def _end(process: _Process, mark: str, readers: Collection[asyncio.Task[None]]) -> None:
    """Kill the rest of the group and all descendants, and read the remaining output."""
    _kill_group(process.pid)
    await asyncio.to_thread(_kill_marked, mark)
    await process.exited.wait()
    if readers:
        await asyncio.wait(readers, timeout=_DRAIN_SECONDS)
    for each in readers:
        each.cancel()
    await asyncio.gather(*readers, return_exceptions=True)
    process.close()


def _kill_group(leader: int) -> None:
    # SIGKILL at once: a program with time to clean up also has time to go on.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            os.kill(leader, signal.SIGTERM)
        else:
            os.killpg(leader, signal.SIGKILL)


def _kill_marked(mark: str) -> None:
    """Kill descendants that left the group, which the inherited variable identifies. Repeats until there are none,
    because one may have started another."""
    needle = f"{MARK}={mark}".encode()
    for _ in range(_ROUNDS):
        found = [int(name) for name in _running() if needle in _environment_of(name)]
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)  # runs in a thread; killed processes keep their variable until they are gone


def _running() -> list[str]:
    try:
        return [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _environment_of(pid: str) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:
        return b""


async def _feed(process: _Process, content: bytes) -> None:
    if process.stdin is None:
        return
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(content)
        await process.stdin.drain()
    process.stdin.close()


async def _read(stream: asyncio.StreamReader | None, kept: BoundedOutput, on_output: OnOutput | None) -> None:
    assert stream is not None
    pieces = OutputPieces()
    while chunk := await stream.read(_CHUNK):
        kept.add(chunk)
        if kept.is_flooded:
            raise _Flooded
        if on_output is not None and (text := pieces.add(chunk)):
            await on_output(text)
    if on_output is not None and (text := pieces.rest()):
        await on_output(text)


class OutputPieces:
    """Converts output to lines that are safe to show. A line without an end comes in parts."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._waiting = ""

    def add(self, chunk: bytes) -> str:
        """Add bytes, and return the text that is ready to be shown; may be empty."""
        self._waiting += self._decoder.decode(chunk)
        end = self._waiting.rfind("\n") + 1 or (len(self._waiting) if len(self._waiting) > _PIECE else 0)
        ready, self._waiting = self._waiting[:end], self._waiting[end:]
        return clean_text(ready.encode(errors="replace"))

    def rest(self) -> str:
        ready, self._waiting = self._waiting + self._decoder.decode(b"", True), ""
        return clean_text(ready.encode(errors="replace"))
