"""The belief ledger: facts with the time for which they are valid, the time at which they were recorded, their source
and trust. It is only ever added to. What retires what is worked out when it is read, from what the reader may see, so
nothing is lost by inference and nothing shows through from out of sight. Writing asks no model."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.errors import InvalidInput, NotFound
from clew.knowledge.history.belief import (
    Belief,
    Contradiction,
    Fact,
    Standing,
    check_fact,
    counts_at,
    find_contradictions,
    settle,
)
from clew.knowledge.history.chronicle import list_all
from clew.knowledge.history.keyed import keyed_id
from clew.knowledge.history.values import normal_name
from clew.secrecy import mask_keys
from clew.trail.breadcrumb import Breadcrumb, Draft, encode_canonical
from clew.trail.selector import ContextMatch, Selector
from clew.trail.store import Trail

SCHEMA = "belief.v1"
MOST = 100_000
_TOLD = ("subject", "attribute", "value", "condition", "source", "version", "cite", "text")
"""What a fact says in words: keys in it are masked."""
_encode = msgspec.to_builtins


def _check_moment(field: str, moment: datetime | None) -> None:
    if moment is not None and moment.tzinfo is None:
        raise InvalidInput(field, "must carry a time zone", hint="For example 2026-01-01T00:00:00Z")


class BeliefLedger:
    """The beliefs that one principal records and sees. Calls raise what the trail raises."""

    def __init__(self, trail: Trail, by: Principal, clock: Clock) -> None:
        self._trail, self._by, self._clock = trail, by, clock

    async def add(self, fact: Fact, *, scopes: Sequence[str] = ()) -> Belief:
        """Record a fact. The same one from the same place again changes nothing. Raises InvalidInput, and NotFound for
        a belief that it says it supersedes and that the caller cannot see."""
        check_fact(fact)
        for id in fact.supersedes:
            await self._get(id)
        fact = msgspec.structs.replace(fact, **{field: mask_keys(getattr(fact, field)) for field in _TOLD})
        id = keyed_id(self._by.owner_id, f"belief:{_digest(fact, scopes)}")
        present = await self._find(id)
        if present is not None and not await self._retractions([id]):
            return _to_belief(present)
        draft = Draft(
            id=id if present is None else None,
            title=(f"{fact.subject}: {fact.attribute}" if not fact.is_free else fact.text)[:200],
            schema_name=SCHEMA,
            context={"kind": "note" if fact.is_free else "fact", **_encode(fact)},
            tags=() if fact.is_free else (_subject_tag(fact.subject),),
            scopes=scopes,
        )
        return _to_belief(await self._trail.records.create(draft, by=self._by))

    async def retract(self, id: str, why: str) -> None:
        """Say that a belief was never right. It stays on record, and what was believed before this stays answerable.
        Raises NotFound, InvalidInput without a reason."""
        if not why.strip():
            raise InvalidInput("why", "is empty", hint="Say why it is not right")
        found = await self._get(id)
        draft = Draft(
            title=f"Retracted: {found.title}"[:200],
            schema_name=SCHEMA,
            context={"kind": "retraction", "target": id, "text": mask_keys(why)},
            tags=(f"retracts:{id}",),
            scopes=found.scopes,
        )
        await self._trail.records.create(draft, by=self._by)

    async def as_of(
        self,
        valid: datetime | None = None,
        recorded: datetime | None = None,
        *,
        subject: str = "",
        attribute: str = "",
    ) -> list[Standing]:
        """What was valid at one moment as far as was recorded by another, both being now where not given; oldest
        record first. What disagrees is there from both sides."""
        _check_moment("valid", valid)
        moment = valid or self._clock.now()
        standing = await self._standing(recorded, subject, attribute)
        return [each for each in standing if counts_at(each, moment)]

    async def contradictions(
        self, recorded: datetime | None = None, *, subject: str = "", attribute: str = ""
    ) -> list[Contradiction]:
        """All pairs of facts that disagree about the same time, as far as was recorded by a moment."""
        return find_contradictions(await self._standing(recorded, subject, attribute))

    async def history(self, subject: str, attribute: str = "") -> list[Standing]:
        """All that was ever recorded of a subject and not retracted, with the time for which each fact counts."""
        return await self._standing(None, subject, attribute)

    async def notes(self) -> list[Belief]:
        """Free text, as it was recorded, oldest first."""
        return [belief for belief in await self._recorded(None, "", "note") if belief.fact.is_free]

    async def _standing(self, recorded: datetime | None, subject: str, attribute: str) -> list[Standing]:
        topics: dict[tuple[str, str, str], list[Belief]] = defaultdict(list)
        recordings = await self._recorded(recorded, subject, "fact")
        for belief in recordings:
            if not attribute or normal_name(belief.fact.attribute) == normal_name(attribute):
                topics[belief.fact.topic].append(belief)
        standing = {each.belief.id: each for beliefs in topics.values() for each in settle(beliefs)}
        return [standing[belief.id] for belief in recordings if belief.id in standing]

    async def _recorded(self, recorded: datetime | None, subject: str, kind: str) -> list[Belief]:
        """Beliefs that were recorded by a moment and not retracted by then."""
        _check_moment("recorded", recorded)
        selector = Selector(
            schema_name=SCHEMA,
            all_tags=(_subject_tag(subject),) if subject else (),
            context_match=(ContextMatch(path="kind", value=kind),),
        )
        found = await list_all(self._trail, selector, self._by, MOST, oldest_first=True)
        by_then = [each for each in found if recorded is None or each.created_at <= recorded]
        gone = await self._retractions([each.id for each in by_then], recorded)
        return [_to_belief(each) for each in by_then if each.id not in gone]

    async def _retractions(self, ids: Sequence[str], recorded: datetime | None = None) -> frozenset[str]:
        """Which of these are retracted by a moment."""
        if not ids:
            return frozenset()
        selector = Selector(
            schema_name=SCHEMA,
            all_tags=(f"retracts:{ids[0]}",) if len(ids) == 1 else (),
            context_match=(ContextMatch(path="kind", value="retraction"),),
        )
        found = await list_all(self._trail, selector, self._by, MOST)
        targets = {each.context["target"] for each in found if recorded is None or each.created_at <= recorded}
        return frozenset(targets.intersection(ids))

    async def _get(self, id: str) -> Breadcrumb:
        found = await self._trail.records.get(id, by=self._by)
        if found.schema_name != SCHEMA or found.context["kind"] == "retraction":
            raise NotFound("belief", id)
        return found

    async def _find(self, id: str) -> Breadcrumb | None:
        try:
            return await self._get(id)
        except NotFound:
            return None


def _to_belief(breadcrumb: Breadcrumb) -> Belief:
    told: dict[str, Any] = {name: value for name, value in breadcrumb.context.items() if name != "kind"}
    return Belief(id=breadcrumb.id, fact=msgspec.convert(told, Fact), recorded_at=breadcrumb.created_at)


def _subject_tag(subject: str) -> str:
    return f"subject:{hashlib.blake2b(normal_name(subject).encode(), digest_size=12).hexdigest()}"


def _digest(fact: Fact, scopes: Sequence[str]) -> str:
    encoded = encode_canonical([_encode(fact), sorted(scopes)], "fact")
    return hashlib.blake2b(encoded, digest_size=16).hexdigest()
