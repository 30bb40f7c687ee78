"""Parsing in processes of their own: on all cores, and so that a file which brings a parser down takes only its worker
with it. Workers are plain programs that read requests and end with their input, so none outlives who started it; what
one may take of memory and time is limited, as nothing stops a parser that has begun."""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import IO, Any, NamedTuple, TypeVar

import msgspec

from clew.knowledge.code.limits import has_timed_out, limit_memory, limit_seconds
from clew.knowledge.code.models import FileFacts
from clew.knowledge.code.python_summary import Summary
from clew.knowledge.code.rows import Parsed, encode_facts

WORKERS = 2
POOL_FROM = 64
"""With fewer files to parse, starting other processes takes longer than parsing here."""
BATCH, IN_FLIGHT = 32, 4
"""How many files are parsed and written together, and how many such batches may be under way."""
SECONDS = 10.0
"""What a worker may take for one content, in time of the processor: four times what the largest file of code takes."""
PATIENCE = 6
"""So many times that may pass on the clock until a batch is done; whatever is under way then is tried once more."""
STRIKES = 3
"""So many contents of a language bring their worker down or take much too long; then those like them are not read."""
SLOW_SECONDS, SLOW_SECONDS_A_BYTE = 2.0, 2.5e-6
NOT_SURVIVED = "its parser did not survive it"
GIVEN_UP = "it is hard to parse, and the parser did not survive others of its language"
RARELY = 100_000
"""What parsers make has few cycles: looking for them seldom saves much time."""
_START = "from clew.knowledge.code.pool import serve; serve()"
T = TypeVar("T")
_LENGTH = 8


class Job(NamedTuple):
    """A content to be parsed: into facts and words, or into the summary of its flow."""

    body: bytes
    language: str
    is_flow: bool = False


class _Request(NamedTuple):
    """Contents for a worker, how long each may take, and how often others of a language brought one down."""

    jobs: list[Job]
    seconds: float
    strikes: Mapping[str, int]


_encoder = msgspec.msgpack.Encoder()
_requests = msgspec.msgpack.Decoder(_Request)
_results = msgspec.msgpack.Decoder(Parsed)


def batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Parts of at most BATCH; of little, so many that every worker has some of it, where there are workers at all."""
    size = min(BATCH, -(-len(items) // (2 * WORKERS))) if len(items) >= POOL_FROM else BATCH
    return (items[at : at + size] for at in range(0, len(items), size))


class Pool:
    """Workers that are started with the first batch. Close it when the last batch is done."""

    def __init__(self, workers: int = WORKERS, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="clew-parsing")
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        self._all: list[_Worker] = []
        self._strikes: Counter[str] = Counter()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, jobs: Sequence[Job]) -> Future[list[Parsed]]:
        """What is kept of each content, in the same order; facts with an error for one that no worker survives, and for
        those that are as hard where several did not."""
        return self._threads.submit(self._parse, list(jobs))

    def close(self) -> None:
        """Wait for what was submitted, then end the workers."""
        self._threads.shutdown(cancel_futures=True)
        for worker in self._all:
            worker.close()

    def _parse(self, jobs: list[Job]) -> list[Parsed]:
        found: list[Parsed] = []
        while len(found) < len(jobs):
            found += self._parse_first(jobs[len(found) :], self._worker())
        return found

    def _parse_first(self, jobs: list[Job], worker: _Worker) -> list[Parsed]:
        """What is kept of the first of some contents: up to the one that brings the worker down, and of all if none
        does. One that may not be to blame is tried again, alone."""
        done: list[Parsed] = []
        is_new = worker.is_new
        try:
            worker.parse(_Request(jobs, self._seconds, dict(self._strikes)), done)
        except (OSError, EOFError, msgspec.DecodeError):
            worker.close()
        else:
            self._idle.put(worker)
            return done
        culprit = jobs[len(done)]
        self._strikes[culprit.language] += 1
        if worker.has_timed_out or (is_new and not done):
            return [*done, unread(culprit, NOT_SURVIVED)]
        return [*done, *self._parse_first([culprit], self._start())]

    def _worker(self) -> _Worker:
        try:
            return self._idle.get_nowait()
        except Empty:
            return self._start()

    def _start(self) -> _Worker:
        worker = _Worker()
        self._all.append(worker)
        return worker


class _Worker:
    """One process. It is started without the current folder on its path: that may be anybody's."""

    def __init__(self) -> None:
        self.is_new = True
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def has_timed_out(self) -> bool:
        """Whether the process ended itself, one content having taken too long."""
        return has_timed_out(self._process.returncode)

    def parse(self, request: _Request, done: list[Parsed]) -> None:
        """Puts what is kept of each content into `done` as soon as it is there. Raises OSError and EOFError when the
        process ends before the last, as it does when time is up."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        self.is_new = False
        limit = threading.Timer(request.seconds * PATIENCE, process.kill)
        limit.daemon = True
        limit.start()
        try:
            _send(process.stdin, _encoder.encode(request))
            while len(done) < len(request.jobs):
                done.append(_results.decode(_receive(process.stdout)))
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
    # loads the parsers, which only workers and small updates need
    from clew.knowledge.code.parsing import run_easy, run_job

    source, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    gc.set_threshold(RARELY)
    limit_memory()
    slow: Counter[str] = Counter()
    while True:
        try:
            request = _requests.decode(_receive(source))
        except EOFError:
            return
        for job in request.jobs:
            begun = time.process_time()
            limit_seconds(request.seconds)
            is_tried = request.strikes.get(job.language, 0) + slow[job.language] < STRIKES
            parsed = run_job(job) if is_tried else run_easy(job)
            limit_seconds(0)
            slow[job.language] += time.process_time() - begun > SLOW_SECONDS + SLOW_SECONDS_A_BYTE * len(job.body)
            _send(answers, _encoder.encode(parsed))


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


def unread(job: Job, reason: str) -> Parsed:
    """What is kept of a content of which nothing is known but why."""
    if job.is_flow:
        return Parsed(b"", _encoder.encode(Summary(error=reason)))
    return Parsed(encode_facts(FileFacts(language=job.language, lines=job.body.count(b"\n") + 1, error=reason)))
