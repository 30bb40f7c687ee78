"""Two searchers with the same results: ripgrep if it is installed, and Python in a separate process.

Ripgrep never takes long; it gets only expressions with the same meaning in both. Neither chooses the files to search,
and matching lines are read again through the working folder before they are shown.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from clew.errors import InvalidInput
from clew.tools.files.text_encoding import HEAD_BYTES, is_binary
from clew.tools.processes import ProcessResult, run_process, safe_environment
from clew.tools.search.line_matcher import Hits, MatchTask, read_below

SECONDS = 20.0
"""The time limit of a search."""

_OUTPUT = 50_000_000
_BATCH = 300_000
"""The limit for file names on one command line, in bytes."""
_PACKAGE = str(Path(__file__).parents[3])
_RUN = f"import sys; sys.path.insert(0, {_PACKAGE!r}); from clew.tools.search.line_matcher import main; main()"
_COUNTED = re.compile(rb"([^\0]+)\0(\d+)\r?\n")
_NUMBERED = re.compile(rb"([^\0]+)\0(\d+):\r?\n")
_SHARED = re.compile(
    r"(?:\\[dDwWsSbB.\[\]{}()*+?^$|/\\-]|\[\^?\]?[^\[\]\\&~-]*(?:-[^\[\]\\&~-]+)*\]|\((?!\?)|\(\?:|[^\\\[(])*"
)
"""Expressions with the same meaning in both, except for some repetitions."""
_ONLY_PYTHONS = re.compile(r"\{,|[*+?}]\+")


class Searcher(Protocol):
    async def search(self, task: MatchTask) -> Sequence[Hits]:
        """Return the files of a task with matching lines, in order. Raises InvalidInput if the search takes too
        long."""
        ...


def find_searcher() -> Searcher:
    """Return a searcher with ripgrep if it is installed, else with Python."""
    program = shutil.which("rg")
    return RipgrepSearcher(program) if program else PythonSearcher()


def check_pattern(pattern: str) -> None:
    """Raise InvalidInput for an invalid expression."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        hint = "To search for plain text, set fixed to true"
        raise InvalidInput("pattern", f"is not a regular expression: {error}", hint=hint) from None


class PythonSearcher:
    """Search with Python's regular expressions, in a process with a time limit."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds

    async def search(self, task: MatchTask) -> Sequence[Hits]:
        """See Searcher."""
        ended = await run_process(
            (sys.executable, "-I", "-c", _RUN),
            env=safe_environment(os.environ),
            stdin=msgspec.msgpack.encode(task),
            seconds=self._seconds,
            output_bytes=_OUTPUT,
        )
        if ended.killed_by is not None:
            raise _too_long(self._seconds)
        try:
            return msgspec.msgpack.decode(ended.stdout, type=list[Hits])
        except msgspec.DecodeError:
            raise InvalidInput("pattern", "stopped the search: it is too complex, or needs too much memory") from None


class RipgrepSearcher:
    """Search with ripgrep, and with Python for expressions that ripgrep does not support."""

    def __init__(self, program: str, seconds: float = SECONDS) -> None:
        self._program = program
        self._seconds = seconds
        self._other = PythonSearcher(seconds)

    async def search(self, task: MatchTask) -> Sequence[Hits]:
        """See Searcher."""
        if not _SHARED.fullmatch(task.pattern) or _ONLY_PYTHONS.search(task.pattern):
            return await self._other.search(task)
        counted = await self._collect(task, task.files, ("--count",), _COUNTED)
        if counted is None:
            return await self._other.search(task)
        counts = {path: numbers[0] for path, numbers in counted.items() if not _is_binary(task.root, path)}
        numbered = await self._collect(task, _first(task, counts), _numbering(task.limit), _NUMBERED)
        if numbered is None:
            return await self._other.search(task)
        return list(_hits(task, counts, numbered))

    async def _collect(
        self, task: MatchTask, files: Sequence[bytes], options: Sequence[str], line: re.Pattern[bytes]
    ) -> dict[bytes, list[int]] | None:
        """Return the numbers that ripgrep prints for each file; None after an error."""
        found: dict[bytes, list[int]] = {}
        for batch in _batches(files):
            ended = await self._run(task, batch, options)
            if ended.killed_by == "timeout":
                raise _too_long(self._seconds)
            if ended.killed_by or ended.code not in (0, 1) or len(ended.stdout) >= _OUTPUT:
                return None
            for path, number in line.findall(ended.stdout):
                found.setdefault(path, []).append(int(number))
        return found

    async def _run(self, task: MatchTask, batch: Sequence[bytes], options: Sequence[str]) -> ProcessResult:
        case = "--ignore-case" if task.ignore_case else "--case-sensitive"
        plain = ("--no-config", "--no-messages", "--color=never", "--text", "--crlf", "--null", "--with-filename")
        return await run_process(
            (self._program, *plain, case, *options, "-e", task.pattern, "--", *map(os.fsdecode, batch)),
            env=safe_environment(os.environ),
            cwd=task.root,
            seconds=self._seconds,
            output_bytes=_OUTPUT,
        )


def _numbering(limit: int) -> tuple[str, ...]:
    """Return the options for line numbers without the lines."""
    return "--line-number", "--only-matching", "--replace=", f"--max-count={limit}"


def _first(task: MatchTask, counts: dict[bytes, int]) -> list[bytes]:
    """Return the first files that together reach the limit of matching lines."""
    chosen: list[bytes] = []
    room = task.limit
    for path in task.files:
        if room > 0 and path in counts:
            chosen.append(path)
            room -= counts[path]
    return chosen


def _hits(task: MatchTask, counts: dict[bytes, int], numbered: dict[bytes, list[int]]) -> Iterator[Hits]:
    room = task.limit
    for file, path in enumerate(task.files):
        if path in counts:
            lines = sorted(set(numbered.get(path, ())))[:room]
            room -= len(lines)
            yield Hits(file=file, count=counts[path], lines=tuple(lines))


def _batches(files: Sequence[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for path in files:
        if batch and size + len(path) > _BATCH:
            yield batch
            batch, size = [], 0
        batch.append(path)
        size += len(path) + 9
    if batch:
        yield batch


def _is_binary(root: str, path: bytes) -> bool:
    return is_binary(read_below(root, path, HEAD_BYTES))


def _too_long(seconds: float) -> InvalidInput:
    hint = "Simplify it, avoid nested repetitions, or search fewer files"
    return InvalidInput("pattern", f"took longer than {seconds:g} seconds", hint=hint)
