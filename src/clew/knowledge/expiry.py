"""What has had its time goes: history that expired long ago, and kept research that no longer holds. Answers that a
process keeps end by themselves."""

from __future__ import annotations

from datetime import datetime

from clew.access import Principal
from clew.knowledge.documents.findings import SCHEMA as RESEARCH
from clew.trail.bulk import drop_selected
from clew.trail.node import as_text
from clew.trail.nodes import NodeGraph
from clew.trail.selector import ContextMatch, Selector
from clew.trail.store import Trail

AT_A_TIME = 1_000
"""So many records of a kind go in one round; the next takes more."""


async def remove_expired(trail: Trail, now: datetime, *, by: Principal) -> int:
    """Delete what has expired of what the caller may see, up to AT_A_TIME of each kind, and tell how many."""
    over = ContextMatch(path="until", op="lt", value=as_text(now, "now"))
    nodes = await NodeGraph(trail, by).remove_expired(now, AT_A_TIME)
    return nodes + await drop_selected(trail, Selector(schema_name=RESEARCH, context_match=(over,)), AT_A_TIME, by=by)
