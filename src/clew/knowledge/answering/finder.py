"""Finds the sources of an answer: relation, history and project handlers first, then one search over everything."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from clew.access import Principal
from clew.catalog.operations.text import code_span
from clew.clock import Clock
from clew.errors import ClewError
from clew.knowledge.answering.history import WHICH_VERSION, HistoryAnswer, HistoryHandler
from clew.knowledge.answering.messages import is_pasted
from clew.knowledge.answering.notes import ABOUT, Notes
from clew.knowledge.answering.passage_search import (
    HALF,
    SHARES,
    SHOWN,
    FoundPassages,
    find_absent_name,
    search_passages,
)
from clew.knowledge.answering.question import ParsedQuestion, QuestionKind, Tests
from clew.knowledge.answering.sources import passage_node, path_distance, used_line, with_doc
from clew.knowledge.answering.uses import Relation, find_uses, read_relation
from clew.knowledge.code.files import TEST, kind_of
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.search.postings import PassagePlace
from clew.knowledge.code.search.search_index import PassageHit
from clew.knowledge.git.log import COMMIT_PREFIX
from clew.knowledge.nodes.kinds import NodeType
from clew.knowledge.nodes.node_store import Node, ScoredNode
from clew.knowledge.project.facts import ProjectFacts
from clew.secrecy import mask_keys

SHOWN_USES = 10
MAX_DEFINITIONS, MAX_NAME = 3, 120
FEW_WORDS = 2
"""With at most this many words besides its names, a question asks for the definitions of the names."""
PREFERRED = 0.2
"""The bonus of a changelog's note for a question about a version."""
COMMIT_COVER = 0.6
"""Commits that cover this share of a question answer it, even if it is of another kind."""
NOTHING = "Nothing in this folder answers that."


class FoundSources(NamedTuple):
    """The sources of an answer, best first. `texts` replaces the text of a source, by its id. `is_listing` says that
    the sources are a complete list, which no model needs to put into words."""

    sources: list[ScoredNode]
    notes: list[str]
    texts: Mapping[str, str] = {}
    more: int = 0
    is_listing: bool = False


class SourceFinder:
    """Looks a parsed question up in code, documents, history, manifests and notes."""

    def __init__(
        self,
        code: CodeGraph,
        history: HistoryHandler,
        notes: Notes,
        facts: ProjectFacts,
        clock: Clock,
    ) -> None:
        self.history = history
        self._code, self._notes, self._facts = code, notes, facts
        self._clock = clock

    async def find(self, question: ParsedQuestion, state: str, *, by: Principal) -> FoundSources:
        """The sources of an answer in a state of the files. If nothing answers the question, there are no sources but a
        note."""
        await self._code.warm()
        weights = self._weights(question)
        pasted = await search_passages(self._code, question) if is_pasted(question) else None
        if pasted is not None and pasted.has_message:
            notes = await self._notes.search(question, weights, by)
            first = [each for each in notes if each.similarity >= ABOUT]
            return FoundSources(_unique([*first, *await self._nodes(pasted.hits), *notes])[:SHOWN], [])
        if question.relation is not None:
            relation = await read_relation(question, question.relation, self._code)
            used = await self._uses(question, relation) if relation is not None else None
            if used is not None:
                return used
        noted = await self._notes.of_session(question, by) or await self._notes.of_kind(question, weights, by)
        if noted:
            return FoundSources(noted, [], is_listing=True)
        if question.asks_history:
            past = await self.history.answer(question, state, self._clock.now())
            if past is not None:
                return await self._with_gaps(question, _listing(past))
        if question.kind is QuestionKind.OVERVIEW:
            return FoundSources(await self._overview(), [])
        return await self._with_gaps(question, await self._search(question, state, weights, by, pasted))

    async def _with_gaps(self, question: ParsedQuestion, found: FoundSources) -> FoundSources:
        gaps = await self.history.gaps() if question.kind is QuestionKind.HISTORY else []
        return found._replace(notes=[*found.notes, *gaps])

    async def _search(
        self,
        question: ParsedQuestion,
        state: str,
        weights: Mapping[str, float],
        by: Principal,
        found: FoundPassages | None,
    ) -> FoundSources:
        """The sources of a question that no handler takes. `found` are its passages if they are known."""
        is_past = question.kind is QuestionKind.HISTORY  # whose answer may name deleted files
        absent = "" if is_past else await find_absent_name(self._code, question)
        if absent and not await self.history.mentions(absent):
            nearest = await self._code.passages(question.words, shares=SHARES[question.kind], limit=1)
            return FoundSources([], [_nothing(FoundPassages([], nearest[0] if nearest else None, (absent,)))])
        named = await self._files(question) if question.paths else await self._definitions(question)
        if question.paths and not is_past and not named:  # `Response.json` may be a method
            nodes = [node for path in question.paths for node in await self._code.named(path)]
            named = [ScoredNode(node=with_doc(node), similarity=1.0) for node in nodes[:MAX_DEFINITIONS]]
            if named:
                return FoundSources(named, [])
        found = found or await search_passages(self._code, question)
        missing = () if named else question.paths[:1]
        names = (*(name for name in question.names if not self._code.text.has_name(name)), *missing)
        unknown = "" if is_past else next(iter(names), "")
        if unknown and found.cover < HALF:
            return FoundSources([], [await self._unknown_name(unknown)])
        notes = await self._notes.search(question, weights, by)
        facts = await self._facts.search(question.text, state, weights) if not is_past else []
        commits = await self._commits(question, state, weights, found)
        first = [each for each in notes if each.similarity >= ABOUT]
        hits = found.hits
        if question.paths and named:
            files = {each.node.path for each in named}
            hits = [hit for hit in hits if hit.place.path in files]
        passages = await self._nodes(hits)
        if is_past:
            passages = _merged(question, passages, hits, commits)
        sources = _unique([*named, *first, *facts, *passages, *commits, *notes])[: SHOWN + len(facts)]
        said = [await self._unknown_name(unknown)] if unknown else []
        if sources:
            return FoundSources(sources, [*said, *await self._version_notes(question, sources[0].node)])
        return FoundSources([], said or [_nothing(found)])

    async def _version_notes(self, question: ParsedQuestion, best: Node) -> list[str]:
        """For a question about the version of a change: a note with the first version that contains the commit of the
        answer."""
        is_asked = question.kind is QuestionKind.HISTORY and WHICH_VERSION.search(question.text)
        if not is_asked or not best.id.startswith(COMMIT_PREFIX):
            return []
        return [await self.history.first_version(best.id.removeprefix(COMMIT_PREFIX))]

    async def _uses(self, question: ParsedQuestion, relation: Relation) -> FoundSources | None:
        """The uses of a name, or None if nothing defines or uses it."""
        uses = await find_uses(self._code, relation, question)
        if not uses:
            return self._no_uses(relation) if relation.definitions else None
        shown = uses[:SHOWN_USES]
        places = [PassagePlace(use.path, use.blob, "", "use", "", "", use.line, use.line) for use in shown]
        sources = await self._nodes([PassageHit(place, 1.0, 1.0) for place in places])
        texts = {
            each.node.id: used_line(use.user, use.does, use.used, is_guess=use.is_guess)
            for each, use in zip(sources, shown, strict=True)
        }
        return FoundSources(sources, [], texts, more=len(uses) - len(shown), is_listing=True)

    def _no_uses(self, relation: Relation) -> FoundSources:
        """The answer for a name without uses: a note with the place of its definition."""
        name = code_span(mask_keys(relation.name), MAX_NAME)
        sure = "" if self._code.is_current else " so far: not all files are linked yet"
        verb = {"tests": "No test reaches", "imports": "Nothing imports", "extends": "Nothing extends"}
        none = (
            f"{verb.get(relation.edge, 'Nothing calls or uses')} {name}"
            if relation.backwards
            else f"{name} uses nothing"
        )
        sources = [ScoredNode(node=with_doc(node), similarity=1.0) for node in relation.definitions[:1]]
        return FoundSources(sources, [f"{none}{sure}."], is_listing=True)

    async def _unknown_name(self, name: str) -> str:
        """A note that no code has a name, with similar names."""
        shown = code_span(mask_keys(name), MAX_NAME)
        hint = await self._code.suggest(name)
        return f"Nothing in this folder is named {shown}.{hint and f' {hint}'}"

    async def _definitions(self, question: ParsedQuestion) -> list[ScoredNode]:
        """The definitions of the names in a question, if it has few other words."""
        parts = {part.lower() for name in question.names for part in _split(name)}
        others = [word for word in question.words if word.lower() not in parts]
        names = list(question.names)
        if not names and len(question.words) == 1 and question.kind is QuestionKind.CODE:
            names = [question.words[0]]
        if not names or len(others) > FEW_WORDS or question.kind is QuestionKind.HISTORY:
            return []
        found = [node for name in names for node in sorted(await self._code.named(name), key=_definition_order)]
        wanted = [
            node for node in found if question.tests is not Tests.ONLY or kind_of(node.path or "", node.name) & TEST
        ]
        return [ScoredNode(node=with_doc(node), similarity=1.0) for node in wanted[:MAX_DEFINITIONS]]

    async def _files(self, question: ParsedQuestion) -> list[ScoredNode]:
        """The files that a question names."""
        found = []
        for path in question.paths:
            located = [each.path for each in await self._code.locate(path, limit=MAX_DEFINITIONS)]
            for each in located:
                if f"/{each}".endswith(f"/{path}"):
                    with suppress(ClewError):
                        found.append(ScoredNode(node=with_doc(await self._code.symbol(each)), similarity=1.0))
        return found

    async def _overview(self) -> list[ScoredNode]:
        """The first sections of the README at the top of the folder."""
        files = [file.path for file in await self._code.files() if re.fullmatch(r"(?i)readme(\.\w+)?", file.path)]
        found = []
        for path in sorted(files)[:1]:
            node = await self._code.symbol(path)
            lines = await self._code.lines(path, 1, 40)
            end = min(len(lines), node.line_end or len(lines)) or 1
            text = "\n".join(lines)
            found.append(ScoredNode(node=msgspec.structs.replace(node, line_end=end, content=text), similarity=1.0))
        return found

    async def _commits(
        self, question: ParsedQuestion, state: str, weights: Mapping[str, float], found: FoundPassages
    ) -> list[ScoredNode]:
        """Commits on the topic, if the question is about the past or nothing else answers it."""
        if question.kind is not QuestionKind.HISTORY and found.hits:
            return []
        commits = await self.history.search(question, state, weights, self._clock.now())
        least = 0.0 if question.kind is QuestionKind.HISTORY and found.hits else COMMIT_COVER
        return [each for each in commits if each.similarity > least]

    async def _nodes(self, hits: Sequence[PassageHit]) -> list[ScoredNode]:
        excerpts = await self._code.excerpts([hit.place for hit in hits])
        return [passage_node(hit, each) for hit, each in zip(hits, excerpts, strict=True)]

    def _weights(self, question: ParsedQuestion) -> dict[str, float]:
        """The weight of each word of a question by its rarity; unknown words count as the rarest."""
        rarity = self._code.text.rarity(question.words)
        most = max(rarity.values(), default=0.0) or 1.0
        return {word: rarity[word] or most for word in question.words}


def _listing(past: HistoryAnswer) -> FoundSources:
    sources = [ScoredNode(node=node, similarity=1.0) for node in past.nodes]
    return FoundSources(sources, list(past.notes), more=max(0, past.total - len(sources)), is_listing=True)


def _merged(
    question: ParsedQuestion, passages: Sequence[ScoredNode], hits: Sequence[PassageHit], past: Sequence[ScoredNode]
) -> list[ScoredNode]:
    """Passages, notes of changelogs and commits by the share of the question's words that they have. A question about a
    version prefers notes."""
    bonus = PREFERRED if WHICH_VERSION.search(question.text) else 0.0
    scored = [(hit.cover, each) for hit, each in zip(hits, passages, strict=True)]
    scored += [(each.similarity + (0.0 if each.node.id.startswith(COMMIT_PREFIX) else bonus), each) for each in past]
    return [each for _, each in sorted(scored, key=lambda one: -round(one[0], 1))]


def _unique(found: Sequence[ScoredNode]) -> list[ScoredNode]:
    """Sources without repeats: each id, and each place, once."""
    kept: list[ScoredNode] = []
    for each in found:
        node = each.node
        if not any(node.id == one.node.id or _is_same_place(node, one.node) for one in kept):
            kept.append(each)
    return kept


def _is_same_place(one: Node, other: Node) -> bool:
    if not one.path or one.path != other.path or one.line_start is None or other.line_start is None:
        return False
    if "file" in (one.metadata.get("kind"), other.metadata.get("kind")):
        return False
    return one.line_start <= (other.line_end or other.line_start) and other.line_start <= (
        one.line_end or one.line_start
    )


def _nothing(found: FoundPassages) -> str:
    """A note that nothing answers the question, with the words that occur nowhere and the nearest passage."""
    words = ", ".join(code_span(mask_keys(word), MAX_NAME) for word in found.missing)
    missing = f" It does not mention {words}." if words else ""
    if found.nearest is None:
        return f"{NOTHING}{missing}"
    place = found.nearest.place
    name = f" ({code_span(place.name)})" if place.name else ""
    return f"{NOTHING}{missing} The nearest is {code_span(f'{place.path}:{place.start}')}{name}."


def _split(name: str) -> list[str]:
    return [part for part in name.replace("::", ".").replace("#", ".").replace("_", ".").split(".") if part] + [name]


def _definition_order(node: Node) -> tuple[int, int, int]:
    """The sort key of definitions: product before tests, types before functions, longest first."""
    is_type = node.node_type in (NodeType.STRUCT, NodeType.INTERFACE)
    return (
        path_distance(node.path or "", node.name),
        0 if is_type else 1,
        -((node.line_end or 0) - (node.line_start or 0)),
    )
