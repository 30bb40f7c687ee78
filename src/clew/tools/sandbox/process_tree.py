"""Runs one process tree to its end: feeds input, reads output, enforces limits, and kills all processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from clew.tools.sandbox.disk import DiskWatch
from clew.tools.sandbox.output_text import Mask, clean_text
from clew.tools.sandbox.program import Confinement, KilledBy, ProgramResult
from clew.tools.sandbox.wall import RuntimeCommand, SandboxLaunch

WATCH_SECONDS = 0.1
GRACE_SECONDS = 5.0
_CHUNK = 65_536
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_NO_HEAP = b"JavaScript heap out of memory"

T = TypeVar("T")
OnOutput = Callable[[str], Awaitable[None]]


class ResultPipe:
    """A pipe for the result, separate from the output. As a context manager it closes the open ends."""

    def __init__(self, *, is_wanted: bool) -> None:
        self._source, self.target = os.pipe() if is_wanted else (-1, -1)
        self.is_wanted = is_wanted
        self._transport: asyncio.ReadTransport | None = None

    def __enter__(self) -> ResultPipe:
        return self

    def __exit__(self, *_: object) -> None:
        self.hand_over()
        if self._source >= 0:
            os.close(self._source)
        if self._transport is not None:
            self._transport.close()

    def hand_over(self) -> None:
        """Close the program's end in this process after the start, so that the reader sees the end of the pipe."""
        if self.target >= 0:
            os.close(self.target)
            self.target = -1

    async def open(self) -> asyncio.StreamReader:
        reader = asyncio.StreamReader()
        source = os.fdopen(self._source, "rb", buffering=0)
        self._source = -1
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
        return reader


async def execute(
    command: RuntimeCommand,
    launch: SandboxLaunch,
    confinement: Confinement,
    *,
    results: ResultPipe,
    on_output: OnOutput | None = None,
    running: list[int],
    writes: tuple[str, ...] = (),
) -> ProgramResult:
    """Start the command and wait for its end. No process is left when this returns or is cancelled.

    `running` has its process id while it runs. `writes` are the writable folders.
    """
    started = time.perf_counter()
    disk = DiskWatch((*writes, *launch.own), confinement.disk_mb * 1024 * 1024)
    process = await asyncio.create_subprocess_exec(
        *launch.argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(launch.env),
        cwd="/",
        pass_fds=(*launch.fds, results.target) if results.is_wanted else launch.fds,
        start_new_session=True,
    )
    results.hand_over()
    running.append(process.pid)
    try:
        run = _RunningProcess(process, command, launch, confinement, on_output, disk)
        killed_by = await run.until_its_end(results)
    finally:
        running.remove(process.pid)
    return run.as_result(killed_by, time.perf_counter() - started)


class _RunningProcess:
    """A process with its output so far."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        command: RuntimeCommand,
        launch: SandboxLaunch,
        confinement: Confinement,
        on_output: OnOutput | None,
        disk: DiskWatch,
    ) -> None:
        self._process = process
        self._command = command
        self._launch = launch
        self._confinement = confinement
        self._on_output = on_output
        self._mask = Mask(confinement.secrets.values())
        self._out, self._err, self._result = bytearray(), bytearray(), bytearray()
        self._is_too_much = False
        self._disk = disk

    async def until_its_end(self, results: ResultPipe) -> KilledBy | None:
        work = asyncio.create_task(self._work(results))
        watch = asyncio.create_task(self._watch())
        try:
            await asyncio.wait({work, watch}, timeout=self._confinement.seconds, return_when=asyncio.FIRST_COMPLETED)
            killed_by = self._judge(work, watch)
        finally:
            self._kill()
            watch.cancel()
            await asyncio.wait({work, watch}, timeout=GRACE_SECONDS)  # read the output from before the end
            work.cancel()
            await self._drain()
        return killed_by

    def _judge(self, work: asyncio.Task[None], watch: asyncio.Task[KilledBy]) -> KilledBy | None:
        if work.done():
            work.result()
            return "output" if self._is_too_much else None
        return watch.result() if watch.done() else "timeout"

    async def _work(self, results: ResultPipe) -> None:
        process, limit = self._process, self._confinement.output_bytes
        # a result line on stdout does not count against the output limit
        room = limit * 2 if self._command.marker else limit
        readers = [
            self._read(_required(process.stdout), self._out, room),
            self._read(_required(process.stderr), self._err, limit),
        ]
        if results.is_wanted:
            readers.append(self._read(await results.open(), self._result, limit, tells=False))
        tasks = [asyncio.create_task(each) for each in (self._feed(), *readers, self._end_group())]
        try:
            await asyncio.gather(*tasks)
        finally:
            for each in tasks:
                each.cancel()

    async def _end_group(self) -> None:
        """Kill the rest of the process group, which could keep the pipes open. Waiting for the process would also wait
        for the pipes."""
        if self._launch.is_tree:
            return
        while self._process.returncode is None:  # noqa: ASYNC110 - see above
            await asyncio.sleep(WATCH_SECONDS / 4)
        self._kill()

    async def _drain(self) -> None:
        """Read the pipes to their ends, because asyncio reports the end of a process only then."""
        for stream in (self._process.stdout, self._process.stderr):
            while await _required(stream).read(_CHUNK):
                pass
        await self._process.wait()

    async def _feed(self) -> None:
        stdin = _required(self._process.stdin)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the program does not have to read its input
            stdin.write(self._command.stdin)
            await stdin.drain()
        stdin.close()

    async def _read(self, stream: asyncio.StreamReader, into: bytearray, limit: int, *, tells: bool = True) -> None:
        told = 0
        while chunk := await stream.read(_CHUNK):
            if len(into) + len(chunk) > limit:
                self._is_too_much = True
                self._kill()
            into += chunk[: limit - len(into)]
            if tells and self._on_output is not None and (upto := into.rfind(b"\n") + 1) > told:
                await self._pass_on(bytes(into[told:upto]))
                told = upto
        if tells and self._on_output is not None and told < len(into):
            await self._pass_on(bytes(into[told:]))

    async def _pass_on(self, lines: bytes) -> None:
        if (marker := self._command.marker.strip()) and marker in lines:
            lines = lines.partition(marker)[0].removesuffix(b"\n")
        if text := self._mask.text(clean_text(lines)):
            await _required(self._on_output)(text)

    async def _watch(self) -> KilledBy:
        """Return when the tree exceeds a limit of memory or disk, or the kernel killed a process because of it."""
        limit = self._confinement.memory_mb * 1024 * 1024
        while not (self._is_starved() or _uses_more(self._process.pid, limit)):
            if self._disk.is_due() and await asyncio.to_thread(self._disk.is_over, _tree(self._process.pid)):
                return "disk"
            await asyncio.sleep(WATCH_SECONDS)
        return "memory"

    def _is_starved(self) -> bool:
        return self._launch.cgroup is not None and self._launch.cgroup.was_out_of_memory()

    def _kill(self) -> None:
        if self._launch.is_tree and self._process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def as_result(self, killed_by: KilledBy | None, seconds: float) -> ProgramResult:
        out, result = bytes(self._out), bytes(self._result)
        if self._command.marker:
            out, _, result = out.partition(self._command.marker)
        code = self._process.returncode or 0
        if killed_by is None and (self._is_starved() or (code and _NO_HEAP in self._err)):
            killed_by = "memory"
        show = self._mask.text
        return ProgramResult(
            code=code,
            stdout=show(clean_text(out)),
            stderr=show(clean_text(bytes(self._err))),
            seconds=seconds,
            killed_by=killed_by,
            result=result,
        )


def _required(value: T | None) -> T:
    """Return a stream that exists because the process was started with it."""
    assert value is not None
    return value


def _uses_more(root: int, limit: int) -> bool:
    """Whether a process tree uses more bytes of memory than the limit. Shared pages count once."""
    pids = _tree(root)
    return sum(map(_resident, pids)) > limit and sum(map(_proportional, pids)) > limit


def _tree(root: int) -> list[int]:
    found, waiting = [], [root]
    while waiting:
        found.append(pid := waiting.pop())
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):
                waiting += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
    return found


def _resident(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{pid}/statm").read_text().split()
        return (int(fields[1]) - int(fields[2])) * _PAGE
    return 0


def _proportional(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss_Anon:"):
                return int(line.split()[1]) * 1024
    return _resident(pid)
