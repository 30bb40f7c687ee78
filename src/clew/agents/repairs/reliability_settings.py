"""The settings of thresholds, repairs and notes. They are data on the trail."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from clew.access import Principal
from clew.agents.hooks.thresholds import Threshold
from clew.trail.bootstrap import piece_id
from clew.trail.store import Trail

KEY = "system/reliability"
"""The key of the settings in the bootstrap."""


class NoteResults(msgspec.Struct, frozen=True, kw_only=True):
    """The schema of each result that the note processor makes from a note."""

    tags: str
    summary: str
    insights: str
    eli5: str


class Repairs(msgspec.Struct, frozen=True, kw_only=True):
    """The agent that repairs tools, the limit of repairs in a row, and the schema of their record. With `attempts` 0
    repairs are switched off."""

    agent: str
    attempts: Annotated[int, Meta(ge=0, le=20)]
    fix: str


class Reliability(msgspec.Struct, frozen=True, kw_only=True):
    """`pattern` is the schema of lessons that an agent states; `thresholds` are by kind of agent."""

    pattern: str
    repairs: Repairs
    notes: NoteResults
    thresholds: dict[str, tuple[Threshold, ...]]


async def read_reliability(trail: Trail, *, by: Principal) -> Reliability:
    """Return the settings of a trail. Raises NotFound before `bootstrap`."""
    found = await trail.records.get(piece_id(by, KEY), by=by)
    return msgspec.convert(found.context, Reliability)
