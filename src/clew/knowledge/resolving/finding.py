"""What is found for a question, in the order in which it answers: what defines a name that is asked for, then the shelf
that the question is for, each shelf in the order of its own search. What does not speak of the question is left out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from os.path import basename
from typing import Protocol

import msgspec

from clew.access import Principal
from clew.errors import ClewError
from clew.knowledge.code.files import Tree
from clew.knowledge.history.commit_shelf import HistoryShelf
from clew.knowledge.resolving.about_origins import read_origin
from clew.knowledge.resolving.definitions import Named, find_definitions, is_name, is_test, read_names
from clew.knowledge.resolving.intents import Classified, asking_words
from clew.knowledge.resolving.noted import find_notes, read_notes_question
from clew.knowledge.resolving.overview import find_named_overview, find_overview, is_overview, named_in
from clew.knowledge.resolving.periods import without_period
from clew.knowledge.resolving.phrases import Intent, Target
from clew.knowledge.resolving.recent import find_recent
from clew.knowledge.resolving.states import CodeState
from clew.knowledge.resolving.subjects import subject_words
from clew.knowledge.resolving.suiting import asks_who_is, suits_for
from clew.knowledge.resolving.support import DONE, FEW, NEAR_BEST, Wanted, actions_in, build_wanted, support_of
from clew.knowledge.resolving.uses import CodeLinks, find_assigned, read_use_question
from clew.knowledge.resolving.worded import asks_for_default, find_worded
from clew.knowledge.searching import Shelves
from clew.knowledge.shelves import Shelf
from clew.trail.kinds import NodeDomain
from clew.trail.nodes import Node, NodeFilter, ScoredNode
from clew.trail.readable import find_words
from clew.trail.store import Trail
from clew.trail.text import STOP

LOOKED_AT = 10
MAX_LOOKED_AT = 1_000
SHOWN = 6
OF_FIRST = 4
"""So many of the shelf that comes first stand before the best of the others."""
AT_HOME = 0.2
"""What the support of the shelf counts more that a question is usually for."""
CLEAR, NEVER = 0.65, 2.0
BODY_LINES = 60

_DOCUMENTS = "(?:docs?|documentation|readme|manual|guide)"
_HOW_TO = re.compile(
    rf"^(?:how (?:do|can|should|would|could) (?:i|you|one)\b|how to\b|what (?:do|does) the {_DOCUMENTS}\b)"
    rf"|\b{_DOCUMENTS} (?:say|says|tell|tells|said)\b|\baccording to the {_DOCUMENTS}\b",
    re.IGNORECASE,
)
_OF_DOCS = frozenset(("docs", "doc", "documentation", "readme", "manual", "guide"))
_BESIDE = re.compile(r"^\s*/[a-z][\w-]*\s+|\b(?:text|txt)(?= files?\b)", re.IGNORECASE)
"""A command, and what goes without saying: most files are of text."""
_DULL_WORDS = "time times way ways reason reasons always today good best easy easiest simplest"
_DULL = frozenset(_DULL_WORDS.split())
"""Words that a question has and its answer need not."""
_WHY = re.compile(r"^(?:so |and |but )?(?:why|how come)\b", re.IGNORECASE)
_IS_THERE = re.compile(
    r"^(?:so |and )?(?:is|are) there (?:an?|any|some)\b|^do(?:es)? (?:we|it|this \w+) have\b", re.IGNORECASE
)
_VERSION_OF = re.compile(r"^(?:which|what) (?:\S{1,80} )?versions?\b", re.IGNORECASE)
_WHO = re.compile(r"^(?:so |and )?(?:who|whom|whose)\b", re.IGNORECASE)
_README_SAYS = re.compile(r"\breadme\b", re.IGNORECASE)
_INSTALL = re.compile(
    r"^how (?:do|can|should|would|to)\b(?: (?:i|you|we|one))? ?install(?: (?:it|this|\w+|(?:this|the) \w+))?[\s?.!]*$",
    re.IGNORECASE,
)
_INSTALLING = re.compile(r"(?:^|/)(?:readme|install)", re.IGNORECASE)
_COMPARES = re.compile(r"^(?:please )?(?:compare|(?:what is |what's )?the differences? between)\b", re.IGNORECASE)
_DECIDED_ABOUT = re.compile(r"\b(?:decid\w{1,4}|decisions?)\b.{0,40}? (?:about|on|for|of) (.+)", re.IGNORECASE)
_OF_NOW = re.compile(r"^(?:so |and )?(?:where|which|how|is|are|does|do|can|should|find|locate)\b", re.IGNORECASE)
_README = re.compile(r"(?:^|/)readme\b", re.IGNORECASE)
_ABOUT_TESTS = re.compile(r"\btests?\b", re.IGNORECASE)
_HOMES = {Target.ARCHIVALIST: NodeDomain.HISTORY, Target.ACADEMIC: NodeDomain.ACADEMIC}


class Code(CodeLinks, CodeState, Protocol):
    """What is needed of the graph of code beside its shelf."""

    @property
    def is_whole(self) -> bool:
        """Whether all files are known."""
        ...

    @property
    def is_current(self) -> bool:
        """Whether all files and all edges are known."""
        ...

    @property
    def tree(self) -> Tree:
        """The files."""
        ...

    async def source(self, ref: str) -> str:
        """The lines of a symbol, each with its number."""
        ...

    def rarity(self, words: Sequence[str]) -> Mapping[str, float]:
        """How rare each word is; the more, the rarer. 0 for one that stands nowhere."""
        ...


class Candidate(msgspec.Struct, frozen=True):
    found: ScoredNode
    support: float


Found = Mapping[NodeDomain, Sequence[Candidate]]


class Finder:
    """Looks a question up on all shelves."""

    def __init__(self, trail: Trail, shelves: Shelves, code: Code | None = None) -> None:
        self._trail = trail
        self._shelves = shelves
        self._code = code

    async def find(self, question: str, what: Classified, *, by: Principal) -> list[ScoredNode]:
        """The best for a question, best first; nothing where nothing speaks of it."""
        used = read_use_question(question)
        if used is not None and used.plainly:
            question = used.plainly
        if is_overview(question):
            return await find_overview(self._trail, by=by, limit=OF_FIRST)
        if (name := named_in(question)) and (told := await self._named_overview(name, by)):
            return told
        asked = read_notes_question(question)
        noted = await find_notes(self._trail, asked, by=by, limit=SHOWN) if asked is not None else []
        if asked is not None and asked.is_only and (noted or not asked.topic):
            return noted
        if what.target is Target.ARCHIVALIST:
            question = without_period(question)
        wanted = self._wanted(question, what)
        if not wanted.weights and what.target is Target.ARCHIVALIST:
            history = self._shelves.get(NodeDomain.HISTORY)
            own = by.session if what.intent is Intent.RESUME else None
            return await find_recent(self._trail, history, question, by=by, limit=SHOWN, session=own)
        named = read_names(question)
        if _COMPARES.search(question) and (both := await self._each_definition(named, by)):
            return both
        is_of_version = (origin := read_origin(question)) is not None and origin.is_version
        defined = await self._definitions(named, by) if not is_of_version else []
        is_place = named.is_all and what.intent is Intent.LOCATE and what.target is Target.LIBRARIAN
        if defined and is_place and named.is_spelled:
            return defined[:SHOWN]
        found: Found = {
            domain: await self._supported(shelf, question, what, wanted, by) for domain, shelf in self._shelves.items()
        }
        found = await self._naming(named, found)
        home = home_of(question, what)
        if _README_SAYS.search(question) and home is NodeDomain.ACADEMIC:
            # what it does not say, others may not say for it
            said = found.get(home, [])
            found = {home: said if any(_README.search(each.found.node.path or "") for each in said) else []}
        if found.get(home) and home is NodeDomain.ACADEMIC:  # who asks how something is done is not helped by a test
            found = {domain: [each for each in held if not is_test(each.found.node)] for domain, held in found.items()}
        rest = _merged(found, home, needed_at_home(home, what))
        if home is NodeDomain.CODE and not defined:
            defined = await self._worded(question, what, wanted, by)
            is_place = bool(defined)
            if defined and asks_for_default(question):
                return defined[:SHOWN]
        if home is NodeDomain.CODE and (named.is_spelled or is_place):
            known = {each.node.id for each in defined}
            rest = [*defined[:OF_FIRST], *(each for each in rest if each.node.id not in known)]
        known = {each.node.id for each in noted}
        rest = [*noted, *(each for each in rest if each.node.id not in known)]
        return rest[:SHOWN] or await self._committed(question, wanted)

    async def _committed(self, question: str, wanted: Wanted) -> list[ScoredNode]:
        """The commits that speak of what nothing else here does; none where it is asked what is so now."""
        history = self._shelves.get(NodeDomain.HISTORY)
        if not isinstance(history, HistoryShelf) or _OF_NOW.search(question) or asks_who_is(question):
            return []
        found = await history.commits.search(question, limit=SHOWN)
        return [each for each in found if support_of(wanted, each.node) > wanted.least]

    async def _named_overview(self, name: str, by: Principal) -> list[ScoredNode]:
        return await find_named_overview(self._trail, name, self._folder, by=by, limit=OF_FIRST)

    @property
    def _folder(self) -> str:
        """What the folder of the project is called."""
        return basename(self._code.tree.root) if self._code is not None else ""

    def _wanted(self, question: str, what: Classified) -> Wanted:
        origin = read_origin(question)
        if origin is not None and origin.is_version:
            rarity = self._code.rarity(origin.words) if self._code is not None else {}
            return build_wanted(origin.words, rarity, origin.words)
        asking = asking_words(question, what.intent) | (_OF_DOCS if _HOW_TO.search(question) else frozenset())
        said = subject_words(_BESIDE.sub("", question), asking)
        words = [word for word in said if word not in _DULL] or said
        rarity = self._code.rarity(words) if self._code is not None else {}
        return build_wanted(words, rarity, needed_in(question, words, what), actions_in(question))

    async def _definitions(self, named: Named, by: Principal) -> list[ScoredNode]:
        shelf = self._shelves.get(NodeDomain.CODE)
        if shelf is None or not named.names:
            return []
        found = await find_definitions(shelf, named, by=by)
        if found or self._code is None or not named.is_spelled:
            return found
        assigned = [node for name in named.names for node in await find_assigned(self._code, name)]
        return [ScoredNode(node=node, similarity=1.0) for node in assigned[:OF_FIRST]]

    async def _worded(self, question: str, what: Classified, wanted: Wanted, by: Principal) -> list[ScoredNode]:
        """What has the words of a question for a place, or for a default, as its name."""
        shelf = self._shelves.get(NodeDomain.CODE)
        if shelf is None or not (what.intent is Intent.LOCATE or asks_for_default(question)):
            return []
        return await find_worded(shelf, tuple(wanted.weights), by=by)

    async def _each_definition(self, named: Named, by: Principal) -> list[ScoredNode]:
        """The first definition of each name; nothing where fewer than two are defined."""
        each = [await self._definitions(Named(names=(name,), is_spelled=True), by) for name in named.names]
        found = [defined[0] for defined in each if defined]
        return found if len(found) > 1 else []

    async def _supported(
        self, shelf: Shelf, question: str, what: Classified, wanted: Wanted, by: Principal
    ) -> list[Candidate]:
        """What speaks of the question, in the order of the search; tests last where none is asked for. No code says who
        did or does something."""
        if shelf.domain is NodeDomain.CODE and _WHO.search(question) and read_use_question(question) is None:
            return []
        asked = _HOW_TO.sub(" ", question).strip() if shelf.domain is NodeDomain.ACADEMIC else question
        place = _place_asked(question) if shelf.domain is NodeDomain.ACADEMIC else None
        found = await shelf.search(asked or question, by=by, limit=LOOKED_AT)
        if place is not None:
            found = await _there_first(shelf, asked or question, found, place, by)
        if not wanted.weights:
            return [Candidate(each, 0.0) for each in found if _README.search(each.node.path or "")]
        held = [Candidate(each, await self._support(wanted, each)) for each in found]
        best = max((each.support for each in held), default=0.0)
        kept = [each for each in held if each.support > wanted.least and each.support >= NEAR_BEST * best]
        suits = suits_for(question, what, self._folder)
        kept = [each for each in kept if all(may(each.found.node) for may in suits)]
        wants_tests = what.intent is Intent.LOCATE and _ABOUT_TESTS.search(question) is not None
        about = _about(question)
        return sorted(
            kept,
            key=lambda each: (
                not wants_tests and is_test(each.found.node),
                -len(about & set(find_words(each.found.node.name.lower()))),
            ),
        )

    async def _naming(self, named: Named, found: Found) -> Found:
        """Where a question spells a name that can be nothing else and some source has it, those that have it: the
        others have its words, and are about something else."""
        names = [name for name in named.names if is_name(name)]
        if not names:
            return found
        having = {
            domain: [each for each in held if await self._has_one(names, each.found.node)]
            for domain, held in found.items()
        }
        return having if any(having.values()) else found

    async def _has_one(self, names: Sequence[str], node: Node) -> bool:
        text = f"{node.name}\n{node.content}\n{node.path or ''}"
        if node.domain is NodeDomain.CODE and self._code is not None:
            with suppress(ClewError):  # it has changed meanwhile; what is known of it must do
                text += await self._code.source(node.id)
        return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in names)

    async def _support(self, wanted: Wanted, found: ScoredNode) -> float:
        support = support_of(wanted, found.node)
        if support >= 1 or found.node.domain is not NodeDomain.CODE or self._code is None:
            return support
        try:
            source = await self._code.source(found.node.id)
        except ClewError:  # it has changed meanwhile; what is known of it must do
            return support
        return support_of(wanted, found.node, "\n".join(source.split("\n")[:BODY_LINES]))


def needed_in(question: str, words: Sequence[str], what: Classified) -> frozenset[str]:
    """The words that a source must have to answer: all, where it is asked whether there is something; what was done to
    it, where that is asked about; and that it speaks of versions, where one is asked for."""
    if _IS_THERE.search(question) and len(words) <= FEW:
        return frozenset(words)
    if _VERSION_OF.search(question):
        return frozenset(("version", "versions"))
    is_past = what.target is Target.ARCHIVALIST or _WHY.search(question) is not None
    return frozenset(word for word in words if is_past and word in DONE)


def home_of(question: str, what: Classified) -> NodeDomain:
    """The domain that a question is for."""
    if what.target in _HOMES:
        return _HOMES[what.target]
    if _HOW_TO.search(question):
        return NodeDomain.ACADEMIC
    return NodeDomain.HISTORY if _WHY.search(question) else NodeDomain.CODE


def needed_at_home(home: NodeDomain, what: Classified) -> float:
    """The support from which on the domain that a question is for comes first, whatever the others have: any where it
    asks for that domain, or for a place in code."""
    if home is not NodeDomain.CODE or (what.target is Target.LIBRARIAN and what.intent is Intent.LOCATE):
        return 0.0
    return CLEAR if what.target is Target.LIBRARIAN and what.intent is not Intent.GENERAL else NEVER


def _about(question: str) -> set[str]:
    """The words of what was decided about, also those that say little: one of them may be the title of a decision."""
    found = _DECIDED_ABOUT.search(question[:MAX_LOOKED_AT])
    return {word for word in find_words(found[1].lower()) if word not in STOP} if found is not None else set()


def _place_asked(question: str) -> re.Pattern[str] | None:
    """Which documents come first where a question asks what the README says, or how the project is installed."""
    if _README_SAYS.search(question):
        return _README
    return _INSTALLING if _INSTALL.search(question) else None


async def _there_first(
    shelf: Shelf, asked: str, found: Sequence[ScoredNode], place: re.Pattern[str], by: Principal
) -> list[ScoredNode]:
    """What is found in some documents, those nearest to the top of the project first, and then all else."""
    globs = ("README*", "readme*", "Readme*", *(("*install*", "*INSTALL*") if place is _INSTALLING else ()))
    more = [
        each
        for glob in globs
        for each in await shelf.search(asked, by=by, limit=LOOKED_AT, filter=NodeFilter(path=glob))
    ]
    once = {each.node.id: each for each in (*more, *found)}
    return sorted(once.values(), key=lambda each: _far(each.node.path or "", place))


def _far(path: str, place: re.Pattern[str]) -> tuple[bool, int]:
    is_there = place.search(path) is not None
    return not is_there, path.count("/") if is_there else 0


def _merged(found: Mapping[NodeDomain, Sequence[Candidate]], home: NodeDomain, needed: float) -> list[ScoredNode]:
    """The shelves after each other: that of the question, where its best has the support that is needed, then by how
    well their best speaks of the question. The best two of the others come before the last of the first."""

    def place(domain: NodeDomain) -> tuple[bool, float, bool]:
        best = max((each.support for each in found[domain]), default=0.0)
        is_first = domain is home and best >= needed
        return (not is_first, -round(best + (AT_HOME if domain is home else 0.0), 3), domain is not NodeDomain.CODE)

    order = sorted((domain for domain in found if found[domain]), key=place)
    if not order:
        return []
    best = max(each.support for domain in order for each in found[domain])
    first, others = order[0], order[1:]
    near = [each for domain in others for each in found[domain] if each.support >= NEAR_BEST * best]
    lines = [*found[first][:OF_FIRST], *near[: SHOWN - OF_FIRST], *found[first][OF_FIRST:]]
    return [each.found for each in lines]
