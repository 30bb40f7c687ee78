"""Conflicts between sources: detection, which source wins (SYL-84), and the list of unresolved conflicts on the trail
(SYL-85)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import combinations

import msgspec

from clew.access import Principal
from clew.catalog.operations.text import inline
from clew.clock import Clock
from clew.errors import AlreadyExists, ConfigError, NotFound
from clew.knowledge.evidence.trust import level_of, trust_of
from clew.knowledge.git.log import COMMIT_PREFIX
from clew.knowledge.nodes.kinds import ConflictKind, NodeDomain
from clew.knowledge.nodes.node_store import UNVERIFIED, Node
from clew.knowledge.text import coverage, likeness, stems
from clew.knowledge.upsert import keyed_id
from clew.lazy_pattern import lazy_pattern
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

APART = timedelta(days=30)
CLAIM = range(11, 200)
"""The minimum and maximum length of a sentence that is read as a claim."""
SHARED_WORDS, WORD_LETTERS = 2, 4
SAME_SUBJECT = 0.5
"""Two subjects are the same if more than this share of the shorter one's words is in the other."""
MOST_CLAIMS = 200
"""The most claims that are compared with each other."""
SCHEMA = "conflict.v1"
OPEN, SETTLED = "conflict:open", "conflict:settled"

_SENTENCE = lazy_pattern(r"[.!?](?=\s|$)|\n")
_USES = lazy_pattern(r"\buses\s+[`'\"]?([\w.+#/-]*\w)")
_WORD = lazy_pattern(r"\w+")
_MAX_TITLE = 200


class SourceConflict(msgspec.Struct, frozen=True, kw_only=True):
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


def winner(a: Node, b: Node, at: datetime) -> tuple[Node, str]:
    """The node to believe, and why: code wins over anything else, then higher trust, then the newer one."""
    for one, other in ((a, b), (b, a)):
        if one.domain is NodeDomain.CODE and other.domain is not NodeDomain.CODE:
            return one, "code is the source of truth"
    trust_a, trust_b = trust_of(a, at), trust_of(b, at)
    if trust_a != trust_b:
        high, low = (level_of(trust)[0] for trust in sorted((trust_a, trust_b), reverse=True))
        return a if trust_a > trust_b else b, f"higher trust: {high} over {low}"
    return a if a.at > b.at else b, "equally trusted, the newer one counts"


# -- detection -------------------------------------------------------------------------------------------------


def detect(
    nodes: Sequence[Node], at: datetime, *, in_code: Callable[[str], bool] | None = None
) -> list[SourceConflict]:
    """Find conflicts among nodes: over time, history against code, then contradicting statements.

    `in_code` returns whether a name occurs anywhere in the code; without it only the given code nodes count. Superseded
    nodes and commits are left out: the first are settled, the second describe the past.
    """
    current = [node for node in nodes if node.superseded_by is None and not node.id.startswith(COMMIT_PREFIX)]
    said = [
        (node, claim) for node in current if node.domain is not NodeDomain.CODE for claim in claims_of(node.content)
    ]
    return [*_over_time(current, at), *_against_code(current, in_code), *_contradictions(said[:MOST_CLAIMS], at)]


def claims_of(text: str) -> list[str]:
    """The sentences of a text with more than 10 and fewer than 200 characters."""
    sentences = (each.strip() for each in _SENTENCE.split(text.removeprefix(UNVERIFIED)))
    return [each for each in sentences if len(each) in CLAIM]


def _over_time(nodes: Sequence[Node], at: datetime) -> Iterator[SourceConflict]:
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
            yield _conflict(ConflictKind.TEMPORAL, subject, oldest, newest, description, at)


def _against_code(nodes: Sequence[Node], in_code: Callable[[str], bool] | None) -> Iterator[SourceConflict]:
    """Claims of history that something is used which the code does not mention."""
    code = [node for node in nodes if node.domain is NodeDomain.CODE]
    texts = [f"{node.name} {node.signature or ''} {node.content}".casefold() for node in code]
    for node in nodes:
        for claim in claims_of(node.content) if code and node.domain is NodeDomain.HISTORY else ():
            missing = [used for used in _used(claim) if not any(used in text for text in texts)]
            if any(in_code is None or not in_code(used) for used in missing):
                yield SourceConflict(
                    kind=ConflictKind.SOURCE_MISMATCH,
                    subject=claim,
                    node_a=node.id,
                    node_b=code[0].id,
                    description=f"history says '{inline(claim)}', but the code shows nothing of it",
                    resolution="the code; it is the source of truth",
                )


def _contradictions(said: Sequence[tuple[Node, str]], at: datetime) -> Iterator[SourceConflict]:
    """The contradicting claims of two nodes: different tools for one purpose. If one of the nodes is a note, different
    numbers for one subject and claims that deny each other count too."""
    seen: set[tuple[str, str]] = set()
    if not any(_is_note(node) for node, _ in said):
        said = [(node, claim) for node, claim in said if _used(claim)]
    for (a, first), (b, second) in combinations(said, 2):
        if a.id == b.id or (a.id, b.id) in seen:
            continue
        is_opposed = (_is_note(a) or _is_note(b)) and are_opposed(first, second)
        if is_opposed or _use_differently(first, second):
            seen.add((a.id, b.id))
            subject = " ".join(sorted(_words(first) & _words(second)))
            description = f"'{inline(first)}' contradicts '{inline(second)}'"
            yield _conflict(ConflictKind.SEMANTIC, subject, a, b, description, at)


def _is_note(node: Node) -> bool:
    return node.domain is NodeDomain.HISTORY and not node.path


def _conflict(kind: ConflictKind, subject: str, a: Node, b: Node, description: str, at: datetime) -> SourceConflict:
    best, reason = winner(a, b, at)
    believe = f"{inline(best.name)} of {best.at:%Y-%m-%d} ({reason})"
    return SourceConflict(
        kind=kind, subject=subject, node_a=a.id, node_b=b.id, description=description, resolution=believe
    )


def _use_differently(first: str, second: str) -> bool:
    """Whether two claims say that one subject (the words before `uses`) uses different things. If both name a purpose,
    it must be the same one."""
    uses_a, uses_b = _used(first), _used(second)
    if not uses_a or not uses_b or not uses_a.isdisjoint(uses_b):
        return False
    (subject_a, purpose_a), (subject_b, purpose_b) = _around_use(first), _around_use(second)
    is_purpose = not (purpose_a and purpose_b) or not purpose_a.isdisjoint(purpose_b)
    is_subject = coverage(subject_a, subject_b) > SAME_SUBJECT
    return is_purpose and is_subject and len(_words(first) & _words(second)) >= SHARED_WORDS


def _around_use(claim: str) -> tuple[frozenset[str], frozenset[str]]:
    before, _, after = _USES.sub("\0", claim.casefold(), count=1).partition("\0")
    return stems(before), stems(after)


@lru_cache(1_024)
def _used(claim: str) -> frozenset[str]:
    return frozenset(_USES.findall(claim.casefold()))


def _words(claim: str) -> set[str]:
    return {word for word in _WORD.findall(claim.casefold()) if len(word) >= WORD_LETTERS}


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


# -- opposite statements ---------------------------------------------------------------------------------------

_ALIKE = 0.6
"""Likeness of two statements that differ only by a denial."""
_NUMBER_WORDS = "zero _ two three four five six seven eight nine ten eleven twelve"
_NUMBERS = {word: str(number) for number, word in enumerate(_NUMBER_WORDS.split())} | {"once": "1"}
_TOKEN = lazy_pattern(r"#?\w+(?:[.:]\d+)*(?:'\w+)?")
_NUMBER = lazy_pattern(r"\d+(?:[.:]\d+)*")
_DENIALS = frozenset(("never", "not", "no", "without", "avoid", "cannot", "nor"))
_NO_AMOUNT = frozenset(("than", "of", "issue", "pr", "section", "line", "page", "step", "ticket", "bug", "table"))
"""Words before a number that is rejected (`rather than 3`) or only names something (`issue 3`)."""
_COUNTING = frozenset(("time", "most", "least", "about", "up", "exact"))


def are_opposed(one: str, other: str) -> bool:
    """Whether two sentences on one thing give different numbers, or one denies the other."""
    (about_a, numbers_a, denies_a), (about_b, numbers_b, denies_b) = _parse(one), _parse(other)
    if numbers_a and numbers_b:
        return coverage(about_a, about_b) > SAME_SUBJECT and numbers_a.isdisjoint(numbers_b)
    is_alike = likeness(about_a, about_b) >= _ALIKE and len(about_a & about_b) >= SHARED_WORDS
    return not (numbers_a or numbers_b) and is_alike and denies_a is not denies_b


@lru_cache(1_024)
def _parse(sentence: str) -> tuple[frozenset[str], frozenset[str], bool]:
    """The stems of a sentence without numbers, the numbers that it states, and whether it denies something."""
    words = [_NUMBERS.get(word, word) for word in _TOKEN.findall(sentence.lower())]
    is_number = [_NUMBER.fullmatch(word) is not None for word in words]
    stated = {
        word
        for at, word in enumerate(words)
        if is_number[at] and not any(_denies(each) or each in _NO_AMOUNT for each in words[max(0, at - 2) : at])
    }
    rest = " ".join(word for word, is_left_out in zip(words, is_number, strict=True) if not is_left_out)
    return stems(rest) - _COUNTING, frozenset(stated), any(map(_denies, words))


def _denies(word: str) -> bool:
    return word in _DENIALS or word.endswith("n't")


# -- conflicts on the trail ------------------------------------------------------------------------------------


async def record_conflicts(trail: Trail, found: Sequence[SourceConflict], *, by: Principal) -> None:
    """Write conflicts to the trail, for `list_conflicts`. A known conflict is not written again: a resolved one stays
    resolved. Does nothing for a caller who may not write, or on a trail without consent."""
    for each in found if by.may("create") else ():
        try:
            await trail.records.create(_draft(each, by), by=by)
        except AlreadyExists:
            continue
        except ConfigError:  # no consent
            return


async def list_conflicts(trail: Trail, *, by: Principal, limit: int = 50) -> list[SourceConflict]:
    """Unresolved conflicts, newest first."""
    page = await trail.records.list(Selector(schema_name=SCHEMA, all_tags=(OPEN,)), by=by, limit=limit)
    return [_to_conflict(each) for each in page.items]


async def resolve_conflict(trail: Trail, id: str, resolution: str, *, by: Principal, clock: Clock) -> SourceConflict:
    """Mark a conflict as resolved. Raises NotFound for an id that is not a conflict, Conflict for a concurrent
    change."""
    found = await trail.records.get(id, by=by)
    if found.schema_name != SCHEMA:
        raise NotFound("conflict", id)
    settled = {"resolution": resolution, "resolved": True, "resolved_at": clock.now().isoformat()}
    change = Change(context={**found.context, **settled}, tags=(*(set(found.tags) - {OPEN}), SETTLED))
    return _to_conflict(await trail.records.update(id, change, expect=found.version, by=by))


def _draft(conflict: SourceConflict, by: Principal) -> Draft:
    """The id is the same whenever the same two nodes disagree on the same subject."""
    ends = sorted((conflict.node_a, conflict.node_b))
    key = "\n".join(("conflict", conflict.kind.label, *ends, conflict.subject.casefold()))
    kept = ("kind", "subject", "node_a", "node_b", "description", "resolution", "resolved")
    context = {field: value for field, value in msgspec.to_builtins(conflict).items() if field in kept}
    return Draft(
        id=keyed_id(by.owner_id, key),
        title=f"{conflict.kind.label.replace('_', ' ')}: {conflict.subject}"[:_MAX_TITLE],
        schema_name=SCHEMA,
        tags=(OPEN,),
        context=context,
        embed="never",
    )


def _to_conflict(found: Breadcrumb) -> SourceConflict:
    kept = msgspec.convert({**found.context, "id": found.id}, SourceConflict)
    return msgspec.structs.replace(kept, kind=ConflictKind(kept.kind), detected_at=found.created_at)
