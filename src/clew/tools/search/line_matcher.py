"""Finds the matching lines of files, in a separate process.

A regular expression can take very long, and only a process can be killed at any time. The process reads one task from
its input and writes one answer.
"""

from __future__ import annotations

import os
import re
import stat
import sys

import msgspec

from clew.files import open_inside
from clew.tools.files.text_encoding import is_binary


class MatchTask(msgspec.Struct, frozen=True, kw_only=True):
    """Files below `root` to search, in this order, as bytes. The result has the numbers of the first `limit` matching
    lines, and the count of all."""

    root: str
    files: tuple[bytes, ...]
    pattern: str
    ignore_case: bool = False
    limit: int = 100
    max_bytes: int = 10_000_000


class Hits(msgspec.Struct, frozen=True, kw_only=True):
    """The matching lines of one file: their count, and the numbers of the first ones, up to the limit."""

    file: int
    count: int
    lines: tuple[int, ...] = ()


def match_files(task: MatchTask) -> list[Hits]:
    """Return the files with matching lines, in order. Raises re.error for an invalid expression."""
    search = re.compile(task.pattern, re.IGNORECASE if task.ignore_case else 0).search
    found: list[Hits] = []
    room = task.limit
    for file, path in enumerate(task.files):
        content = read_below(task.root, path, task.max_bytes)
        numbers = [number for number, line in enumerate(text_lines(content), 1) if search(line)]
        if numbers:
            found.append(Hits(file=file, count=len(numbers), lines=tuple(numbers[:room])))
            room -= min(room, len(numbers))
    return found


def text_lines(content: bytes) -> list[str]:
    """Return the lines of a text without their ends; none for a binary file."""
    if is_binary(content):
        return []
    marks = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"\xef\xbb\xbf", "utf-8"))
    mark, encoding = next((each for each in marks if content.startswith(each[0])), (b"", "utf-8"))
    errors = "surrogateescape" if encoding == "utf-8" else "replace"
    *lines, last = content[len(mark) :].decode(encoding, errors=errors).split("\n")
    return [line.removesuffix("\r") for line in (*lines, *([last] if last else []))]


def read_below(root: str, path: bytes, limit: int) -> bytes:
    """Return the beginning of a regular file below a root; empty if it was deleted or replaced."""
    try:
        file = open_inside(root, os.fsdecode(path))
    except OSError:
        return b""
    with os.fdopen(file, "rb") as opened:
        return opened.read(limit) if stat.S_ISREG(os.fstat(file).st_mode) else b""


def main() -> None:
    task = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=MatchTask)
    sys.stdout.buffer.write(msgspec.msgpack.encode(match_files(task)))
