"""Facts that the manifests and configuration of a project state: versions, dependencies, scripts, tools, people."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from clew.knowledge.answering.question import ParsedQuestion
from clew.knowledge.code.file_content import read_content
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.search.words import terms_of
from clew.knowledge.nodes.kinds import NodeDomain, NodeType, TrustLevel, Verification
from clew.knowledge.nodes.node_store import Node, ScoredNode
from clew.knowledge.project.facts import ProjectFact, is_fact_file, read_facts
from clew.secrecy import mask_keys
from clew.trail.model.readable import find_words

SHOWN = 3
STATED = 0.7
"""A fact that covers this share of a question answers it."""
SHORTEST_ASKING = 4
NAME_BONUS = 0.2
"""How much more a fact counts whose name the question has."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Indexed(NamedTuple):
    fact: ProjectFact
    blob: str
    name: frozenset[int]
    asked_by: frozenset[int]
    asked_in: frozenset[str]
    said: frozenset[int]


class ProjectFacts:
    """The facts of one folder, read again when a file changes."""

    def __init__(self, code: CodeGraph) -> None:
        self._code = code
        self._state = ""
        self._facts: list[_Indexed] = []
        self._by_key: dict[int | str, list[int]] = defaultdict(list)
        """The numbers of the facts that a term or a plain word asks for."""

    async def search(self, question: ParsedQuestion, state: str, weights: Mapping[str, float]) -> list[ScoredNode]:
        """The facts that a question asks for, best first: they have its words, and words by which such facts are asked
        for. Reads the manifests again in another `state` of the files."""
        if state != self._state:
            await self._refresh()
            self._state = state
        words = {term: weight for word, weight in weights.items() for term in terms_of(word)[:1]}
        total = sum(words.values())
        if not total:
            return []
        asked = _plain_words(question.text)
        keys: set[int | str] = {*asked, *words}
        numbers = {number for key in keys for number in self._by_key.get(key, ())}
        scored = [(_score(self._facts[number], words, total, asked), self._facts[number]) for number in sorted(numbers)]
        best = sorted((one for one in scored if one[0] >= STATED), key=lambda one: (-round(one[0], 1), _depth(one[1])))
        distinct = {(each.fact.kind, each.fact.name, each.fact.value): (score, each) for score, each in reversed(best)}
        found = list(reversed(distinct.values()))[:SHOWN]
        return [ScoredNode(node=_node(each), similarity=min(1.0, score)) for score, each in found]

    async def _refresh(self) -> None:
        paths = [file.path for file in await self._code.files() if is_fact_file(file.path)]
        self._facts = await asyncio.to_thread(_read, self._code.tree.root, paths)
        self._by_key = defaultdict(list)
        for number, each in enumerate(self._facts):
            keys: set[int | str] = {*each.asked_by, *each.asked_in}
            for key in keys:
                self._by_key[key].append(number)


def _read(root: str, paths: Sequence[str]) -> list[_Indexed]:
    contents = {path: content for path in paths if (content := read_content(root, path)) is not None}
    facts = read_facts((path, content.body) for path, content in contents.items())
    return [
        _Indexed(
            fact,
            contents[fact.path].blob,
            _terms(fact.name),
            _terms(fact.keywords),
            _plain_words(fact.keywords),
            _terms(f"{fact.name} {fact.value} {fact.text} {fact.path}"),
        )
        for fact in facts
    ]


def _score(each: _Indexed, words: Mapping[int, float], total: float, asked: frozenset[str]) -> float:
    """The share of the words that a fact has; 0 unless some word asks for facts of its kind, a stop word such as `need`
    included."""
    if each.asked_by.isdisjoint(words) and asked.isdisjoint(each.asked_in):
        return 0.0
    held = sum(weight for term, weight in words.items() if term in each.asked_by or term in each.said)
    return held / total + (0.0 if each.name.isdisjoint(words) else NAME_BONUS)


def _depth(each: _Indexed) -> tuple[bool, int]:
    """Manifests at the top before those below it, and these before configuration of services."""
    return each.fact.path.startswith("."), each.fact.path.count("/")


def _node(each: _Indexed) -> Node:
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


def _terms(text: str) -> frozenset[int]:
    return frozenset(term for word in find_words(text) for term in terms_of(word))


def _plain_words(text: str) -> frozenset[str]:
    """Words of four letters and more, without the `s` at their ends."""
    return frozenset(word.lower().rstrip("s") for word in find_words(text) if len(word) >= SHORTEST_ASKING)
