"""Finds the sources of an answer: relation, history and project handlers first, then one search over everything."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from clew.access import Principal
from clew.catalog.operations.text import code_span
from clew.clock import Clock
from clew.errors import ClewError
from clew.knowledge.answering.history import WHICH_VERSION, HistoryAnswer, HistoryHandler
from clew.knowledge.answering.notes import ABOUT, Notes
from clew.knowledge.answering.question import (
    ASKING,
    CHANGED,
    QUANTITY,
    ParsedQuestion,
    QuestionKind,
    Tests,
    content_words,
    is_identifier,
)
from clew.knowledge.answering.sources import passage_node, path_distance, used_line, with_doc
from clew.knowledge.answering.uses import Relation, find_uses, read_relation
from clew.knowledge.code.files import TEST, kind_of
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.search.passages import SYMBOL_KINDS
from clew.knowledge.code.search.postings import PassagePlace
from clew.knowledge.code.search.ranking import Shares
from clew.knowledge.code.search.search_index import PassageHit
from clew.knowledge.git.log import COMMIT_PREFIX
from clew.knowledge.nodes.kinds import NodeType
from clew.knowledge.nodes.node_store import Node, ScoredNode
from clew.knowledge.project.facts import ProjectFacts
from clew.lazy_pattern import lazy_pattern
from clew.secrecy import mask_keys
from clew.trail.search.text import STOP

SHOWN = 6
SHOWN_USES = 10
MAX_DEFINITIONS, MAX_NAME = 3, 120
FEW_WORDS = 2
"""With so few words beside its names, a question asks for the definitions of the names."""
PREFERRED = 0.2
"""The bonus of a source of the kind that a question asks for."""
COMMIT_COVER = 0.6
"""Commits that cover this share of a question answer it, whatever its kind."""
NOTHING = "Nothing in this folder answers that."
_WHO = lazy_pattern(r"\b(?:who|whom|whose|author|when)\b", re.IGNORECASE)


class FoundSources(NamedTuple):
    """The sources of an answer, best first. `texts` replaces what a source says, by its id; `is_listing` where the
    sources are a complete list, which needs no wording."""

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
        """The sources of an answer in a state of the files; none, with a note, where nothing answers."""
        await self._code.warm()
        if question.relation is not None:
            relation = await read_relation(question, question.relation, self._code)
            used = await self._uses(question, relation) if relation is not None else None
            if used is not None:
                return used
        weights = self._weights(question)
        noted = await self._notes.of_session(question, by) or await self._notes.of_kind(question, weights, by)
        if noted:
            return FoundSources(noted, [], is_listing=True)
        if question.asks_history:
            past = await self.history.answer(question, state, self._clock.now())
            if past is not None:
                return await self._with_gaps(question, _listing(past))
        if question.kind is QuestionKind.OVERVIEW:
            return FoundSources(await self._overview(), [])
        return await self._with_gaps(question, await self._search(question, state, weights, by))

    async def _with_gaps(self, question: ParsedQuestion, found: FoundSources) -> FoundSources:
        gaps = await self.history.gaps() if question.kind is QuestionKind.HISTORY else []
        return found._replace(notes=[*found.notes, *gaps])

    async def _search(
        self, question: ParsedQuestion, state: str, weights: Mapping[str, float], by: Principal
    ) -> FoundSources:
        is_past = question.kind is QuestionKind.HISTORY  # which may speak of what is gone
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
        found = await search_passages(self._code, question)
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
        """The first version with a commit that answers which version has something."""
        is_asked = question.kind is QuestionKind.HISTORY and WHICH_VERSION.search(question.text)
        if not is_asked or not best.id.startswith(COMMIT_PREFIX):
            return []
        return [await self.history.first_version(best.id.removeprefix(COMMIT_PREFIX))]

    async def _uses(self, question: ParsedQuestion, relation: Relation) -> FoundSources | None:
        """The uses of a name; None where nothing defines or uses it."""
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
        """The answer that nothing uses a name, with the place of its definition."""
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
        """That no code has a name, with names close to it."""
        shown = code_span(mask_keys(name), MAX_NAME)
        hint = await self._code.suggest(name)
        return f"Nothing in this folder is named {shown}.{hint and f' {hint}'}"

    async def _definitions(self, question: ParsedQuestion) -> list[ScoredNode]:
        """The definitions of the names of a question, where it has few other words."""
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
        """Commits on the topic: for a question about the past, or where nothing else answers."""
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
    """Passages, notes of changelogs and commits by the share of the question's words that they have. A question with
    who or when prefers commits, and one about a version prefers notes."""
    wants_person, wants_version = _WHO.search(question.text), WHICH_VERSION.search(question.text)
    scored = [
        (hit.cover - (PREFERRED if wants_person else 0.0), each) for hit, each in zip(hits, passages, strict=True)
    ]
    for each in past:
        is_preferred = wants_person if each.node.id.startswith(COMMIT_PREFIX) else wants_version
        scored.append((each.similarity + (PREFERRED if is_preferred else 0.0), each))
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
    """That nothing answers, the words that occur nowhere, and the nearest passage."""
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
    """Product before tests, types before functions, then the longest."""
    is_type = node.node_type in (NodeType.STRUCT, NodeType.INTERFACE)
    return (
        path_distance(node.path or "", node.name),
        0 if is_type else 1,
        -((node.line_end or 0) - (node.line_start or 0)),
    )


# -- hybrid search over passages ------------------------------------------------------------------------------------

LOOKED_AT = 60
WEAK, FAINT = 0.45, 0.05
"""A best passage that covers less of the question is weak; below FAINT it has nothing to do with it."""
HALF = 0.5
"""The cover from which a passage answers a question with a name that no file has. A missing word with less than this
part of the mean meaning of a question's words says nothing."""
PADDING = 0.4
"""A passage with less than this share of the best score only pads the answer."""
FOCUS = 3
"""A question without names is about its first content words. If these are missing, other matches do not answer it."""
MAX_NUMBER_GAP, MAX_EXCERPT = 2, 200
"""Lines between the words of a quantity and its number."""
SHARES = {
    QuestionKind.CODE: Shares(text=0.75, changelog=0.6),
    QuestionKind.EXPLAIN: Shares(text=0.75, changelog=0.6),
    QuestionKind.HOWTO: Shares(text=1.1, changelog=0.6),
    QuestionKind.HISTORY: Shares(text=1.0, changelog=1.2),
    QuestionKind.QUANTITY: Shares(text=1.0, changelog=0.6),
    QuestionKind.OVERVIEW: Shares(text=1.2, changelog=0.6),
}
MAX_WITH_WORD, MAX_WITH_BOTH, WHOLE = 2_000, 200, 0.99
"""Passages with a part of a name and with both parts that are looked at, and the cover of a passage that has both."""
EVERYWHERE = Shares(test=1.0, aside=1.0, text=1.0, changelog=1.0)
_BEFORE_VERB_WORDS = """
    i you we they he she it who what which that to will would can could should may might must do does did not be been
    being am is are was were has have had get gets got getting still never always just also only and
"""
_BEFORE_VERBS = frozenset(_BEFORE_VERB_WORDS.split())
_AFTER_VERB_WORDS = "up out off away down back over around behind into onto me him it us them itself"
_AFTER_VERBS = frozenset(_AFTER_VERB_WORDS.split())
_DESCRIPTIVE = lazy_pattern(r"(?:ly|ed|ing|est|ful)$")
_TOKEN = lazy_pattern(r"[A-Za-z][\w']*|[^\sA-Za-z]")
_NUMBER = lazy_pattern(r"(?<![\w.])\d")
_QUOTED_WORD = r"(?:(?!(?P=quote)(?!\w))\S){1,60}"
_QUOTED = lazy_pattern(rf"(?<!\w)(?P<quote>[\"'`])(?P<text>{_QUOTED_WORD}(?: {_QUOTED_WORD}){{1,20}})(?P=quote)(?!\w)")
"""A quotation of several words, such as a message."""
_NUMBERED = lazy_pattern(r"(?<![\w/.-])([A-Za-z]+)[/-](\d+(?:\.\d+)*)(?![\w/-]|\.\w)")
"""A word and a number that are one name, such as HTTP/3 or SHA-256. The index has its parts."""


class FoundPassages(NamedTuple):
    """The passages for a question, best first, and the largest cover among them. `nearest` is the best where nothing
    answers the question, and `missing` are its nouns that occur nowhere."""

    hits: list[PassageHit]
    nearest: PassageHit | None = None
    missing: tuple[str, ...] = ()
    cover: float = 0.0


async def search_passages(code: CodeGraph, question: ParsedQuestion) -> FoundPassages:
    """Hybrid search by words and vectors: implementation before tests, near-identical hits folded, and nothing where
    the words of a question are not in the repository. Passages with a text that the question quotes come first."""
    words = [word for spelled in code.text.correct(question.words) for word in spelled]
    shares = SHARES[question.kind]
    if question.tests in (Tests.ALSO, Tests.ONLY):
        shares = shares._replace(test=1.0)
    hits = await code.passages(words, shares=shares, limit=LOOKED_AT)
    quoted = _wanted(question, await _find_quoted(code, question, hits, shares))
    hits = _wanted(question, hits)
    if quoted:
        return FoundPassages(_fold([*quoted, *hits]), cover=WHOLE)
    best = max((hit.cover for hit in hits[:SHOWN]), default=0.0)
    missing = _missing_nouns(question, code) if best < WEAK else []
    is_absent = best < FAINT or (not question.names and not set(question.words[:FOCUS]).isdisjoint(missing))
    if is_absent or (question.kind is QuestionKind.QUANTITY and not await _has_number(code, question, hits[:SHOWN])):
        missing = missing or _missing_nouns(question, code)
        return FoundPassages([], hits[0] if hits else None, tuple(missing))
    return FoundPassages(_fold(hit for hit in hits if hit.score >= PADDING * hits[0].score), cover=best)


async def find_absent_name(code: CodeGraph, question: ParsedQuestion) -> str:
    """A name of a word and a number that no passage has in any spelling. Empty if too many passages have both parts to
    look at all of them."""
    for found in _NUMBERED.finditer(question.text):
        word, number = found.groups()
        hits = await code.passages([word, number], shares=EVERYWHERE, limit=MAX_WITH_WORD)
        both = [hit.place for hit in hits if hit.cover >= WHOLE]
        spelled = re.compile(rf"(?<![A-Za-z]){word}[\s/_.-]?{re.escape(number)}(?!\d)", re.IGNORECASE)
        if len(both) <= MAX_WITH_BOTH and not any(
            spelled.search("\n".join(each.lines)) for each in await code.excerpts(both)
        ):
            return found[0]
    return ""


async def _find_quoted(
    code: CodeGraph, question: ParsedQuestion, hits: Sequence[PassageHit], shares: Shares
) -> list[PassageHit]:
    """The passages with a text of several words that the question quotes: among the hits of the question and those with
    all words of the text, best first."""
    found = []
    for each in _QUOTED.finditer(question.text):
        phrase = " ".join(each["text"].split()).lower()
        with_words = await code.passages(content_words(phrase), shares=shares, limit=MAX_WITH_WORD)
        possible = [*[hit for hit in with_words if hit.cover >= WHOLE][:MAX_WITH_BOTH], *hits]
        excerpts = await code.excerpts([hit.place for hit in possible])
        texts = (" ".join("\n".join(excerpt.lines).split()).lower() for excerpt in excerpts)
        found += [hit for hit, text in zip(possible, texts, strict=True) if phrase in text]
    return found


def _wanted(question: ParsedQuestion, hits: list[PassageHit]) -> list[PassageHit]:
    """The hits without tests, or tests alone, where the question says so."""
    if question.tests not in (Tests.ONLY, Tests.NEVER):
        return hits
    is_asked = question.tests is Tests.ONLY
    return [hit for hit in hits if bool(kind_of(hit.place.path, hit.place.name) & TEST) is is_asked]


def _fold(hits: Iterable[PassageHit]) -> list[PassageHit]:
    """The first hits without those that overlap a better one, or are the same function in a sibling file."""
    kept: list[PassageHit] = []
    for hit in hits:
        if not any(_overlap(hit.place, one.place) or _are_twins(hit.place, one.place) for one in kept):
            kept.append(hit)
        if len(kept) == SHOWN:
            break
    return kept


def _missing_nouns(question: ParsedQuestion, code: CodeGraph) -> list[str]:
    """Words of a question in the position of a noun that occur nowhere, not even with another spelling, and that say
    something."""
    tokens = _TOKEN.findall(question.text)
    lower = [token.lower() for token in tokens]
    found = []
    for at, word in enumerate(lower):
        before, after = (lower[at - 1] if at else ""), (lower[at + 1] if at + 1 < len(lower) else "")
        if len(word) < 3 or not word.isalpha() or before in _BEFORE_VERBS or after in _AFTER_VERBS:
            continue
        is_noun = word not in STOP | ASKING and not _DESCRIPTIVE.search(word) and not CHANGED.fullmatch(word)
        if is_noun and not is_identifier(tokens[at]):
            found.append(tokens[at])
    known = code.text.rarity(found)
    absent = [word for word in found if not known[word]]
    missing = [word for word, spelled in zip(absent, code.text.correct(absent), strict=True) if spelled == (word,)]
    meaning = code.text.importance(question.words) if missing else {}
    return [word for word in missing if meaning.get(word, 1.0) >= HALF]


def _overlap(one: PassagePlace, other: PassagePlace) -> bool:
    return one.path == other.path and one.start <= other.end and other.start <= one.end


def _are_twins(one: PassagePlace, other: PassagePlace) -> bool:
    """Whether two symbols have one qualified name and about the same length in different files."""
    is_same = one.kind in SYMBOL_KINDS and (one.kind, one.name) == (other.kind, other.name) and one.path != other.path
    return is_same and abs((one.end - one.start) - (other.end - other.start)) <= 1 + (one.end - one.start) // 10


async def _has_number(code: CodeGraph, question: ParsedQuestion, hits: Sequence[PassageHit]) -> bool:
    """Whether a passage has a number next to the words for what is counted and half of the other words."""
    asked = QUANTITY.search(question.text)
    counted = [word.lower().rstrip("s") for word in content_words(asked["what"])] if asked is not None else []
    wanted = {word.lower().rstrip("s") for word in question.words}
    for excerpt in await code.excerpts([hit.place for hit in hits]):
        lines = excerpt.lines[:MAX_EXCERPT]
        for at, line in enumerate(lines):
            near = " ".join(lines[max(0, at - MAX_NUMBER_GAP) : at + MAX_NUMBER_GAP + 1]).lower()
            is_near = all(word in near for word in counted) and 2 * sum(word in near for word in wanted) >= len(wanted)
            if is_near and _NUMBER.search(line):
                return True
    return False
