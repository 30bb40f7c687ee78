"""The texts and symbols of a project's files as they are on disk, and needs in words to match with them. Reading is
bounded, masks keys and never raises."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from typing import Annotated

import msgspec

from clew.errors import InvalidInput
from clew.knowledge.code.file_content import make_readable, read_content
from clew.knowledge.code.files import ASIDE, TEST, kind_of
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.models import FileFacts, FileInfo
from clew.knowledge.code.pool import run_jobs
from clew.knowledge.code.rows import decode_facts, find_facts
from clew.knowledge.code.search.words import terms_of
from clew.knowledge.project.formats import load_table
from clew.lazy_pattern import lazy_pattern
from clew.trail.search.text import STOP, split_word

MAX_TEXT = 300_000
"""Larger files are generated."""
MAX_NEED, MAX_WORDS = 300, 12
_WORD = lazy_pattern(r"[^\W_][\w.-]*")
_RELATION = lazy_pattern(r"\b(?:for|to|of|with|that|which|from|when|in|on)\b", re.IGNORECASE)


class FileText(msgspec.Struct, frozen=True, dict=True):
    """A file with its text, keys masked, and its symbols."""

    path: str
    language: str
    text: str
    facts: FileFacts

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

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
    facts = FileFacts(language="")
    if readable.language:
        with code.store.reading() as sql:
            stored = find_facts(sql, content.blob, readable.language)
        facts = decode_facts(stored or run_jobs([readable.job()])[0].facts)
    return FileText(path, readable.language, readable.text, facts)


def read_files(code: CodeGraph, paths: Iterable[str]) -> Iterator[FileText]:
    """Read files in order, without those that cannot be read."""
    found = (read_file(code, path) for path in paths)
    return (file for file in found if file is not None)


def own_files(files: Sequence[FileInfo], limit: int) -> Sequence[str]:
    """Paths of the product itself, spread over all folders; tests and examples only if there are no others."""
    small = [file.path for file in files if file.status.size <= MAX_TEXT]
    return spread([path for path in small if not kind_of(path) & (TEST | ASIDE)] or small, limit)


def spread(paths: Sequence[str], limit: int) -> Sequence[str]:
    """Up to `limit` of the paths, from all folders."""
    return paths[:: max(1, -(-len(paths) // limit))]


NeedText = Annotated[str, msgspec.Meta(description="what is needed, in a few words")]


class Need(msgspec.Struct, frozen=True):
    """A need in words, with the stemmed terms of each and of its synonyms; `head` is the index of the word that names
    the thing."""

    words: Sequence[str]
    terms: Sequence[frozenset[int]]
    head: int

    def matched(self, known: frozenset[int]) -> list[bool]:
        return [not terms.isdisjoint(known) for terms in self.terms]


def read_need(text: str, leave_out: frozenset[str]) -> Need:
    """Parse a need. Raises InvalidInput when it has no words."""
    plain = text[:MAX_NEED]
    words = _content(plain, leave_out) or _content(plain, frozenset())
    if not words:
        raise InvalidInput("need", "has no words", hint="Say what you need, such as 'date formatting'")
    first = _content(_RELATION.split(plain, maxsplit=1)[0], leave_out)
    head = len(first) - 1 if first and words[: len(first)] == first else len(words) - 1
    return Need(words, [_with_synonyms(word) for word in words], head)


def terms_in(text: str) -> frozenset[int]:
    """The terms of a name or a description."""
    return frozenset(term for word in _WORD.findall(text[:2_000]) for term in terms_of(word))


def _content(text: str, leave_out: frozenset[str]) -> list[str]:
    parts = (part for word in _WORD.findall(text) for part in split_word(word))
    return [part for part in parts if part not in STOP and part not in leave_out][:MAX_WORDS]


def _with_synonyms(word: str) -> frozenset[int]:
    own = frozenset(terms_of(word))
    return own.union(*(group for group in _synonyms() if not group.isdisjoint(own)))


@cache
def _synonyms() -> list[frozenset[int]]:
    groups = load_table("synonyms.json", list[list[str]])
    return [frozenset(term for word in group for term in terms_of(word)) for group in groups]
