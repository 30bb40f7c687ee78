"""The belief ledger: facts with their valid time, recorded time, source and trust. Records are only ever added. A later
statement retires an earlier one only on explicit evidence: it says so, or it comes from a later version or date of the
same source. Otherwise both stay and disagree. All of this is computed on reading, from the records that the reader may
see, so that inference deletes nothing and leaks nothing. Writing calls no model."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Annotated, Any, Literal

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.errors import InvalidInput, NotFound
from clew.knowledge.git.log import version_key
from clew.knowledge.history.entries import Moment, list_all
from clew.knowledge.nodes.node_store import DEFAULT_TRUST
from clew.knowledge.upsert import keyed_id
from clew.lazy_pattern import lazy_pattern
from clew.secrecy import mask_keys
from clew.trail.model.breadcrumb import Breadcrumb, Draft, encode_canonical
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

SCHEMA = "belief.v1"
MOST = 100_000
MAX_TEXT = 2_000
_BEGINNING, _END = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_TEXTS = ("subject", "attribute", "value", "condition", "source", "version", "cite")

Relation = Literal["same", "supersedes", "superseded", "contradicts", "unrelated"]


class BeliefFact(msgspec.Struct, frozen=True, kw_only=True):
    """A statement: a subject has a value for an attribute, under a condition such as a platform or an extra (empty
    means always). `holds=False` denies it. `many` allows several values at once. `valid_to` is exclusive, and both
    times may be open. `source` names the series of documents that states it, `version` the document, `cite` the exact
    place. `supersedes` has the ids of beliefs that it expressly replaces.
    """

    subject: str
    attribute: str
    value: str
    condition: str = ""
    holds: bool = True
    many: bool = False
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    source: str
    version: str = ""
    cite: str = ""
    trust: int = DEFAULT_TRUST
    supersedes: tuple[str, ...] = ()

    @property
    def topic(self) -> tuple[str, str, str]:
        """Subject, attribute and condition; facts of other topics are unrelated."""
        return normal_name(self.subject), normal_name(self.attribute), normal_name(self.condition)

    @property
    def said(self) -> tuple[str, bool]:
        """The statement about the topic."""
        return normal_value(self.value, self.attribute), self.holds


class Belief(msgspec.Struct, frozen=True, kw_only=True):
    """A fact as it was recorded."""

    id: str
    fact: BeliefFact
    recorded_at: datetime


class BeliefStanding(msgspec.Struct, frozen=True, kw_only=True):
    """A belief with its effective time, the belief that retired it, and beliefs of the same time that disagree with
    it."""

    belief: Belief
    valid_from: datetime | None
    valid_to: datetime | None
    retired_by: str | None = None
    disagrees_with: tuple[str, ...] = ()


def check_fact(fact: BeliefFact) -> None:
    """Raises InvalidInput for an empty or too large fact, and for times that do not fit."""
    for field in ("subject", "attribute", "value", "source"):
        if not getattr(fact, field).strip():
            raise InvalidInput(field, "is empty")
    if not 0 <= fact.trust <= 100:
        raise InvalidInput("trust", "must be between 0 and 100")
    for field, moment in (("valid_from", fact.valid_from), ("valid_to", fact.valid_to)):
        _check_moment(field, moment)
    if _begin(fact) >= _end(fact):
        raise InvalidInput("valid_to", "must be after valid_from")
    if max(len(getattr(fact, field)) for field in _TEXTS) > MAX_TEXT:
        raise InvalidInput("fact", f"has a part of over {MAX_TEXT:,} characters")


def _check_moment(field: str, moment: datetime | None) -> None:
    if moment is not None and moment.tzinfo is None:
        raise InvalidInput(field, "must carry a time zone", hint="For example 2026-01-01T00:00:00Z")


def relate(one: Belief, other: Belief) -> Relation:
    """The relation of the first belief to the second. `supersedes` means that the first retires the second,
    `superseded` the reverse."""
    a, b = one.fact, other.fact
    if a.topic != b.topic:
        return "unrelated"
    if a.said == b.said:
        return "same"
    if (a.many or b.many) and a.said[0] != b.said[0]:
        return "unrelated"
    if not a.holds and not b.holds:
        return "unrelated"
    later = _later(one, other)
    if later is not None:
        return "supersedes" if later is one else "superseded"
    return "contradicts" if _begin(a) < _end(b) and _begin(b) < _end(a) else "unrelated"


def settle(beliefs: Sequence[Belief]) -> list[BeliefStanding]:
    """Beliefs of one topic with their effective times, in the order given. The result does not depend on the order in
    which they were recorded."""
    standing = [_stand(belief, beliefs) for belief in beliefs]
    disagreements = [tuple(other.belief.id for other in standing if _disagree(each, other)) for each in standing]
    return [
        msgspec.structs.replace(each, disagrees_with=ids) for each, ids in zip(standing, disagreements, strict=True)
    ]


def _stand(belief: Belief, beliefs: Sequence[Belief]) -> BeliefStanding:
    """The standing of a belief: it is valid until the first belief that retires it becomes valid. If that is before the
    start of its own time, it was never valid."""
    retiring = [other for other in beliefs if other is not belief and relate(other, belief) == "supersedes"]
    first = min(retiring, key=lambda other: (_begin(other.fact), other.id), default=None)
    if first is None or _begin(first.fact) >= _end(belief.fact):
        return BeliefStanding(belief=belief, valid_from=belief.fact.valid_from, valid_to=belief.fact.valid_to)
    end = max(_begin(first.fact), _begin(belief.fact))
    return BeliefStanding(belief=belief, valid_from=belief.fact.valid_from, valid_to=end, retired_by=first.id)


def _disagree(one: BeliefStanding, other: BeliefStanding) -> bool:
    overlap = max(_begin(one), _begin(other)) < min(_end(one), _end(other))
    return overlap and relate(one.belief, other.belief) == "contradicts"


def _later(one: Belief, other: Belief) -> Belief | None:
    """The later one by explicit evidence; None if neither replaces the other, or if each claims to."""
    if (other.id in one.fact.supersedes) != (one.id in other.fact.supersedes):
        return one if other.id in one.fact.supersedes else other
    if normal_name(one.fact.source) != normal_name(other.fact.source):
        return None
    versions = version_key(one.fact.version), version_key(other.fact.version)
    if versions[0] is not None and versions[1] is not None:
        return None if versions[0] == versions[1] else one if versions[0] > versions[1] else other
    if one.fact.version and other.fact.version:
        return None  # names without an order
    dates = one.fact.valid_from, other.fact.valid_from
    if dates[0] is None or dates[1] is None or dates[0] == dates[1]:
        return None
    return one if dates[0] > dates[1] else other


def _begin(span: BeliefFact | BeliefStanding) -> datetime:
    return span.valid_from or _BEGINNING


def _end(span: BeliefFact | BeliefStanding) -> datetime:
    return span.valid_to or _END


class BeliefLedger:
    """The beliefs that one principal records and sees. Calls raise the errors of the trail."""

    def __init__(self, trail: Trail, by: Principal, clock: Clock) -> None:
        self._trail, self._by, self._clock = trail, by, clock

    async def add(self, fact: BeliefFact, *, scopes: Sequence[str] = ()) -> Belief:
        """Record a fact. Recording the same one from the same place again changes nothing. Raises InvalidInput, and
        NotFound for a superseded belief that the caller cannot see."""
        check_fact(fact)
        for id in fact.supersedes:
            await self._get(id)
        fact = msgspec.structs.replace(fact, **{field: mask_keys(getattr(fact, field)) for field in _TEXTS})
        id = keyed_id(self._by.owner_id, f"belief:{_digest(fact, scopes)}")
        present, retracted = await self._recorded(None, fact.subject)
        if known := next((each for each in present if each.id == id), None):
            return known
        draft = Draft(
            id=None if id in retracted else id,
            title=f"{fact.subject}: {fact.attribute}"[:200],
            schema_name=SCHEMA,
            context={"kind": "fact", **msgspec.to_builtins(fact)},
            tags=(_subject_tag(fact.subject),),
            scopes=scopes,
        )
        return _to_belief(await self._trail.records.create(draft, by=self._by))

    async def retract(
        self,
        id: Annotated[str, msgspec.Meta(description="the id of a belief, as get_beliefs shows it")],
        why: Annotated[str, msgspec.Meta(description="why it is not right")],
    ) -> Belief:
        """Record that a belief was never right. The belief stays on record, with the reason.

        Questions about earlier recorded times still find it. Raises NotFound, InvalidInput without a reason.
        """
        if not why.strip():
            raise InvalidInput("why", "is empty", hint="Give the reason why it is wrong")
        found = await self._get(id)
        draft = Draft(
            title=f"Retracted: {found.title}"[:200],
            schema_name=SCHEMA,
            context={"kind": "retraction", "target": id, "text": mask_keys(why)},
            tags=found.tags,
            scopes=found.scopes,
        )
        await self._trail.records.create(draft, by=self._by)
        return _to_belief(found)

    async def as_of(
        self,
        as_of: Moment = None,
        recorded_by: Moment = None,
        *,
        subject: Annotated[str, msgspec.Meta(description="of what; empty: of all")] = "",
        attribute: str = "",
    ) -> list[BeliefStanding]:
        """List the facts that were valid at a moment and recorded by another, each with its source. Facts that disagree
        are all listed, and marked.

        Both moments are now by default; the oldest record comes first.
        """
        _check_moment("as_of", as_of)
        moment = as_of or self._clock.now()
        standing = await self.history(subject, attribute, recorded_by)
        valid_then = [each for each in standing if _begin(each) <= moment < _end(each)]
        ids = {each.belief.id for each in valid_then}
        return [
            msgspec.structs.replace(each, disagrees_with=tuple(id for id in each.disagrees_with if id in ids))
            for each in valid_then
        ]

    async def history(
        self, subject: str = "", attribute: str = "", recorded: datetime | None = None
    ) -> list[BeliefStanding]:
        """All beliefs about a subject that were recorded by a moment and not retracted by then, with their effective
        times."""
        topics: dict[tuple[str, str, str], list[Belief]] = defaultdict(list)
        beliefs, _ = await self._recorded(recorded, subject)
        for belief in beliefs:
            if not attribute or normal_name(belief.fact.attribute) == normal_name(attribute):
                topics[belief.fact.topic].append(belief)
        standing = {each.belief.id: each for beliefs in topics.values() for each in settle(beliefs)}
        return [standing[belief.id] for belief in beliefs if belief.id in standing]

    async def _recorded(self, recorded: datetime | None, subject: str) -> tuple[list[Belief], frozenset[str]]:
        """Beliefs that were recorded by a moment and not retracted by then, and the ids of those that were."""
        _check_moment("recorded_by", recorded)
        selector = Selector(schema_name=SCHEMA, all_tags=(_subject_tag(subject),) if subject else ())
        found = await list_all(self._trail, selector, self._by, MOST, oldest_first=True)
        by_then = [each for each in found if recorded is None or each.created_at <= recorded]
        gone = frozenset(each.context["target"] for each in by_then if each.context["kind"] == "retraction")
        facts = [each for each in by_then if each.context["kind"] == "fact" and each.id not in gone]
        return [_to_belief(each) for each in facts], gone

    async def _get(self, id: str) -> Breadcrumb:
        found = await self._trail.records.get(id, by=self._by)
        if found.schema_name != SCHEMA or found.context["kind"] != "fact":
            raise NotFound("belief", id)
        return found


def _to_belief(breadcrumb: Breadcrumb) -> Belief:
    fact: dict[str, Any] = {name: value for name, value in breadcrumb.context.items() if name != "kind"}
    return Belief(id=breadcrumb.id, fact=msgspec.convert(fact, BeliefFact), recorded_at=breadcrumb.created_at)


def _subject_tag(subject: str) -> str:
    return f"subject:{hashlib.blake2b(normal_name(subject).encode(), digest_size=12).hexdigest()}"


def _digest(fact: BeliefFact, scopes: Sequence[str]) -> str:
    encoded = encode_canonical([msgspec.to_builtins(fact), sorted(scopes)], "fact")
    return hashlib.blake2b(encoded, digest_size=16).hexdigest()


# -- normal forms: different spellings of a name or a value compare equal -----------------------------------------

MAX_VALUE = 2_000

_QUOTES = "\"'`“”‘’"
_MARKS = lazy_pattern(r"[`'\"*]+")
_CODE = lazy_pattern(r"[./#:()]")
_SPACES = lazy_pattern(r"\s+")
_AROUND = lazy_pattern(r"(?:(?<!\s)\s++)?([,()\[\]{}:=<>|])\s*+")
_WORDS = {
    **dict.fromkeys(("none", "null", "nil", "undefined", "not set", "unset"), "none"),
    **dict.fromkeys(("true", "yes", "on", "enabled"), "true"),
    **dict.fromkeys(("false", "no", "off", "disabled"), "false"),
}
_NUMBER = lazy_pattern(r"[-+]?(?:\d[\d_]*(?:\.[\d_]*)?|\.\d+)(?:[eE][-+]?\d{1,4})?|[-+]?\d{1,3}(?:,\d{3})+")
_LEAST = lazy_pattern(
    r"(?:>=|≥|=>|at least|min(?:imum)?\.?(?: version)?|from)\s*v?(?P<a>\d[\w.]*)"
    r"|v?(?P<b>\d[\w.]*?)\s*(?:\+|(?:and|or) (?:newer|later|higher|above|up|greater|upwards?))",
    re.IGNORECASE,
)
_BOUND = lazy_pattern(r"(>=|<=|==|~=|!=|\^|~|>|<)\s*v?(\d[\w.*-]*)")
_VERSIONED = lazy_pattern(r"\b(?:versions?|releases?)\b", re.IGNORECASE)
_MINIMUM = lazy_pattern(r"\b(?:minimum|minimal|min|lowest|oldest|requires?|required)\b", re.IGNORECASE)


@lru_cache(1 << 13)
def normal_name(text: str) -> str:
    """A subject, attribute or source for comparison: lower case, without marks, hyphens and underscores alike. Names of
    code, such as `cluster.DBSCAN` beside `cluster.dbscan`, and single letters stay."""
    words = (word.rstrip(".,;:") for word in _MARKS.sub("", text).split())
    return " ".join(" ".join(map(_normal_word, words)).split())


@lru_cache(1 << 13)
def normal_value(text: str, attribute: str = "") -> str:
    """A value for comparison. For a minimum, `3.11`, `>=3.11` and "3.11 or newer" are equal, and upper bounds do not
    count. For a version, 3.10 is not 3.1."""
    plain = _unquoted(_SPACES.sub(" ", text[:MAX_VALUE].strip().rstrip(".")))
    if (word := _WORDS.get(plain.lower())) is not None:
        return word
    if _MINIMUM.search(attribute) and (least := _least(plain)):
        return least
    if _VERSIONED.search(attribute) and (version := _version(plain)):
        return f"version {version}"
    return _number(plain) or _tidied(plain)


def _normal_word(word: str) -> str:
    if len(word) == 1 or _CODE.search(word):
        return word
    return word.replace("-", " ").replace("_", " ").lower()


def _unquoted(text: str) -> str:
    while len(text) > 1 and text[0] in _QUOTES and text[-1] in _QUOTES:
        text = text[1:-1].strip()
    return text


def _least(text: str) -> str:
    """The lower bound of a requirement as text; empty when it has none."""
    lower = [version for sign, version in _BOUND.findall(text) if sign in (">=", "~=", "^", "~", "==")]
    said = _LEAST.fullmatch(text)
    found = lower[0] if lower else (said["a"] or said["b"]) if said else text
    version = _version(found)
    return f"min {version}" if version else ""


def _version(text: str) -> str:
    """A version without trailing zeros; empty for anything else."""
    from packaging.utils import canonicalize_version  # for those who compare versions

    key = version_key(text)
    return canonicalize_version(key) if key is not None else ""


def _number(text: str) -> str:
    """A number in its shortest form; empty for anything else."""
    if not _NUMBER.fullmatch(text):
        return ""
    try:
        number = Decimal(text.replace(",", "").replace("_", "")).normalize()
    except InvalidOperation:
        return ""
    if not number:
        return "0"
    return f"{number:f}" if -30 < number.adjusted() < 30 else str(number)


def _tidied(text: str) -> str:
    """Return a statement without spaces around marks, and with one kind of quotes."""
    return _AROUND.sub(r"\1", text.translate(dict.fromkeys(map(ord, '"`“”‘’'), "'")))
