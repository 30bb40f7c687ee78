"""The flow maps each part in an agent run to a schema name. The names are data on the trail. Runners and the context
builder use only the parts.
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
"""The bootstrap key of the flow record, and its schema."""
_OPEN = ("message", "model_tool")
"""Parts that are not guarded: any writer may send a message, and `model_tool` is the name of a tool, not a schema."""
_STEERING = ("permission_request", "permission_answer", "cancel")


WORKER = "runtime.worker.v1"
"""The schema of the record that each worker process writes. Owners cannot rename it."""
PRESENCE = "runtime.presence.v1"
"""A schema that no record has. Consumers that only signal the presence of a process select it, so that they receive no
events."""


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """The schema name of each part, and the name of the tool that calls models."""

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
    """The name of a tool, not a schema. Its responses are the answers of models."""


async def read_flow(trail: Trail, *, by: Principal) -> Flow:
    """The flow of the trail. Raises NotFound if the trail was not bootstrapped for the owner."""
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
    """Raises msgspec.ValidationError if a name is missing."""
    return msgspec.convert(context, Flow)


def shipped_flow(pieces: tuple[BootstrapPiece, ...]) -> Flow:
    """The names that come with Clew. Raises NotFound."""
    for piece in pieces:
        if piece.key == KEY:
            return flow_of(piece.context)
    raise NotFound("piece", KEY)
