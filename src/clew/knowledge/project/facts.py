"""The facts that the files of a project state of it: runtimes, dependencies, scripts, tools, metadata and people, each
with its lines; and the facts that a question asks for. `code.db` keeps them until a file changes."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from clew import __version__
from clew.errors import StorageError
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.search.words import terms_of
from clew.knowledge.code.store import read_meta, write_meta
from clew.knowledge.nodes.kinds import NodeDomain, NodeType, TrustLevel, Verification
from clew.knowledge.nodes.node_store import Node, ScoredNode
from clew.secrecy import mask_keys
from clew.trail.model.readable import find_words

FORMAT = 1
"""Increase it with every change of the facts that are read, or of their words."""
SHOWN = 3
STATED = 0.7
"""A fact that covers this share of a question answers it."""
SHORTEST_ASKING = 4
NAME_BONUS = 0.2
"""The factor for a fact whose name is in the question."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ProjectFact(msgspec.Struct, frozen=True):
    """One fact. `start` and `end` are lines, counted from 1; `text` is these lines as written, up to a limit."""

    path: str
    start: int
    end: int
    kind: str
    name: str
    value: str
    text: str
    keywords: str


class IndexedFact(NamedTuple):
    """A fact with the blob of its file, and the words of its name, of questions for it, and of its text."""

    fact: ProjectFact
    blob: str
    name: frozenset[int]
    asked_by: frozenset[int]
    asked_in: frozenset[str]
    said: frozenset[int]


class StoredFacts(msgspec.Struct, frozen=True, array_like=True):
    """All facts of a folder, with the version of Clew that read them and the state of the files."""

    version: str
    generation: int
    facts: list[IndexedFact]


_VERSION = f"{__version__} {FORMAT}"
_KEY = "project facts"
_encode = msgspec.msgpack.Encoder().encode


class ProjectFacts:
    """The facts of one folder, read again when a file changes."""

    def __init__(self, code: CodeGraph) -> None:
        self._code = code
        self._state = ""
        self._facts: list[IndexedFact] = []
        self._by_key: dict[int | str, list[int]] = defaultdict(list)
        """The numbers of the facts that a term or a plain word asks for."""

    async def search(self, question: str, state: str, weights: Mapping[str, float]) -> list[ScoredNode]:
        """The facts that a question asks for, best first: they have its words, and words by which such facts are asked
        for. Reads the manifests again in another `state` of the files."""
        if state != self._state:
            await self._refresh()
            self._state = state
        words = {term: weight for word, weight in weights.items() for term in terms_of(word)[:1]}
        total = sum(words.values())
        if not total:
            return []
        asked = plain_words(question)
        keys: set[int | str] = {*asked, *words}
        numbers = {number for key in keys for number in self._by_key.get(key, ())}
        scored = [(_score(self._facts[number], words, total, asked), self._facts[number]) for number in sorted(numbers)]
        stated = [one for one in scored if one[0] >= STATED]
        best = sorted(stated, key=lambda one: (-round(one[0], 1), *_depth(one[1]), -len(one[1].name & words.keys())))
        distinct = {(each.fact.kind, each.fact.name, each.fact.value): (score, each) for score, each in reversed(best)}
        found = list(reversed(distinct.values()))[:SHOWN]
        return [ScoredNode(node=_node(each), similarity=min(1.0, score)) for score, each in found]

    async def _refresh(self) -> None:
        stored = await asyncio.to_thread(self._read_stored)
        self._facts = await self._read_files() if stored is None else stored
        self._by_key = defaultdict(list)
        for number, each in enumerate(self._facts):
            keys: set[int | str] = {*each.asked_by, *each.asked_in}
            for key in keys:
                self._by_key[key].append(number)

    def _read_stored(self) -> list[IndexedFact] | None:
        """The facts as an earlier process read them; None if a file has changed since, or for another version."""
        with self._code.store.reading() as sql:
            generation, stored = read_meta(sql, "generation", 0), read_meta(sql, _KEY, b"")
        try:
            found = msgspec.msgpack.decode(stored, type=StoredFacts)
        except msgspec.MsgspecError:
            return None
        return found.facts if (found.version, found.generation) == (_VERSION, generation) else None

    async def _read_files(self) -> list[IndexedFact]:
        from clew.knowledge.project.fact_reader import index_facts  # of use after a file has changed

        generation = self._code.store.meta("generation", 0)
        paths = [file.path for file in await self._code.files()]
        facts = await asyncio.to_thread(index_facts, self._code.tree.root, paths)
        encoded = _encode(StoredFacts(_VERSION, generation, facts))
        if not self._code.indexer.is_refreshing:  # which writes at the same time
            with suppress(StorageError), self._code.store.writing() as sql:
                write_meta(sql, _KEY, encoded)
        return facts


def _score(each: IndexedFact, words: Mapping[int, float], total: float, asked: frozenset[str]) -> float:
    """The share of the words that a fact has. It is 0 unless a word, which may be a stop word such as `need`, asks for
    facts of its kind."""
    if each.asked_by.isdisjoint(words) and asked.isdisjoint(each.asked_in):
        return 0.0
    held = sum(weight for term, weight in words.items() if term in each.asked_by or term in each.said)
    return held / total + (0.0 if each.name.isdisjoint(words) else NAME_BONUS)


def _depth(each: IndexedFact) -> tuple[bool, int]:
    """The sort key of facts: top-level manifests first, then those in subfolders, then the configuration of
    services."""
    return each.fact.path.startswith("."), each.fact.path.count("/")


def _node(each: IndexedFact) -> Node:
    fact = each.fact
    return Node(
        id=f"fact:{fact.path}:{fact.start}:{fact.name}",
        name=f"{fact.kind} {fact.name}",
        domain=NodeDomain.CODE,
        node_type=NodeType.FILE,
        content=mask_keys(fact.text),
        path=fact.path,
        line_start=fact.start,
        line_end=fact.end,
        content_hash=each.blob,
        signature=mask_keys(fact.text.split("\n", 1)[0].strip()) or None,
        metadata={"kind": fact.kind, "doc": f"{fact.kind} {fact.name}: {fact.value}"},
        verified=True,
        verification=Verification.CODE,
        trust=TrustLevel.GROUND,
        created_at=_EPOCH,
    )


def plain_words(text: str) -> frozenset[str]:
    """Words of four letters and more, without the `s` at their ends."""
    return frozenset(word.lower().rstrip("s") for word in find_words(text) if len(word) >= SHORTEST_ASKING)
