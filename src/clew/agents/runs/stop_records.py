"""The breadcrumb that records why a run was stopped before its answer, and how to continue."""

from __future__ import annotations

from typing import Literal

import msgspec

from clew.agents.runs.loop_detection import Loop
from clew.errors import BudgetExceeded
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.flow import Flow

Why = Literal["budget", "no_progress", "max_turns", "refused", "error"]


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """Why a run ends early, as one word and as one line, and how the user can continue."""

    why: Why
    detail: str
    how_to_go_on: str


def stop_for_budget(error: BudgetExceeded) -> Stop:
    return Stop(why="budget", detail=error.message, how_to_go_on=error.hint or "Give it a higher limit, and ask again")


def stop_for_loop(loop: Loop) -> Stop:
    return Stop(
        why="no_progress",
        detail=f"it did {loop.detail}",
        how_to_go_on="Say what it should do otherwise, or what it lacks: your next message goes on from here",
    )


def stop_for_turns(turns: int) -> Stop:
    return Stop(
        why="max_turns",
        detail=f"it took all of its {turns} turns",
        how_to_go_on="Your next message goes on from here; capabilities.max_turns of the agent allows more at once",
    )


def stopped_draft(flow: Flow, stop: Stop, *, agent: str, tags: tuple[str, ...] = ()) -> Draft:
    """The record of a stopped run. `tags` are the tags of the session and the run."""
    return Draft(
        title=f"{agent} was stopped: {stop.detail}"[:200],
        schema_name=flow.stopped,
        tags=(f"agent:{agent}", f"stopped:{stop.why}", *tags),
        context={
            "agent_id": agent,
            "why": stop.why,
            "detail": stop.detail,
            "how_to_go_on": stop.how_to_go_on,
        },
        embed="never",
    )
