"""Parsing, in this process or in worker processes. Workers use all cores, and a file that crashes its parser ends only
its worker.

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
from typing import IO, Any, NamedTuple, TypeVar

import msgspec

from clew.knowledge.code.file_content import ParseJob
from clew.knowledge.code.languages.detect import LANGUAGES
from clew.knowledge.code.models import FileFacts
from clew.knowledge.code.python_calls.summary import FlowSummary
from clew.knowledge.code.rows import NO_WORDS, ParsedContent, encode_facts
from clew.knowledge.code.search.passages import encode_text

WORKERS = 2
POOL_FROM = 64
"""With fewer files, starting processes takes longer than parsing here."""
BATCH, IN_FLIGHT = 32, 4
"""Files that are parsed and written together, and batches under way at once."""
SECONDS = 10.0
"""Processor time that a worker may use for one content: four times the time of the largest file of code."""
PATIENCE = 6
"""A batch may take this many times SECONDS on the clock; then its current content is tried once more."""
STRIKES = 3
"""After this many crashes of a parser, hard contents of its language are not parsed."""
MORE_MEMORY = 1 << 30
"""Bytes that a worker may allocate: five times the memory of the largest file of code."""
NOT_SURVIVED = "its parser did not survive it"
GIVEN_UP = "it is hard to parse, and other files of its language crashed the parser"

_GC_THRESHOLD = 100_000
"""Results of parsers have few cycles, so rare collections save time."""
_START = "from clew.knowledge.code.pool import serve; serve()"
_LENGTH = 8
T = TypeVar("T")
P = TypeVar("P")


class _Request(NamedTuple):
    """Contents for a worker, the seconds for each, and the languages whose parsers crashed often."""

    jobs: list[ParseJob]
    seconds: float
    struck: list[str]


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
    if not jobs:
        return []
    from clew.knowledge.code.languages.extract import is_hard  # only needed if there is something to parse

    hard = [at for at, job in enumerate(jobs) if job.has_facts and is_hard(job.body, job.language)]
    found = {at: run_job(job) for at, job in enumerate(jobs) if at not in hard}
    if hard:
        with contextlib.nullcontext(pool) if pool is not None else Pool(1) as workers:
            found.update(zip(hard, workers.submit([jobs[at] for at in hard]).result(), strict=True))
    return [found[at] for at in range(len(jobs))]


def run_job(job: ParseJob, *, is_careful: bool = False) -> ParsedContent:
    """Parse a content; if careful, not one that takes a parser long. Without a known language it has no symbols."""
    from clew.knowledge.code.languages.python_syntax import parse_python  # as in `run_jobs`

    try:
        return _run_job(job, is_careful)
    finally:
        parse_python.cache_clear()


def _run_job(job: ParseJob, is_careful: bool) -> ParsedContent:
    from clew.knowledge.code.languages.extract import extract, takes_long  # as in `run_jobs`
    from clew.knowledge.code.python_calls.statements import summarize

    summary = _encoder.encode(summarize(job.body)) if job.has_flow else b""
    if not job.has_facts:
        return ParsedContent(b"", summary)
    is_code = job.language in LANGUAGES
    if is_careful and is_code and takes_long(job.body, job.language):
        return _unparsed(job, GIVEN_UP)
    text = job.body.decode("utf-8", errors="replace")
    known = extract(job.body, job.language) if is_code else None
    facts = known or FileFacts(language=job.language, lines=text.count("\n") + 1)
    return ParsedContent(encode_facts(facts), summary, encode_text(facts, text) if job.has_words else NO_WORDS)


def _unparsed(job: ParseJob, reason: str) -> ParsedContent:
    if not job.has_facts:
        return ParsedContent(b"", _encoder.encode(FlowSummary(error=reason)))
    facts = FileFacts(language=job.language, lines=job.body.count(b"\n") + 1, error=reason)
    return ParsedContent(encode_facts(facts), words=encode_text(facts, job.body.decode("utf-8", errors="replace")))


class Pool:
    """Workers, started with the first batch. Close it after the last one."""

    def __init__(self, workers: int = WORKERS, seconds: float = SECONDS, patience: float = PATIENCE) -> None:
        self._seconds = seconds
        self._patience = patience
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="clew-parsing")
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        self._all: list[_Worker] = []
        self._strikes: Counter[str] = Counter()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, jobs: Sequence[ParseJob]) -> Future[list[ParsedContent]]:
        """Parse contents in order. A content that no worker survives gets facts with an error."""
        return self._threads.submit(self._parse, list(jobs))

    def close(self) -> None:
        """Wait for the submitted batches, then end the workers."""
        self._threads.shutdown(cancel_futures=True)
        for worker in self._all:
            end_process(worker.process)

    def _parse(self, jobs: list[ParseJob]) -> list[ParsedContent]:
        found: list[ParsedContent] = []
        while len(found) < len(jobs):
            try:
                worker = self._idle.get_nowait()
            except Empty:
                worker = self._start()
            found += self._parse_some(jobs[len(found) :], worker)
        return found

    def _parse_some(self, jobs: list[ParseJob], worker: _Worker) -> list[ParsedContent]:
        """Parse contents in order until one crashes the worker. If facts and flow of that content were requested, it is
        tried again without its flow. Otherwise it is tried again alone, unless it timed out or was the first content of
        a new worker."""
        done: list[ParsedContent] = []
        is_new = worker.is_new
        try:
            struck = [language for language, strikes in self._strikes.items() if strikes >= STRIKES]
            worker.parse(_Request(jobs, self._seconds, struck), self._seconds * self._patience, done)
        except (OSError, EOFError, msgspec.DecodeError):
            end_process(worker.process)
        else:
            self._idle.put(worker)
            return done
        culprit = jobs[len(done)]
        if culprit.has_facts and culprit.has_flow:
            return [*done, *self._parse_some([culprit._replace(has_flow=False)], self._start())]
        self._strikes[culprit.language] += 1
        if worker.has_timed_out or (is_new and not done):
            return [*done, _unparsed(culprit, NOT_SURVIVED)]
        return [*done, *self._parse_some([culprit], self._start())]

    def _start(self) -> _Worker:
        worker = _Worker()
        self._all.append(worker)
        return worker


class _Worker:
    """One process."""

    def __init__(self) -> None:
        self.is_new = True
        self.process = start_process(_START)

    @property
    def has_timed_out(self) -> bool:
        """Whether `_limit_seconds` ended the process."""
        return sys.platform != "win32" and self.process.returncode == -signal.SIGPROF

    def parse(self, request: _Request, limit: float, done: list[ParsedContent]) -> None:
        """Append each result to `done` as it arrives. Raises OSError and EOFError if the process ends early, as it does
        after `limit` seconds on the clock."""
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        self.is_new = False
        timer = threading.Timer(limit, process.kill)
        timer.daemon = True
        timer.start()
        try:
            _send(process.stdin, _encoder.encode(request))
            while len(done) < len(request.jobs):
                done.append(_results.decode(_receive(process.stdout)))
        finally:
            timer.cancel()


def start_process(program: str, *arguments: str) -> subprocess.Popen[bytes]:
    """Run a Python program. Its import path excludes the current folder, because that may be untrusted."""
    return subprocess.Popen(
        [sys.executable, "-P", "-c", program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def end_process(process: subprocess.Popen[Any]) -> None:
    """Kill a process, wait for its end, and close its streams."""
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):  # the worker has gone, so nobody reads the buffered request
                stream.close()


def serve() -> None:
    """The main function of a worker. Output of libraries goes to the null device."""
    source, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    gc.set_threshold(_GC_THRESHOLD)
    _limit_memory()
    while True:
        try:
            request = _requests.decode(_receive(source))
        except EOFError:
            return
        for job in request.jobs:
            _limit_seconds(request.seconds)
            parsed = run_job(job, is_careful=job.language in request.struck)
            _limit_seconds(0)
            _send(answers, _encoder.encode(parsed))


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
