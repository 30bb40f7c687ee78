"""The dependencies of the tools of members, and the way in which a tool sends a message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.knowledge.domains.tool_builder import OpenKnowledge
from clew.team.machines.team_state import TeamState
from clew.team.members.roster import require_may_address_user
from clew.team.messages.conversation import TeamConversation, conversation_id, get_conversation
from clew.team.messages.message import TeamMessage
from clew.team.messages.message_types import AGENTS, ROUTES, USER, MessageType
from clew.team.router import Router
from clew.tools.files.folder import WorkingFolder
from clew.tools.permissions.policy import Policy
from clew.tools.shell import CommandResult
from clew.tools.tool import Effects, ToolContext
from clew.trail.store import Trail

READS = Effects(reads_only=True, repeats_safely=True, reaches_out=False)
SENDS = Effects(repeats_safely=True, reaches_out=False, keyed=True)
"""A message with the same key is written once."""


class Send(Protocol):
    """Sends a message through the Guide, which stamps it and may refuse it."""

    async def __call__(self, message: TeamMessage, *, by: Principal, key: str | None = None) -> TeamMessage: ...


class RunCheck(Protocol):
    """Runs the linters or tests of the project on the tree of a pipeline, or of the session without one."""

    async def __call__(
        self, session: str, pipeline: str, kind: str, scope: str, commands: Sequence[str]
    ) -> Mapping[str, Any]: ...


class ListSessions(Protocol):
    """The sessions of the user, as name and state."""

    async def __call__(self, *, by: Principal) -> Sequence[tuple[str, str]]: ...


FolderOf = Callable[[str, str], Awaitable[WorkingFolder]]
"""The work tree of a pipeline, or of the session if no pipeline is named. Raises NotFound."""
RunInTree = Callable[[TeamConversation, WorkingFolder, str, float, ToolContext], Awaitable[CommandResult]]
"""Runs a shell command in a work tree; only that tree is writable."""
StateOf = Callable[[str], Awaitable[TeamState]]
"""The state of a session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberDeps:
    """The parts that tools of members work with. `own` is the folder of the trail."""

    trail: Trail
    clock: Clock
    own: Path
    knowledge: OpenKnowledge
    send: Send
    folder_of: FolderOf
    run: RunInTree
    check: RunCheck
    state_of: StateOf
    router: Router
    sessions: ListSessions
    policy: Policy

    async def tell(
        self, type: MessageType, payload: msgspec.Struct, ctx: ToolContext, *, target: str = "", source: str = ""
    ) -> TeamMessage:
        """Send a message of the calling member, or of `source` in the same session. Without a target it goes to the
        first receiver of its type. Raises InvalidInput if the Guide refuses it, or an agent that never addresses
        the user would."""
        place = get_conversation(ctx.by.session)
        sender = source or ctx.by.agent_id
        receiver = target or ROUTES[type].receivers[0]
        if receiver == USER and sender in AGENTS:
            require_may_address_user(sender)
        message = TeamMessage(
            id="",
            session_id=place.session,
            source=sender,
            target=receiver,
            type=type,
            payload=msgspec.to_builtins(payload),
            timestamp=self.clock.now(),
        )
        conversation = conversation_id(place.session, place.pipeline, sender)
        by = msgspec.structs.replace(ctx.by, agent_id=sender, session=conversation)
        return await self.send(message, by=by, key=f"{ctx.key}/{type}" if ctx.key else None)


def session_principal(ctx: ToolContext) -> Principal:
    """The caller in the session of its team, so that its notes belong to that session."""
    found = get_conversation(ctx.by.session)
    return msgspec.structs.replace(ctx.by, session=found.session)


def in_session(ctx: ToolContext) -> ToolContext:
    """The context of a call in the session of the team, in place of the conversation of one member."""
    return msgspec.structs.replace(ctx, by=session_principal(ctx))
