"""Removal of expired records: history whose time is long over, and research answers that are out of date."""

from __future__ import annotations

from datetime import datetime

from clew.access import Principal
from clew.knowledge.documents.findings import SCHEMA as RESEARCH
from clew.knowledge.nodes.node_store import NodeGraph, as_text
from clew.trail.bulk import drop_selected
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail

AT_A_TIME = 1_000
"""Records of a kind that one round deletes; the next deletes more."""


async def remove_expired(trail: Trail, now: datetime, *, by: Principal) -> int:
    """Delete expired records that the caller may see, up to AT_A_TIME of each kind, and return their number."""
    over = ContextMatch(path="until", op="lt", value=as_text(now, "now"))
    nodes = await NodeGraph(trail, by).remove_expired(now, AT_A_TIME)
    return nodes + await drop_selected(trail, Selector(schema_name=RESEARCH, context_match=(over,)), AT_A_TIME, by=by)
