"""Parsing in processes of their own: on all cores, and so that a file which brings a parser down takes only its worker
with it. Workers are plain programs that read requests and end with their input, so none outlives who started it."""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import IO, Any, NamedTuple

import msgspec

from clew.knowledge.code.facts import FileFacts
from clew.knowledge.code.rows import Parsed, encode_facts

WORKERS = 2
POOL_FROM = 64
"""With fewer files to parse, starting other processes takes longer than parsing here."""
BATCH, IN_FLIGHT = 32, 4
"""How many files are parsed and written together, and how many such batches may be under way."""
BATCH_SECONDS = 60.0
RARELY = 100_000
"""What parsers make has few cycles: looking for them seldom saves much time."""
_START = "from clew.knowledge.code.pool import serve; serve()"
_LENGTH = 8


class Job(NamedTuple):
    """A content to be parsed: into facts and words, or into the summary of its flow."""

    body: bytes
    language: str
    is_flow: bool = False


_encoder = msgspec.msgpack.Encoder()
_jobs = msgspec.msgpack.Decoder(list[Job])
_results = msgspec.msgpack.Decoder(list[Parsed])


class Pool:
    """Workers that are started with the first batch. Close it when the last batch is done."""

    def __init__(self, workers: int = WORKERS, seconds: float = BATCH_SECONDS) -> None:
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="clew-parsing")
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        self._all: list[_Worker] = []

    def submit(self, jobs: Sequence[Job]) -> Future[list[Parsed]]:
        """What is kept of each content, in the same order; facts with an error for one that no worker survives."""
        return self._threads.submit(self._parse, list(jobs))

    def close(self) -> None:
        """Wait for what was submitted, then end the workers."""
        self._threads.shutdown(cancel_futures=True)
        for worker in self._all:
            worker.close()

    def _parse(self, jobs: list[Job]) -> list[Parsed]:
        worker = self._worker()
        try:
            found = worker.parse(jobs, self._seconds)
        except (OSError, EOFError, msgspec.DecodeError):
            worker.close()
            if len(jobs) == 1:
                return [_crashed(jobs[0].language)]
            return [parsed for job in jobs for parsed in self._parse([job])]
        self._idle.put(worker)
        return found

    def _worker(self) -> _Worker:
        try:
            return self._idle.get_nowait()
        except Empty:
            worker = _Worker()
            self._all.append(worker)
            return worker


class _Worker:
    """One process. It is started without the current folder on its path: that may be anybody's."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def parse(self, jobs: list[Job], seconds: float) -> list[Parsed]:
        """Raises OSError and EOFError when the process ends before it answers, as it does when time is up."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        limit = threading.Timer(seconds, process.kill)
        limit.daemon = True
        limit.start()
        try:
            _send(process.stdin, _encoder.encode(jobs))
            return _results.decode(_receive(process.stdout))
        finally:
            limit.cancel()

    def close(self) -> None:
        end_process(self._process)


def end_process(process: subprocess.Popen[Any]) -> None:
    """Kill a process, wait until it is gone, and close its streams."""
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):  # what was still to be sent has no reader
                stream.close()


def serve() -> None:
    """The worker: answers requests until its input ends. What a library prints goes nowhere."""
    from clew.knowledge.code.parsing import run_job  # loads the parsers, which only workers and small updates need

    source, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    gc.set_threshold(RARELY)
    while True:
        try:
            request = _receive(source)
        except EOFError:
            return
        _send(answers, _encoder.encode([run_job(job) for job in _jobs.decode(request)]))


def _send(stream: IO[bytes], content: bytes) -> None:
    stream.write(len(content).to_bytes(_LENGTH, "big"))
    stream.write(content)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes:
    """Raises EOFError when the other side is gone."""
    size = int.from_bytes(_exactly(stream, _LENGTH), "big")
    return _exactly(stream, size)


def _exactly(stream: IO[bytes], size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise EOFError
    return content


def _crashed(language: str) -> Parsed:
    return Parsed(encode_facts(FileFacts(language=language, error="its parser did not survive it")))
