"""Groups of worker processes of one contender, and the time that they take for sessions of steps."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

from speed.processes import clean_environment
from speed.scale_stage import Engines, read_processor
from speed.step_contenders import Spent

PATIENCE = 180.0
LINE = 1 << 20


class Workers:
    """Processes that share the sessions given to them. Between measures they are stopped, so that they take no time
    from others."""

    def __init__(self, engines: Engines, processes: list[Process], errors: Path) -> None:
        self._engines = engines
        self._processes = processes
        self._errors = errors
        self._done: asyncio.Queue[str] = asyncio.Queue()
        self._reading = [asyncio.create_task(self._read(process)) for process in processes]

    async def _read(self, process: Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            self._done.put_nowait(json.loads(line)["done"])

    async def run(self, sessions: int, steps: int) -> Spent:
        """Run so many new sessions of so many steps. Returns the seconds, and those of the processor of all processes
        and of the server."""
        names = [str(uuid4()) for _ in range(sessions)]
        self._signal(signal.SIGCONT)
        busy, began = self._processor(), time.perf_counter()
        for at, process in enumerate(self._processes):
            assert process.stdin is not None
            order = {"sessions": names[at :: len(self._processes)], "steps": steps}
            process.stdin.write((json.dumps(order) + "\n").encode())
        left = set(names)
        try:
            async with asyncio.timeout(PATIENCE):
                while left:
                    left.discard(await self._done.get())
        except TimeoutError:
            raise RuntimeError(f"{len(left)} sessions did not end: {self._errors.read_text()[-2000:]}") from None
        spent = Spent(time.perf_counter() - began, self._processor() - busy)
        self._signal(signal.SIGSTOP)
        return spent

    def _processor(self) -> float:
        return self._engines.processor_seconds + sum(read_processor(each.pid) for each in self._processes)

    def _signal(self, number: signal.Signals) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, number)

    async def end(self) -> None:
        self._signal(signal.SIGCONT)
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.close()
        for process in self._processes:
            try:
                await asyncio.wait_for(process.wait(), 10.0)
            except TimeoutError:
                process.kill()
                await process.wait()
        await asyncio.gather(*self._reading, return_exceptions=True)


@contextlib.asynccontextmanager
async def working(
    name: str, engines: Engines, folder: Path, count: int, *, pause_ms: int = 0, concurrency: int = 32
) -> AsyncIterator[Workers]:
    """Processes of a contender on a database of their own, until the block ends."""
    url, errors = engines.make_database(), folder / f"{name}-{uuid4()}.errors"
    processes: list[Process] = []
    workers: Workers | None = None
    try:
        with errors.open("w") as sink:
            for _ in range(count):  # one by one: the first makes the tables
                processes.append(await _start(name, url, pause_ms, concurrency, sink))
                assert processes[-1].stdout is not None
                if not await processes[-1].stdout.readline():
                    raise RuntimeError(f"{name} does not start: {errors.read_text()[-2000:]}")
        workers = Workers(engines, processes, errors)
        yield workers
        await workers.end()
    finally:
        for process in processes:
            if process.returncode is None:
                process.kill()
                await process.wait()


async def _start(name: str, url: str, pause_ms: int, concurrency: int, errors: Any) -> Process:
    paths = filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")))
    environment = clean_environment({"PYTHONPATH": os.pathsep.join(paths)})
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "speed.scale_process", name, url, str(pause_ms), str(concurrency)),
        stdin=PIPE,
        stdout=PIPE,
        stderr=errors,
        env=environment,
        limit=LINE,
    )
