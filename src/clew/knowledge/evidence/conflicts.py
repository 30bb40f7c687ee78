"""Conflicts between sources: detection, which source wins (SYL-84), and the list of unresolved conflicts on the trail
(SYL-85)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import combinations
from uuid import UUID, uuid5

import msgspec

from clew.access import Principal
from clew.catalog.text import inline
from clew.clock import Clock
from clew.errors import AlreadyExists, NotFound
from clew.knowledge.evidence.citations import COMMIT_PREFIX
from clew.knowledge.evidence.trust import level_of, trust_of
from clew.knowledge.text import coverage, likeness, stems
from clew.trail.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.kinds import ConflictKind, NodeDomain
from clew.trail.nodes import UNVERIFIED, Node
from clew.trail.selector import Selector
from clew.trail.store import Trail

APART = timedelta(days=30)
CLAIM = range(11, 200)
"""Length of a sentence that counts as a claim."""
SHARED_WORDS, WORD_LETTERS = 2, 4
SAME_SUBJECT = 0.5
"""Two subjects are the same if more than this share of the shorter one's words is in the other."""
MOST_CLAIMS = 200
"""Only so many claims are compared with each other."""
SCHEMA = "conflict.v1"
OPEN, SETTLED = "conflict:open", "conflict:settled"

_SENTENCE = re.compile(r"[.!?](?=\s|$)|\n")
_USES = re.compile(r"\buses\s+[`'\"]?([\w.+#/-]*\w)")
_WORD = re.compile(r"\w+")
_NAMESPACE = UUID("0b9a4f1c-6f0e-5f0a-8a51-7e0d3c5b9d27")
_MAX_TITLE = 200


class Winner(msgspec.Struct, frozen=True, kw_only=True):
    """The node to believe, and why."""

    node: Node
    reason: str


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """Two nodes that disagree on a subject. `resolution` says which one to believe. A recorded conflict has an `id`."""

    kind: ConflictKind
    description: str
    resolution: str = ""
    subject: str = ""
    node_a: str = ""
    node_b: str = ""
    id: str = ""
    resolved: bool = False
    detected_at: datetime | None = None
    resolved_at: datetime | None = None


def winner(a: Node, b: Node, at: datetime) -> Winner:
    """Decide between two nodes: code wins over anything else, then higher trust, then the newer one."""
    for one, other in ((a, b), (b, a)):
        if one.domain is NodeDomain.CODE and other.domain is not NodeDomain.CODE:
            return Winner(node=one, reason="code is the source of truth")
    trust_a, trust_b = trust_of(a, at), trust_of(b, at)
    if trust_a != trust_b:
        better = a if trust_a > trust_b else b
        high, low = (level_of(trust)[0] for trust in sorted((trust_a, trust_b), reverse=True))
        return Winner(node=better, reason=f"higher trust: {high} over {low}")
    return Winner(node=a if a.at > b.at else b, reason="equally trusted, the newer one counts")


# -- detection -------------------------------------------------------------------------------------------------


def detect(nodes: Sequence[Node], at: datetime, *, in_code: Callable[[str], bool] | None = None) -> list[Conflict]:
    """Find conflicts among nodes: over time, history against code, then contradicting statements.

    `in_code` tells whether a name occurs anywhere in the code; without it only the given code nodes count. Superseded
    nodes are settled, and commits describe the past: neither takes part.
    """
    current = [node for node in nodes if node.superseded_by is None and not node.id.startswith(COMMIT_PREFIX)]
    said = [
        (node, claim) for node in current if node.domain is not NodeDomain.CODE for claim in claims_of(node.content)
    ]
    return [
        *_over_time(current, at),
        *_against_code(current, in_code),
        *_other_use(said, at),
        *_opposed(said[:MOST_CLAIMS], at),
    ]


def claims_of(text: str) -> list[str]:
    """The sentences of a text with more than 10 and fewer than 200 characters."""
    sentences = (each.strip() for each in _SENTENCE.split(text.removeprefix(UNVERIFIED)))
    return [each for each in sentences if len(each) in CLAIM]


def _over_time(nodes: Sequence[Node], at: datetime) -> Iterator[Conflict]:
    """The oldest and newest node of one name, if they are over 30 days apart and differ. Code has no age."""
    named: dict[str, list[Node]] = {}
    for node in nodes:
        named.setdefault(_folded(node.name), []).append(node)
    for subject, group in named.items():
        oldest, newest = min(group, key=lambda node: node.at), max(group, key=lambda node: node.at)
        if oldest.domain is newest.domain is NodeDomain.CODE:
            continue
        if newest.at - oldest.at > APART and _folded(oldest.content) != _folded(newest.content):
            days = (newest.at - oldest.at).days
            description = f"what is known of '{inline(subject)}' spans {days} days; the older part may be out of date"
            yield _conflict(ConflictKind.TEMPORAL, subject, oldest, newest, description, _believe(oldest, newest, at))


def _against_code(nodes: Sequence[Node], in_code: Callable[[str], bool] | None) -> Iterator[Conflict]:
    """Claims of history that something is used which the code does not mention."""
    code = [node for node in nodes if node.domain is NodeDomain.CODE]
    texts = [f"{node.name} {node.signature or ''} {node.content}".casefold() for node in code]
    for node in nodes:
        for claim in claims_of(node.content) if code and node.domain is NodeDomain.HISTORY else ():
            missing = [used for used in _used(claim) if not any(used in text for text in texts)]
            if any(in_code is None or not in_code(used) for used in missing):
                description = f"history says '{inline(claim)}', but the code shows nothing of it"
                believe = "the code; it is the source of truth"
                yield _conflict(ConflictKind.SOURCE_MISMATCH, claim, node, code[0], description, believe)


def _other_use(said: Sequence[tuple[Node, str]], at: datetime) -> Iterator[Conflict]:
    """Claims of two nodes that one subject `uses` different things for one purpose."""
    claims = [(node, claim, used, _words(claim)) for node, claim in said if (used := _used(claim))]
    for (a, first, uses_a, words_a), (b, second, uses_b, words_b) in combinations(claims[:MOST_CLAIMS], 2):
        shared = words_a & words_b
        is_other = a.id != b.id and uses_a.isdisjoint(uses_b)
        if is_other and len(shared) >= SHARED_WORDS and _have_same_subject(first, second):
            description = f"'{inline(first)}' contradicts '{inline(second)}'"
            yield _conflict(ConflictKind.SEMANTIC, " ".join(sorted(shared)), a, b, description, _believe(a, b, at))


def _opposed(said: Sequence[tuple[Node, str]], at: datetime) -> Iterator[Conflict]:
    """Pairs of nodes that state different numbers for one thing, or the opposite. One of them must be a note."""
    seen: set[frozenset[str]] = set()
    for (a, first), (b, second) in combinations(said, 2):
        pair, has_note = frozenset((a.id, b.id)), any(_is_note(node) for node in (a, b))
        if len(pair) == 2 and has_note and pair not in seen and are_opposed(first, second):
            seen.add(pair)
            shared = " ".join(sorted(stems(first) & stems(second)))
            description = f"'{inline(first)}' contradicts '{inline(second)}'"
            yield _conflict(ConflictKind.SEMANTIC, shared, a, b, description, _believe(a, b, at))


def _is_note(node: Node) -> bool:
    return node.domain is NodeDomain.HISTORY and not node.path


def _conflict(kind: ConflictKind, subject: str, a: Node, b: Node, description: str, resolution: str) -> Conflict:
    return Conflict(
        kind=kind, subject=subject, node_a=a.id, node_b=b.id, description=description, resolution=resolution
    )


def _believe(a: Node, b: Node, at: datetime) -> str:
    found = winner(a, b, at)
    return f"{inline(found.node.name)} of {found.node.at:%Y-%m-%d} ({found.reason})"


def _have_same_subject(first: str, second: str) -> bool:
    """Whether two claims have one subject (the words before `uses`) and, where both name one, one purpose."""
    (subject_a, purpose_a), (subject_b, purpose_b) = _around_use(first), _around_use(second)
    is_purpose = not (purpose_a and purpose_b) or not purpose_a.isdisjoint(purpose_b)
    return is_purpose and coverage(subject_a, subject_b) > SAME_SUBJECT


def _around_use(claim: str) -> tuple[frozenset[str], frozenset[str]]:
    found = _USES.search(claim.casefold())
    return (stems(claim[: found.start()]), stems(claim[found.end() :])) if found else (frozenset(), frozenset())


def _used(claim: str) -> frozenset[str]:
    return frozenset(_USES.findall(claim.casefold()))


def _words(claim: str) -> set[str]:
    return {word for word in _WORD.findall(claim.casefold()) if len(word) >= WORD_LETTERS}


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


# -- opposite statements ---------------------------------------------------------------------------------------

_ALIKE, _FEWEST_SHARED = 0.6, 2
"""Likeness, and shared words, of two statements that differ only by a denial."""
_NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve"
_NUMBERS = {word: str(number) for number, word in enumerate(_NUMBER_WORDS.split()) if word != "one"} | {"once": "1"}
_TOKEN = re.compile(r"#?\w+(?:[.:]\d+)*(?:'\w+)?")
_NUMBER = re.compile(r"\d+(?:[.:]\d+)*")
_DENIALS = frozenset(("never", "not", "no", "without", "avoid", "stop", "stopped", "cannot", "nor"))
_INSTEAD = frozenset((("rather", "than"), ("instead", "of")))
_COUNTING = frozenset(("time", "at", "most", "least", "about", "to", "up", "exact"))
_REFERENCES = frozenset(
    ("issu", "pr", "gh", "section", "line", "page", "step", "releas", "ticket", "bug", "figur", "tabl")
)
"""Stems of words before a number that names something instead of counting it."""
_NEAR = 2


class Statement(msgspec.Struct, frozen=True):
    """A parsed sentence: its words, the numbers given for each thing, the numbers denied, and whether it denies."""

    about: frozenset[str]
    given: dict[str, set[str]]
    denied: set[str]
    is_denial: bool

    @property
    def numbers(self) -> set[str]:
        return {number for numbers in self.given.values() for number in numbers}


def are_opposed(one: str, other: str) -> bool:
    """Whether two sentences give different numbers for one thing, or one denies the other."""
    a, b = _parse_statement(one), _parse_statement(other)
    if coverage(a.about, b.about) > SAME_SUBJECT and (_differ(a, b) or a.denied & b.numbers or b.denied & a.numbers):
        return True
    has_numbers = bool(a.given or b.given or a.denied or b.denied)
    is_alike = likeness(a.about, b.about) >= _ALIKE and len(a.about & b.about) >= _FEWEST_SHARED
    return not has_numbers and is_alike and a.is_denial is not b.is_denial


def _parse_statement(sentence: str) -> Statement:
    words = [_NUMBERS.get(word, word) for word in _TOKEN.findall(sentence.lower())]
    given: dict[str, set[str]] = {}
    denied: set[str] = set()
    for at, word in enumerate(words):
        if not _NUMBER.fullmatch(word):
            continue
        before = words[max(0, at - _NEAR) : at]
        if tuple(before) in _INSTEAD or any(map(_denies, before)):
            denied.add(word)
            continue
        for stem in _counted(before, words[at + 1 : at + 1 + _NEAR]):
            given.setdefault(stem, set()).add(word)
    about = frozenset(stem for stem in stems(" ".join(words)) if not stem.isdigit()) - _COUNTING
    return Statement(about, given, denied, any(map(_denies, words)))


def _differ(a: Statement, b: Statement) -> bool:
    return any(a.given[thing].isdisjoint(b.given[thing]) for thing in a.given.keys() & b.given.keys())


def _denies(word: str) -> bool:
    return word in _DENIALS or word.endswith("n't")


def _counted(before: list[str], after: list[str]) -> frozenset[str]:
    """The things that a number counts: the words next to it. Empty if the number only names something."""
    found = stems(" ".join((*before, *after)))
    things = frozenset(stem for stem in found if not stem[0].isdigit()) - _COUNTING
    return frozenset() if things & _REFERENCES else things


# -- conflicts on the trail ------------------------------------------------------------------------------------


async def record_conflicts(trail: Trail, found: Sequence[Conflict], *, by: Principal) -> list[Conflict]:
    """Write conflicts to the trail and return them as recorded. A known conflict is not written again: a resolved one
    stays resolved."""
    return [await _record(trail, each, by) for each in found]


async def list_conflicts(trail: Trail, *, by: Principal, limit: int = 50) -> list[Conflict]:
    """Unresolved conflicts, newest first."""
    page = await trail.records.list(Selector(schema_name=SCHEMA, all_tags=(OPEN,)), by=by, limit=limit)
    return [_to_conflict(each) for each in page.items]


async def resolve_conflict(trail: Trail, id: str, resolution: str, *, by: Principal, clock: Clock) -> Conflict:
    """Mark a conflict as resolved. Raises NotFound for an id that is no conflict, Conflict for a concurrent change."""
    found = await trail.records.get(id, by=by)
    if found.schema_name != SCHEMA:
        raise NotFound("conflict", id)
    settled = {"resolution": resolution, "resolved": True, "resolved_at": clock.now().isoformat()}
    change = Change(context={**found.context, **settled}, tags=(*(set(found.tags) - {OPEN}), SETTLED))
    return _to_conflict(await trail.records.update(id, change, expect=found.version, by=by))


async def _record(trail: Trail, conflict: Conflict, by: Principal) -> Conflict:
    id = _id_of(conflict, by)
    kept = ("subject", "node_a", "node_b", "description", "resolution", "resolved")
    draft = Draft(
        id=id,
        title=f"{conflict.kind.label.replace('_', ' ')}: {conflict.subject}"[:_MAX_TITLE],
        schema_name=SCHEMA,
        tags=(OPEN,),
        context={"kind": int(conflict.kind), **{field: getattr(conflict, field) for field in kept}},
        embed="never",
    )
    try:
        return _to_conflict(await trail.records.create(draft, by=by))
    except AlreadyExists:
        return _to_conflict(await trail.records.get(id, by=by))


def _id_of(conflict: Conflict, by: Principal) -> str:
    """The same id whenever the same two nodes disagree on the same subject."""
    ends = "\n".join(sorted((conflict.node_a, conflict.node_b)))
    return str(uuid5(_NAMESPACE, f"{by.owner_id}\n{int(conflict.kind)}\n{ends}\n{conflict.subject.casefold()}"))


def _to_conflict(found: Breadcrumb) -> Conflict:
    kept = msgspec.convert({**found.context, "id": found.id}, Conflict)
    return msgspec.structs.replace(kept, kind=ConflictKind(kept.kind), detected_at=found.created_at)
