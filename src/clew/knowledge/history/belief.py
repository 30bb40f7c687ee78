"""Facts and how two of them stand to each other. A later statement retires an earlier one on explicit evidence only: it
says so, or it is a later version or date of the same source. Otherwise both stay, and are told to disagree."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

import msgspec

from clew.errors import InvalidInput
from clew.knowledge.history.values import normal_name, normal_value
from clew.knowledge.history.versions import version_key
from clew.trail.nodes import DEFAULT_TRUST

MAX_TEXT, MAX_PLACE = 20_000, 2_000
_BEGINNING, _END = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)

Relation = Literal["same", "supersedes", "superseded", "contradicts", "unrelated"]


class Fact(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A statement: a subject has a value for an attribute, under a condition (a platform, an extra; empty: always).

    `holds=False` denies it. `many` says that the attribute has several values at once. It is valid from and up to, not
    including, moments that may be open; `source` names the line of documents that it comes from, `version` which of
    them, `cite` the exact place. `supersedes` holds ids of beliefs that it expressly replaces. Free text has neither
    subject nor attribute, only `text`, and takes part in nothing.
    """

    subject: str = ""
    attribute: str = ""
    value: str = ""
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
    text: str = ""

    @property
    def is_free(self) -> bool:
        return not self.subject and not self.attribute

    @property
    def topic(self) -> tuple[str, str, str]:
        """What it is about: facts of other topics have nothing to do with it."""
        return normal_name(self.subject), normal_name(self.attribute), normal_name(self.condition)

    @property
    def said(self) -> tuple[str, bool]:
        """What it says of its topic."""
        return normal_value(self.value, self.attribute), self.holds


class Belief(msgspec.Struct, frozen=True, kw_only=True):
    """A fact as it was recorded."""

    id: str
    fact: Fact
    recorded_at: datetime


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A belief with the time for which it counts, who retired it, and the beliefs that it disagrees with then."""

    belief: Belief
    valid_from: datetime | None
    valid_to: datetime | None
    retired_by: str | None = None
    disagrees_with: tuple[str, ...] = ()


class Contradiction(msgspec.Struct, frozen=True, kw_only=True):
    """Two beliefs that cannot both be right, and since when and until when both claim to be."""

    one: Belief
    other: Belief
    valid_from: datetime | None
    valid_to: datetime | None


def check_fact(fact: Fact) -> Fact:
    """Raises InvalidInput for a fact that says nothing, or whose times do not fit."""
    if fact.is_free and not fact.text.strip():
        raise InvalidInput("fact", "says nothing", hint="Give subject, attribute and value, or a text")
    if not fact.is_free and not (fact.subject.strip() and fact.attribute.strip() and fact.value.strip()):
        raise InvalidInput("fact", "lacks its subject, attribute or value")
    if not fact.source.strip():
        raise InvalidInput("source", "is empty", hint="Say where the fact comes from")
    if not 0 <= fact.trust <= 100:
        raise InvalidInput("trust", "must be between 0 and 100")
    for field, moment in (("valid_from", fact.valid_from), ("valid_to", fact.valid_to)):
        if moment is not None and moment.tzinfo is None:
            raise InvalidInput(field, "must carry a time zone", hint="For example 2026-01-01T00:00:00Z")
    if _begin(fact) >= _end(fact):
        raise InvalidInput("valid_to", "must be after valid_from")
    if max(map(len, (fact.subject, fact.attribute, fact.value, fact.text))) > MAX_TEXT:
        raise InvalidInput("fact", f"has a part of over {MAX_TEXT:,} characters")
    if max(map(len, (fact.condition, fact.source, fact.version, fact.cite))) > MAX_PLACE:
        raise InvalidInput("fact", f"has a condition, source, version or cite of over {MAX_PLACE:,} characters")
    return fact


def relate(one: Belief, other: Belief) -> Relation:
    """How the first stands to the second. `supersedes`: it retires the other; `superseded`: the other retires it."""
    a, b = one.fact, other.fact
    if a.is_free or b.is_free or a.topic != b.topic:
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


def settle(beliefs: Sequence[Belief]) -> list[Standing]:
    """Beliefs of one topic with the time for which each counts, in the order given. Pure: the same beliefs always give
    the same answer, in whatever order they were recorded."""
    standing = [_stand(belief, beliefs) for belief in beliefs]
    return [
        msgspec.structs.replace(
            each,
            disagrees_with=tuple(other.belief.id for other in standing if other is not each and _disagree(each, other)),
        )
        for each in standing
    ]


def find_contradictions(standing: Sequence[Standing]) -> list[Contradiction]:
    """Pairs that disagree, each once."""
    return [
        Contradiction(
            one=one.belief,
            other=other.belief,
            valid_from=_moment(max(_begin(one), _begin(other)), _BEGINNING),
            valid_to=_moment(min(_end(one), _end(other)), _END),
        )
        for at, one in enumerate(standing)
        for other in standing[at + 1 :]
        if _disagree(one, other)
    ]


def counts_at(standing: Standing, moment: datetime) -> bool:
    """Whether a belief counts at a moment."""
    return _begin(standing) <= moment < _end(standing)


def _stand(belief: Belief, beliefs: Sequence[Belief]) -> Standing:
    """A belief until the first that retires it begins to be valid; not at all when that was before its own time."""
    retiring = [other for other in beliefs if other is not belief and relate(other, belief) == "supersedes"]
    first = min(retiring, key=lambda other: (_begin(other.fact), other.id), default=None)
    if first is None or _begin(first.fact) >= _end(belief.fact):
        return Standing(belief=belief, valid_from=belief.fact.valid_from, valid_to=belief.fact.valid_to)
    end = max(_begin(first.fact), _begin(belief.fact))
    return Standing(belief=belief, valid_from=belief.fact.valid_from, valid_to=_moment(end, _END), retired_by=first.id)


def _disagree(one: Standing, other: Standing) -> bool:
    overlap = max(_begin(one), _begin(other)) < min(_end(one), _end(other))
    return overlap and relate(one.belief, other.belief) == "contradicts"


def _later(one: Belief, other: Belief) -> Belief | None:
    """The one that explicit evidence calls the later; None without any, or when each claims to replace the other."""
    if (other.id in one.fact.supersedes) != (one.id in other.fact.supersedes):
        return one if other.id in one.fact.supersedes else other
    if normal_name(one.fact.source) != normal_name(other.fact.source):
        return None
    versions = version_key(one.fact.version), version_key(other.fact.version)
    if versions[0] is not None and versions[1] is not None:
        return None if versions[0] == versions[1] else one if versions[0] > versions[1] else other
    if one.fact.version and other.fact.version:
        return None  # two names of which nobody can say what comes first
    dates = one.fact.valid_from, other.fact.valid_from
    if dates[0] is None or dates[1] is None or dates[0] == dates[1]:
        return None
    return one if dates[0] > dates[1] else other


def _begin(span: Fact | Standing) -> datetime:
    return span.valid_from or _BEGINNING


def _end(span: Fact | Standing) -> datetime:
    return span.valid_to or _END


def _moment(moment: datetime, open_end: datetime) -> datetime | None:
    return None if moment == open_end else moment
