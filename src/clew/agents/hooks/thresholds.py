"""What happens as the context of an agent fills up: checkpoints, compaction, a hand-off, each once.

Which thresholds an agent has is data, by its kind. Each that is crossed becomes a breadcrumb, written together with
what the agent did; so what was fired is known after a restart, and fires no second time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from clew.access import Principal
from clew.errors import InvalidInput
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.flow import Flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

OTHER = "default"
"""The kind of an agent that the table does not name."""

Action = Literal["checkpoint", "compact", "hand_off"]
_ORDER: tuple[Action, ...] = ("checkpoint", "compact", "hand_off")
_LOOK_BACK = 50


class Threshold(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """At how many percent of the context what is done. `what` says of what a checkpoint is made; what is `local` stays
    with the agent and its session."""

    at: Annotated[float, Meta(gt=0, le=100)]
    do: Action
    what: str = ""
    local: bool = False


Table = Mapping[str, tuple[Threshold, ...]]


class ContextUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Of how many tokens how many are used, by which agent of which kind in which session."""

    agent: str
    session: str
    used: int
    limit: int
    kind: str = OTHER

    @property
    def percent(self) -> float:
        if self.limit <= 0:
            raise InvalidInput("limit", "must be more than 0 tokens")
        return 100 * self.used / self.limit


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """How far the context was filled, in percent, since it was last compacted; `generation` counts those times."""

    generation: int = 0
    percent: float = 0.0


def thresholds_of(table: Table, kind: str) -> tuple[Threshold, ...]:
    """Those of a kind, else the default ones, in the order in which they fire."""
    return _sorted(table.get(kind.casefold(), table.get(OTHER, ())))


def crossed(before: float, after: float, thresholds: Sequence[Threshold]) -> tuple[Threshold, ...]:
    """Those that lie above `before` and not above `after`, both in percent: the lowest first, and at the same point
    the checkpoint before the compaction. None where the context did not grow."""
    return tuple(each for each in _sorted(thresholds) if before < each.at <= after)


async def observe(
    trail: Trail, flow: Flow, table: Table, usage: ContextUsage, *, by: Principal
) -> tuple[tuple[Threshold, ...], tuple[Draft, ...]]:
    """What fires now, and the drafts that say so: write them together with what is done. Written twice they are the
    same breadcrumbs."""
    mark = await read_mark(trail, flow, usage.agent, usage.session, by=by)
    fired = crossed(mark.percent, usage.percent, thresholds_of(table, usage.kind))
    return fired, tuple(_draft(flow, usage, mark.generation, each) for each in fired)


async def read_mark(trail: Trail, flow: Flow, agent: str, session: str, *, by: Principal) -> Mark:
    """The highest threshold that fired since the last compaction, or where that one ended, as the trail knows."""
    selector = Selector(schema_name=flow.checkpoint, all_tags=(f"agent:{agent}", f"session:{session}"))
    found = [each.context for each in (await trail.records.list(selector, by=by, limit=_LOOK_BACK)).items]
    generation = max((each["generation"] + (each["do"] == "compacted") for each in found), default=0)
    reached = [each["at"] for each in found if each["generation"] + (each["do"] == "compacted") == generation]
    return Mark(generation=generation, percent=max(reached, default=0.0))


def _draft(flow: Flow, usage: ContextUsage, generation: int, fired: Threshold) -> Draft:
    return _record(flow, usage, generation, at=fired.at, do=fired.do, what=fired.what, local=fired.local)


def _record(
    flow: Flow, usage: ContextUsage, generation: int, *, at: float, do: str, what: str = "", local: bool = False
) -> Draft:
    told = {"what": what} if what else {}
    return Draft(
        title=f"{usage.agent}: {do} at {at:g} %",
        schema_name=flow.checkpoint,
        tags=(f"agent:{usage.agent}", f"session:{usage.session}", f"context:{do}"),
        context={
            "agent_id": usage.agent,
            "kind": usage.kind,
            "generation": generation,
            "at": at,
            "do": do,
            **told,
            "local": local,
            "used": usage.used,
            "limit": usage.limit,
        },
        embed="never",
        idempotency_key=f"context:{usage.session}:{usage.agent}:{generation}:{do}:{at:g}"[-300:],
    )


def _sorted(thresholds: Sequence[Threshold]) -> tuple[Threshold, ...]:
    return tuple(sorted(thresholds, key=lambda each: (each.at, _ORDER.index(each.do))))
