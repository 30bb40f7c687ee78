"""Thresholds of the context of an agent: checkpoints, compaction and hand-off, each once.

The thresholds are data, by the kind of agent. Each crossed threshold becomes a breadcrumb that is written together with
the agent's step, so it does not fire again after a restart.
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
"""The kind of agents that the table does not list."""

Action = Literal["checkpoint", "compact", "hand_off"]
_ORDER: tuple[Action, ...] = ("checkpoint", "compact", "hand_off")
_LOOK_BACK = 50


class Threshold(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The action at a percentage of the context. `what` names the content of a checkpoint; a `local` one stays with the
    agent and its session."""

    at: Annotated[float, Meta(gt=0, le=100)]
    do: Action
    what: str = ""
    local: bool = False


Table = Mapping[str, tuple[Threshold, ...]]


class ContextUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Used tokens and the limit, of an agent of a kind in a session."""

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


class HighestFill(msgspec.Struct, frozen=True, kw_only=True):
    """The highest fill in percent since the last compaction; `generation` counts compactions."""

    generation: int = 0
    percent: float = 0.0


def thresholds_of(table: Table, kind: str) -> tuple[Threshold, ...]:
    """The thresholds of a kind, else the default ones, in the order in which they fire."""
    return _sorted(table.get(kind.casefold(), table.get(OTHER, ())))


def find_crossed(before: float, after: float, thresholds: Sequence[Threshold]) -> tuple[Threshold, ...]:
    """The thresholds above `before` and up to `after`, in percent: the lowest first, a checkpoint before a compaction
    at the same point. Empty if the context did not grow."""
    return tuple(each for each in _sorted(thresholds) if before < each.at <= after)


async def observe(
    trail: Trail, flow: Flow, table: Table, usage: ContextUsage, *, by: Principal
) -> tuple[tuple[Threshold, ...], tuple[Draft, ...]]:
    """The thresholds that fire now, and their records. Writing these records twice has no effect."""
    mark = await read_mark(trail, flow, usage.agent, usage.session, by=by)
    fired = find_crossed(mark.percent, usage.percent, thresholds_of(table, usage.kind))
    return fired, tuple(_draft(flow, usage, mark.generation, each) for each in fired)


async def read_mark(trail: Trail, flow: Flow, agent: str, session: str, *, by: Principal) -> HighestFill:
    """The highest threshold that fired since the last compaction, as read from the trail."""
    selector = Selector(schema_name=flow.checkpoint, all_tags=(f"agent:{agent}", f"session:{session}"))
    found = [each.context for each in (await trail.records.list(selector, by=by, limit=_LOOK_BACK)).items]
    generation = max((each["generation"] + (each["do"] == "compacted") for each in found), default=0)
    reached = [each["at"] for each in found if each["generation"] + (each["do"] == "compacted") == generation]
    return HighestFill(generation=generation, percent=max(reached, default=0.0))


async def find_due_compaction(
    trail: Trail, flow: Flow, agent: str, session: str, *, by: Principal
) -> HighestFill | None:
    """The fill in percent of an ordered compaction that has not happened yet; None if no compaction is due."""
    mark = await read_mark(trail, flow, agent, session, by=by)
    tags = (f"agent:{agent}", f"session:{session}", "context:compact")
    page = await trail.records.list(Selector(schema_name=flow.checkpoint, all_tags=tags), by=by, limit=_LOOK_BACK)
    is_due = any(each.context["generation"] == mark.generation for each in page.items)
    return mark if is_due else None


def compacted_draft(flow: Flow, usage: ContextUsage, generation: int) -> Draft:
    """The record of a compaction. `usage` is the usage after the compaction; thresholds above it can fire again."""
    return _record(flow, usage, generation, at=min(100.0, max(0.01, round(usage.percent, 2))), do="compacted")


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
