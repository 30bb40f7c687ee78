"""Hooks of single members: the Guide gets the state of its session and remembers routes, the Archivalist keeps entries
in their session, and the work of builders appears in the timeline."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from clew.access import Principal
from clew.agents.hooks.hook_points import PromptData, ToolData
from clew.agents.hooks.prompt_hooks import find_message
from clew.errors import Abort
from clew.fences import clean, fenced
from clew.knowledge.history.entries import Category, CheckpointCategory
from clew.knowledge.nodes.kinds import NodeDomain, NodeType
from clew.knowledge.nodes.node_store import build_node
from clew.llm.messages import Message
from clew.skills.lru_cache import LruCache
from clew.team.machines.team_state import TeamState
from clew.team.members.context_handlers import load_checkpoint
from clew.team.messages.conversation import find_conversation
from clew.team.messages.message_types import ARCHITECT, ARCHIVALIST, BUILDERS, GUIDE
from clew.tools.hook_chain import Hook, HookPriority
from clew.trail.model.breadcrumb import Draft
from clew.trail.store import Trail

WRITERS = {"engineer_write_file": "modified", "engineer_edit_file": "modified", "create_component": "created"}
CONSULTATIONS = "consult_"
STORING = (
    "archivalist_store_entry",
    "archivalist_record_file",
    "archivalist_record_pattern",
    "archivalist_record_failure",
)
_ROUTES = 1_000
StateOf = Callable[[str], Awaitable[TeamState]]


class MemberHooks:
    """The hooks of one runtime. They share a cache of routes that lives as long as the runtime."""

    def __init__(self, trail: Trail, state_of: StateOf, *, by: Principal) -> None:
        self._trail = trail
        self._state_of = state_of
        self._by = by
        self._routes: LruCache[tuple[str, str], str] = LruCache(_ROUTES)
        self._asked: LruCache[str, tuple[str, str]] = LruCache(_ROUTES)

    def hooks(self) -> tuple[Hook, ...]:
        early, late = HookPriority.EARLY, HookPriority.LATE
        return (
            Hook(name="route_cache_lookup", point="pre_prompt", priority=HookPriority.FIRST, function=self.find_route),
            Hook(name="session_context_injection", point="pre_prompt", priority=early, function=self.add_state),
            Hook(name="workflow_injection", point="pre_prompt", priority=early, function=self.add_workflow),
            Hook(name="route_cache_store", point="post_prompt", priority=late, function=self.store_route),
            Hook(name="cross_session_query_handler", point="pre_tool", priority=early, function=_cross_session),
            Hook(name="entry_session_tagging", point="pre_tool", priority=early, function=_in_session, required=True),
            Hook(name="pattern_promotion_check", point="post_tool", priority=late, function=_promotion),
            Hook(name="file_operation_tracking", point="post_tool", priority=late, function=_file_entry),
            Hook(name="consultation_logging", point="post_tool", priority=late, function=_consultation),
        )

    async def find_route(self, data: PromptData) -> PromptData:
        """Answer a message that was routed before in this session without a model."""
        key = await self._key(data)
        if key is None:
            return data
        known = self._routes.find(key)
        if known is None:
            self._asked.keep(data.run, key)
            return data
        return msgspec.structs.replace(data, cached_result=known)

    async def store_route(self, data: PromptData) -> PromptData:
        """Remember the answer of the Guide to a message."""
        key = self._asked.find(data.run) if data.agent_id == GUIDE else None
        if key is not None and data.text.strip():
            self._routes.keep(key, data.text)
        return data

    async def add_state(self, data: PromptData) -> PromptData:
        """Tell the Guide the phase and the tasks of its session."""
        place = find_conversation(data.session)
        if data.agent_id != GUIDE or not data.is_first or place is None:
            return data
        state = await self._state_of(place.session)
        tasks = ", ".join(state.pipelines) or "none"
        told = f"Phase of the session: {state.phase}. Pipelines: {tasks}."
        return msgspec.structs.replace(data, messages=(Message(role="user", content=told), *data.messages))

    async def add_workflow(self, data: PromptData) -> PromptData:
        """Give a new Architect the workflow checkpoint that an earlier one left."""
        place = find_conversation(data.session)
        if data.agent_id != ARCHITECT or not data.is_first or place is None:
            return data
        found = await load_checkpoint(self._trail, CheckpointCategory.ARCHITECT_WORKFLOW, place.session, by=self._by)
        if found is None:
            return data
        text = fenced(clean(msgspec.json.encode(found).decode()), "")
        told = Message(role="user", content=f"The workflow of this session so far:\n{text}")
        return msgspec.structs.replace(data, messages=(told, *data.messages))

    async def _key(self, data: PromptData) -> tuple[str, str] | None:
        """The session and the message of a Guide's first prompt."""
        if data.agent_id != GUIDE or not data.is_first or not data.session or not data.messages:
            return None
        said = await find_message(self._trail, self._by, data)
        return (data.session, said) if said else None


async def _cross_session(data: ToolData) -> ToolData:
    """Treat a query that names sessions as a query across sessions."""
    if data.tool.name != "archivalist_query_chronicle" or not data.arguments.get("session_ids"):
        return data
    return msgspec.structs.replace(data, arguments={**data.arguments, "cross_session": True})


async def _in_session(data: ToolData) -> ToolData:
    """Refuse to store an entry outside of a session."""
    if data.tool.name in STORING and find_conversation(data.request.session) is None:
        raise Abort("an entry needs a session", hint="Store it in a conversation of the team")
    return data


async def _promotion(data: ToolData) -> ToolData:
    """Add a reminder about promotion after a pattern was stored."""
    if data.tool.name != "archivalist_record_pattern" or not isinstance(data.result, str):
        return data
    hint = " If it holds for all sessions, load promote_pattern and promote it."
    return msgspec.structs.replace(data, result=data.result + hint)


async def _file_entry(data: ToolData) -> ToolData:
    """Put a written file into the timeline of the session."""
    place = find_conversation(data.request.session)
    operation, path = WRITERS.get(data.tool.name), str(data.arguments.get("path") or "")
    if operation is None or place is None or place.role not in BUILDERS or not path:
        return data
    text = f"{operation} {path}"
    draft: Draft = build_node(
        text[:100],
        NodeDomain.HISTORY,
        NodeType.HISTORY_ENTRY,
        text,
        {
            "session_id": place.session,
            "category": Category.TIMELINE.value,
            "source": place.role,
            "metadata": {"session": place.session, "pipeline": place.pipeline, "by": ARCHIVALIST},
        },
    )
    kept = msgspec.structs.replace(draft, idempotency_key=f"team/file/{data.request.id}", embed="never")
    return msgspec.structs.replace(data, drafts=(*data.drafts, kept))


async def _consultation(data: ToolData) -> ToolData:
    """Mark the response of a consultation, so that all of them can be found."""
    if not data.tool.name.startswith(CONSULTATIONS):
        return data
    role = data.tool.name.removeprefix(CONSULTATIONS)
    return msgspec.structs.replace(data, tags=(*data.tags, f"consultation:{role}"))
