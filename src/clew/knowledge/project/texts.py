"""The texts and symbols of a project's files as they are on disk: bounded, with keys masked, never an error."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import msgspec

from clew.knowledge.code.file_content import make_readable, read_content
from clew.knowledge.code.files import ASIDE, TEST, kind_of
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.models import FileFacts, FileInfo
from clew.knowledge.code.pool import run_jobs
from clew.knowledge.code.rows import decode_facts, find_facts

MAX_TEXT = 300_000
"""Larger files are generated."""


class FileText(msgspec.Struct, frozen=True, dict=True):
    """A file with its blob, its text with keys masked, and its symbols."""

    path: str
    blob: str
    language: str
    text: str
    facts: FileFacts

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    def line_of(self, position: int) -> int:
        return self.text.count("\n", 0, position) + 1

    def source(self, line: int) -> str:
        return f"{self.path}:{line}"


def read_file(code: CodeGraph, path: str) -> FileText | None:
    """Read one file; None for one that is gone, binary, secret or too large."""
    content = read_content(code.tree.root, path)
    if content is None or len(content.body) > MAX_TEXT:
        return None
    readable = make_readable(content)
    if readable.left_out:
        return None
    return FileText(path, content.blob, readable.language, readable.text, _facts(code, content.blob, readable))


def read_files(code: CodeGraph, paths: Iterable[str]) -> Iterator[FileText]:
    """Read files in order, without those that cannot be read."""
    found = (read_file(code, path) for path in paths)
    return (file for file in found if file is not None)


def own_files(files: Sequence[FileInfo], limit: int) -> list[FileInfo]:
    """Files of the product itself, spread over all folders; tests and examples only where there are no others."""
    small = [file for file in files if file.status.size <= MAX_TEXT]
    own = [file for file in small if not kind_of(file.path) & (TEST | ASIDE)] or small
    step = max(1, -(-len(own) // limit))
    return own[::step]


def _facts(code: CodeGraph, blob: str, readable: Any) -> FileFacts:
    if not readable.language:
        return FileFacts(language="")
    with code.store.reading() as sql:
        kept = find_facts(sql, blob, readable.language)
    return decode_facts(kept or run_jobs([readable.job])[0].facts)
