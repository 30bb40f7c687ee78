"""Parsing, here or in worker processes: workers use all cores, and a file that crashes its parser ends only its worker.

Workers are plain programs that answer requests until their input ends, so none outlives its parent. Their memory and
processor time are limited, since a running parser cannot be stopped.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, NamedTuple, TypeVar

import msgspec

from clew.knowledge.code.file_content import ParseJob
from clew.knowledge.code.languages.detect import LANGUAGES
from clew.knowledge.code.languages.extract import extract, is_hard, takes_long
from clew.knowledge.code.models import FileFacts
from clew.knowledge.code.python_calls.statements import summarize
from clew.knowledge.code.python_calls.summary import FlowSummary
from clew.knowledge.code.rows import ParsedContent, encode_facts
from clew.knowledge.code.search.search_index import encode_text

WORKERS = 2
POOL_FROM = 64
"""With fewer files, starting processes takes longer than parsing here."""
BATCH, IN_FLIGHT = 32, 4
"""Files that are parsed and written together, and batches under way at once."""
SECONDS = 10.0
"""Processor time that a worker may use for one content: four times what the largest file of code takes."""
PATIENCE = 6
"""A content may take this many times SECONDS on the clock; then it is tried once more."""
STRIKES = 3
"""After this many crashes of a parser, hard contents of its language are not parsed."""
MORE_MEMORY = 1 << 30
"""Bytes that a worker may allocate: five times what the largest file of code takes."""
NOT_SURVIVED = "its parser did not survive it"
GIVEN_UP = "it is hard to parse, and the parser did not survive others of its language"

_GC_THRESHOLD = 100_000
"""Results of parsers have few cycles, so rare collections save time."""
_START = "from clew.knowledge.code.pool import serve; serve()"
_LENGTH = 8
T = TypeVar("T")
P = TypeVar("P")


class _Request(NamedTuple):
    """A content for a worker, and the seconds for it; if careful, not one that takes a parser long."""

    job: ParseJob
    seconds: float
    is_careful: bool


_encoder = msgspec.msgpack.Encoder()
_requests = msgspec.msgpack.Decoder(_Request)
_results = msgspec.msgpack.Decoder(ParsedContent)


def parse_batches(
    items: Sequence[T], prepare: Callable[[Sequence[T]], tuple[P, list[ParseJob]] | None]
) -> Iterator[tuple[P, list[ParsedContent]]]:
    """Prepare items in batches and parse their jobs, in workers if there are many. Yields each prepared batch with its
    results, in order. Ends early when `prepare` returns None."""
    is_pooled = len(items) >= POOL_FROM
    size = min(BATCH, -(-len(items) // (2 * WORKERS))) if is_pooled else BATCH
    flying: deque[tuple[P, Future[list[ParsedContent]] | list[ParsedContent]]] = deque()
    with Pool() as pool:
        for at in range(0, len(items), size):
            batch = prepare(items[at : at + size])
            if batch is None:
                break
            prepared, jobs = batch
            flying.append((prepared, pool.submit(jobs) if is_pooled and jobs else run_jobs(jobs, pool)))
            if len(flying) > IN_FLIGHT:
                yield _finished(*flying.popleft())
        while flying:
            yield _finished(*flying.popleft())


def _finished(prepared: P, results: Future[list[ParsedContent]] | list[ParsedContent]) -> tuple[P, list[ParsedContent]]:
    return prepared, results if isinstance(results, list) else results.result()


def run_jobs(jobs: Sequence[ParseJob], pool: Pool | None = None) -> list[ParsedContent]:
    """Parse contents in order. A worker parses those that may take long, and gives up after the time limit."""
    hard = [at for at, job in enumerate(jobs) if not job.is_flow and is_hard(job.body, job.language)]
    found = {at: run_job(job) for at, job in enumerate(jobs) if at not in hard}
    if hard:
        with contextlib.nullcontext(pool) if pool is not None else Pool(1) as workers:
            found.update(zip(hard, workers.submit([jobs[at] for at in hard]).result(), strict=True))
    return [found[at] for at in range(len(jobs))]


def run_job(job: ParseJob, *, is_careful: bool = False) -> ParsedContent:
    """Parse a content; if careful, not one that takes a parser long. Without a known language it has no symbols."""
    if job.is_flow:
        return ParsedContent(b"", _encoder.encode(summarize(job.body)))
    is_code = job.language in LANGUAGES
    if is_careful and is_code and takes_long(job.body, job.language):
        return _unparsed(job, GIVEN_UP)
    text = job.body.decode("utf-8", errors="replace")
    known = extract(job.body, job.language) if is_code else None
    facts = known or FileFacts(language=job.language, lines=text.count("\n") + 1)
    return ParsedContent(encode_facts(facts), words=encode_text(facts, text))


def _unparsed(job: ParseJob, reason: str) -> ParsedContent:
    if job.is_flow:
        return ParsedContent(b"", _encoder.encode(FlowSummary(error=reason)))
    return ParsedContent(encode_facts(FileFacts(language=job.language, lines=job.body.count(b"\n") + 1, error=reason)))


class Pool:
    """Workers, started with the first batch. Close it after the last one."""

    def __init__(self, workers: int = WORKERS, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="clew-parsing")
        self._idle: SimpleQueue[WorkerProcess] = SimpleQueue()
        self._all: list[WorkerProcess] = []
        self._strikes: Counter[str] = Counter()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, jobs: Sequence[ParseJob]) -> Future[list[ParsedContent]]:
        """Parse contents in order. A content that no worker survives gets facts with an error."""
        return self._threads.submit(lambda: [self._parse(job) for job in jobs])

    def close(self) -> None:
        """Wait for the submitted batches, then end the workers."""
        self._threads.shutdown(cancel_futures=True)
        for worker in self._all:
            worker.end()

    def _parse(self, job: ParseJob) -> ParsedContent:
        """Parse a content. If a worker ends that may have been damaged before, a new one tries again."""
        try:
            worker = self._idle.get_nowait()
        except Empty:
            worker = self._start()
        found = self._try(job, worker)
        if found is None and not worker.has_timed_out and worker.answered:
            found = self._try(job, self._start())
        return found if found is not None else _unparsed(job, NOT_SURVIVED)

    def _try(self, job: ParseJob, worker: WorkerProcess) -> ParsedContent | None:
        """The result of a worker; None if it ends early."""
        request = _Request(job, self._seconds, self._strikes[job.language] >= STRIKES)
        try:
            found = _results.decode(worker.ask(_encoder.encode(request), self._seconds * PATIENCE))
        except (OSError, EOFError, msgspec.DecodeError):
            worker.end()
            self._strikes[job.language] += 1
            return None
        self._idle.put(worker)
        return found

    def _start(self) -> WorkerProcess:
        worker = WorkerProcess(_START)
        self._all.append(worker)
        return worker


class WorkerProcess:
    """A Python program that answers requests with `answer_requests`, until its input ends."""

    def __init__(self, program: str, *arguments: str) -> None:
        """The import path of the program does not have the current folder, which may be a stranger's."""
        self.answered = 0
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", program, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def has_timed_out(self) -> bool:
        """Whether `_limit_seconds` ended the process."""
        return sys.platform != "win32" and self.process.returncode == -signal.SIGPROF

    def ask(self, request: bytes, seconds: float | None = None) -> bytes:
        """The answer to a request. Raises OSError and EOFError if the process ends early, as after so many seconds."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        limit = threading.Timer(seconds, self.process.kill) if seconds is not None else None
        if limit is not None:
            limit.daemon = True
            limit.start()
        try:
            _send(self.process.stdin, request)
            answer = _receive(self.process.stdout)
        finally:
            if limit is not None:
                limit.cancel()
        self.answered += 1
        return answer

    def end(self) -> None:
        """Kill the process, wait for its end, and close its streams."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # a buffered request has no reader any more
                    stream.close()


def answer_requests(answer: Callable[[bytes], bytes]) -> None:
    """The main loop of a worker. Output of libraries goes to the null device."""
    source, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    with contextlib.suppress(EOFError):
        while True:
            _send(answers, answer(_receive(source)))


def serve() -> None:
    """The main function of a worker that parses."""
    gc.set_threshold(_GC_THRESHOLD)
    _limit_memory()
    answer_requests(_parse_request)


def _parse_request(encoded: bytes) -> bytes:
    request = _requests.decode(encoded)
    _limit_seconds(request.seconds)
    parsed = run_job(request.job, is_careful=request.is_careful)
    _limit_seconds(0)
    return _encoder.encode(parsed)


def _limit_memory() -> None:
    """Limit the memory of this process to MORE_MEMORY above its current size, and disable core dumps."""
    if sys.platform == "win32":
        return
    import resource  # not on Windows

    with contextlib.suppress(OSError, ValueError):  # no /proc, or a limit that may not be changed
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        wanted = pages * resource.getpagesize() + MORE_MEMORY
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        if soft == resource.RLIM_INFINITY or soft > wanted:
            resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))


def _limit_seconds(seconds: float) -> None:
    """End this process after a number of seconds of processor time from now on; 0 removes the limit."""
    if sys.platform != "win32":
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _send(stream: IO[bytes], content: bytes) -> None:
    stream.write(len(content).to_bytes(_LENGTH, "big"))
    stream.write(content)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes:
    """Raises EOFError when the other side is gone."""
    return _read_exactly(stream, int.from_bytes(_read_exactly(stream, _LENGTH), "big"))


def _read_exactly(stream: IO[bytes], size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise EOFError
    return content
