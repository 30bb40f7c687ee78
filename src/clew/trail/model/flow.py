"""Which schema plays which part when agents work. The names are data: runners and the context builder know the parts
alone, and read the names from the trail.
"""

from __future__ import annotations

import msgspec

from clew.access import Principal
from clew.errors import NotFound
from clew.trail.bootstrap import Piece, piece_id
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.store import Trail

KEY, SCHEMA = "system/flow", "system.flow.v1"
"""The key under which the names are set up, and the schema of their record."""
_OPEN = ("message", "model_tool")
"""Parts that any writer may have: messages of users; the name of a tool is no schema."""


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """The schema name of each part, and the name of the tool that asks models."""

    message: str
    context: str
    context_request: str
    request: str
    response: str
    error: str
    answer: str
    delta: str
    cancel: str
    permission_request: str
    permission_answer: str
    agent: str
    tool: str
    tool_config: str
    workflow: str
    workflow_result: str
    usage: str
    budget: str
    stopped: str
    snapshot: str
    started: str
    checkpoint: str
    model_tool: str = "llm"
    """No schema, but a tool: the one whose responses are the answers of models."""


async def read_flow(trail: Trail, *, by: Principal) -> Flow:
    """The names as the trail has them. Raises NotFound where it was not bootstrapped."""
    found = await trail.records.get(piece_id(by, KEY), by=by)
    if found.schema_name != SCHEMA:
        raise NotFound("flow", found.id, hint="`clew up` writes it again")
    return flow_of(found.context)


def guarded_names(record: Breadcrumb) -> frozenset[str]:
    """The schema names in force that only Clew and curators write."""
    named = {part: name for part, name in record.context.items() if isinstance(name, str) and part not in _OPEN}
    return frozenset(named.values()) if record.schema_name == SCHEMA else frozenset()


def flow_of(context: object) -> Flow:
    """Raises ValidationError of msgspec where a name is missing."""
    return msgspec.convert(context, Flow)


def shipped_flow(pieces: tuple[Piece, ...]) -> Flow:
    """The names that come with Clew. Raises NotFound."""
    for piece in pieces:
        if piece.key == KEY:
            return flow_of(piece.context)
    raise NotFound("piece", KEY)
