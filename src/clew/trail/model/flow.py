"""The flow: which schema plays which part when agents run. The names are data on the trail; runners and the context
builder know only the parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from clew.access import GuardedSchemas, Principal
from clew.errors import NotFound
from clew.trail.bootstrap import BootstrapPiece, piece_id, read_pieces
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.store import Trail

KEY, SCHEMA = "system/flow", "system.flow.v1"
"""The key under which the names are set up, and the schema of their record."""
_OPEN = ("message", "model_tool")
"""Parts that are not guarded: any writer may send a message, and the name of a tool is no schema."""
_STEERING = ("permission_request", "permission_answer", "cancel")


WORKER = "runtime.worker.v1"
"""The schema of the record of a process that works. Owners cannot rename it."""
PRESENCE = "runtime.presence.v1"
"""A schema that no record has: the consumers of signs of life get no events."""


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
    host: str = "runtime.host.v1"
    session: str = "session.v1"
    focus: str = "session.focus.v1"
    session_snapshot: str = "session.snapshot.v1"
    model_tool: str = "llm"
    """No schema, but a tool: the one whose responses are the answers of models."""


async def read_flow(trail: Trail, *, by: Principal) -> Flow:
    """The names as the trail has them. Raises NotFound where it was not bootstrapped."""
    found = await trail.records.get(piece_id(by, KEY), by=by)
    if found.schema_name != SCHEMA:
        raise NotFound("flow", found.id, hint="`clew up` writes it again")
    return flow_of(found.context)


def guarded_schemas(record: Breadcrumb | None) -> GuardedSchemas:
    """The guarded names: those that come with Clew, and those of the owner's flow record."""
    shipped = _shipped_guards()
    if record is None or record.schema_name != SCHEMA:
        return shipped
    present = _guards(record.context)
    return GuardedSchemas(own=shipped.own | present.own, steering=shipped.steering | present.steering)


@cache
def _shipped_guards() -> GuardedSchemas:
    return _guards(msgspec.structs.asdict(shipped_flow(read_pieces())))


def _guards(parts: Mapping[str, Any]) -> GuardedSchemas:
    named = {part: name for part, name in parts.items() if isinstance(name, str) and part not in _OPEN}
    steering = frozenset(named.pop(part) for part in _STEERING if part in named)
    return GuardedSchemas(own=frozenset(named.values()), steering=steering)


def flow_of(context: object) -> Flow:
    """Raises ValidationError of msgspec where a name is missing."""
    return msgspec.convert(context, Flow)


def shipped_flow(pieces: tuple[BootstrapPiece, ...]) -> Flow:
    """The names that come with Clew. Raises NotFound."""
    for piece in pieces:
        if piece.key == KEY:
            return flow_of(piece.context)
    raise NotFound("piece", KEY)
