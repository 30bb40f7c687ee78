"""Handlers for crossed context thresholds: checkpoints are stored with the Archivalist, and an Engineer whose context
is full requests a hand-off. The handlers also store the records that members send to the Archivalist."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid5

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.errors import NotFound
from clew.knowledge.domains.tool_builder import OpenKnowledge
from clew.knowledge.history.entries import ArchiveQuery, Category, CheckpointCategory
from clew.knowledge.nodes.kinds import NodeDomain, NodeType
from clew.knowledge.nodes.node_store import SCHEMA as NODE
from clew.knowledge.nodes.node_store import build_node
from clew.knowledge.project.style import detect_patterns, get_style_guide
from clew.knowledge.project.tools import ToolCategory, ToolDiscoveryRequest
from clew.secrecy import mask_keys
from clew.team.guide import checked_message_draft
from clew.team.machines.team_state import TeamState
from clew.team.members import context_checkpoints as shapes
from clew.team.members.roster import roster
from clew.team.members.toolkit.scratchpad import Scratchpad
from clew.team.members.toolkit.task_checkpoints import TaskCheckpoints, session_decisions
from clew.team.members.toolkit.task_toolkit import handoff_of
from clew.team.messages.conversation import TeamConversation, find_conversation
from clew.team.messages.message import SCHEMA, TYPE_TAG, TeamMessage, read_message
from clew.team.messages.message_types import ARCHITECT, RUNTIME, MessageType
from clew.team.messages.payloads import StoreRequest
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.event import Event, RetryPolicy
from clew.trail.model.flow import Flow
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import find_request_id
from clew.trail.work.handlers import Handler

CONTEXT, STORE = "team/context", "team/archive"
ROUTERS = ("guide_route_message", "guide_classify_intent")
RESEARCH = ("research", "compare_approaches", "find_best_practices", "design_proposal")
MAX_CALLS = 200
MAX_LISTED = 50
_RETRY = RetryPolicy(attempts=5, backoff=0.5, backoff_limit=30.0)
_NAMESPACE = UUID("2f6b4f4e-3c3a-5be0-8b57-7a1fb1f3c9d2")
_TOOLS: tuple[ToolCategory, ...] = ("linter", "formatter", "type_checker", "test_framework")
StateOf = Callable[[str], Awaitable[TeamState]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextActions:
    """Builds the checkpoints and hand-offs of members."""

    trail: Trail
    flow: Flow
    clock: Clock
    by: Principal
    knowledge: OpenKnowledge
    state_of: StateOf

    def handlers(self) -> tuple[Handler, ...]:
        """The handlers for a runtime."""
        ordered = Selector(schema_name=self.flow.checkpoint)
        stored = Selector(
            schema_name=SCHEMA,
            any_tags=(TYPE_TAG + MessageType.STORE_REQUEST, TYPE_TAG + MessageType.STORE_SUMMARY),
        )
        return (
            Handler(name=CONTEXT, selector=ordered, function=self.on_threshold, retry=_RETRY, ordered=False),
            Handler(name=STORE, selector=stored, function=self.on_store, retry=_RETRY, ordered=False),
        )

    async def on_threshold(self, event: Event, deps: Any) -> Sequence[Draft]:
        """Carry out a checkpoint or a hand-off of a member."""
        record = event.breadcrumb
        place = find_conversation(record.session) if record is not None else None
        if record is None or place is None:
            return ()
        if record.context["do"] == "checkpoint" and place.role in shapes.CATEGORIES:
            checkpoint = await self.checkpoint(place, record)
            category = shapes.CATEGORIES[place.role][0]
            return (self._entry(category, place, msgspec.to_builtins(checkpoint), f"checkpoint/{record.id}"),)
        if record.context["do"] == "hand_off" and place.pipeline:
            return (await self._handoff(place, record),)
        return ()

    async def on_store(self, event: Event, deps: Any) -> Sequence[Draft]:
        """Store the messages that a member sent to the Archivalist."""
        if event.breadcrumb is None:
            return ()
        message = read_message(event.breadcrumb)
        sent = msgspec.convert(message.payload, StoreRequest)
        place = TeamConversation(session=message.session_id, pipeline=sent.pipeline, role=message.source)
        return (self._entry(sent.category, place, sent.content, f"store/{message.id}"),)

    async def checkpoint(self, place: TeamConversation, record: Breadcrumb) -> shapes.ContextCheckpoint:
        """The checkpoint of a role, with the fields of its category."""
        filled = record.context["used"] / record.context["limit"]
        base = {"timestamp": record.created_at, "session_id": place.session, "context_usage": min(1.0, filled)}
        index = await self._index(place, record)
        match place.role:
            case "librarian":
                return await self._librarian(base, index, place)
            case "guide":
                modes = {name: member.description for name, member in roster().items()}
                return shapes.guide_checkpoint(base, index, await self._calls(place, ROUTERS), modes)
            case "academic":
                return shapes.research_paper(base, await self._calls(place, RESEARCH))
            case "architect":
                decisions = await session_decisions(self.knowledge, self._inside(place))
                state = await self.state_of(place.session)
                return shapes.architect_workflow(base, state, [each.choice for each in decisions])
            case "inspector":
                return shapes.inspector_findings(base, await self.state_of(place.session), place)
            case _:
                return shapes.tester_summary(base, await self.state_of(place.session), place)

    async def open_items(self, agent: str, session: str) -> str:
        """The items that a compaction keeps for a member: open findings, failures, and the member's notes."""
        place = find_conversation(session)
        if place is None:
            return ""
        lines: list[str] = []
        if place.role in ("inspector", "tester"):
            state = await self.state_of(place.session)
            base = {"timestamp": self.clock.now(), "session_id": place.session, "context_usage": 1.0}
            findings = shapes.inspector_findings(base, state, place).fixes_pending
            lines += [f"- {each.file}:{each.line} {each.description}" for each in findings]
            lines += [f"- {each}" for each in shapes.tester_summary(base, state, place).failure_descriptions]
        notes = await Scratchpad(self.trail, self.clock, self._inside(place)).read()
        return "\n".join([*lines, *(f"- note {each.key}: {each.content}" for each in notes)])

    async def _librarian(self, base: dict[str, Any], index: int, place: TeamConversation) -> shapes.LibrarianCheckpoint:
        knowledge, by = await self.knowledge(), self._inside(place)
        files = await knowledge.code.files()
        folders = dict.fromkeys(each.path.partition("/")[0] + "/" * ("/" in each.path) for each in files)
        tools = []
        for category in _TOOLS:
            request = ToolDiscoveryRequest(
                session_id=place.session, requesting_agent=place.role, tool_category=category, target_path="."
            )
            tools += [(category, each) for each in (await knowledge.discovery(by).discover(request)).tools]
        chronicle = knowledge.chronicle(by, place.session)
        styles = [msgspec.to_builtins(each) for each in await get_style_guide(knowledge.code)]
        patterns = [str(msgspec.to_builtins(each)) for each in await detect_patterns(knowledge.code)]
        noted = await chronicle.query(ArchiveQuery(categories=(Category.PATTERN, Category.INSIGHT), limit=MAX_LISTED))
        return shapes.LibrarianCheckpoint(
            **base,
            checkpoint_index=index,
            directory_structure=tuple(folders)[:MAX_LISTED],
            key_paths=tuple(each.path for each in sorted(files, key=lambda each: -each.lines)[:20]),
            code_style={str(at): each for at, each in enumerate(styles)},
            architecture=tuple(name for name in folders if name.endswith("/"))[:MAX_LISTED],
            testing_strategy=tuple(each.name for category, each in tools if category == "test_framework"),
            tooling=tuple(dict.fromkeys(each.name for _, each in tools)),
            package_managers=tuple(each.path for each in files if each.path.rpartition("/")[2] in _MANIFESTS),
            patterns=tuple(patterns[:MAX_LISTED]),
            conventions=tuple(each.content for each in noted if each.category == Category.PATTERN),
            new_discoveries=tuple(each.content for each in noted if each.category == Category.INSIGHT),
        )

    async def _handoff(self, place: TeamConversation, record: Breadcrumb) -> Draft:
        """The request for a hand-off, with the newest notes of the builder."""
        by = self._inside(place)
        try:
            saved = await TaskCheckpoints(self.trail, self.clock, self.flow.response, by).restore()
            state: dict[str, Any] = {
                "accomplished": saved.summary,
                "files_changed": list(saved.files_modified),
                "remaining": list(saved.next_steps),
            }
        except NotFound:
            state = {}
        notes = await Scratchpad(self.trail, self.clock, by).read()
        state["context_notes"] = "\n".join(f"{each.key}: {each.content}" for each in notes)
        reason = f"the context is {record.context['at']:g} % full"
        message = TeamMessage(
            id=str(uuid5(_NAMESPACE, f"{by.owner_id}\n{record.id}")),
            parent_id=record.id,
            session_id=place.session,
            source=RUNTIME,
            target=ARCHITECT,
            type=MessageType.HANDOFF_REQUEST,
            payload=msgspec.to_builtins(handoff_of(place, reason, state)),
            timestamp=self.clock.now(),
        )
        return checked_message_draft(message, key=f"team/handoff/{record.id}")

    async def _index(self, place: TeamConversation, record: Breadcrumb) -> int:
        """The number of this checkpoint among those of its conversation, from 1."""
        tags = (f"agent:{place.role}", f"session:{place.id}", "context:checkpoint")
        page = await self.trail.records.list(
            Selector(schema_name=self.flow.checkpoint, all_tags=tags), by=self.by, limit=MAX_CALLS, oldest_first=True
        )
        ids = [each.id for each in page.items]
        return ids.index(record.id) + 1 if record.id in ids else len(ids)

    async def _calls(self, place: TeamConversation, tools: Sequence[str]) -> list[tuple[Breadcrumb, dict[str, Any]]]:
        """The responses of some tools in a conversation, with the inputs of their requests."""
        match = ContextMatch(path="tool", op="in", value=list(tools))
        selector = Selector(
            schema_names=(self.flow.request, self.flow.response), session=place.id, context_match=(match,)
        )
        page = await self.trail.records.list(selector, by=self.by, limit=2 * MAX_CALLS, oldest_first=True)
        inputs = {
            find_request_id(each): dict(each.context.get("input") or {})
            for each in page.items
            if each.schema_name == self.flow.request
        }
        responses = [each for each in page.items if each.schema_name == self.flow.response]
        return [(each, inputs.get(find_request_id(each), {})) for each in responses]

    def _entry(self, category: str, place: TeamConversation, content: dict[str, Any], key: str) -> Draft:
        """The journal entry for a record that the runtime writes."""
        text = mask_keys(msgspec.json.encode(content).decode())
        draft = build_node(
            f"{category} of {place.role}",
            NodeDomain.HISTORY,
            NodeType.HISTORY_ENTRY,
            text,
            {
                "session_id": place.session,
                "category": category,
                "source": place.role,
                "metadata": {"session": place.session, "pipeline": place.pipeline},
            },
        )
        return msgspec.structs.replace(draft, idempotency_key=f"team/{key}", embed="never")

    def _inside(self, place: TeamConversation) -> Principal:
        return msgspec.structs.replace(self.by, agent_id=place.role, session=place.session)


async def load_checkpoint(
    trail: Trail, category: CheckpointCategory, session: str, *, by: Principal
) -> dict[str, Any] | None:
    """The newest checkpoint of a category in a session; None without one."""
    match = ContextMatch(path="category", value=category.value)
    selector = Selector(schema_name=NODE, all_tags=(f"session:{session}",), context_match=(match,))
    page = await trail.records.list(selector, by=by, limit=1)
    return msgspec.json.decode(page.items[0].context["content"]) if page.items else None


_MANIFESTS = frozenset(
    (
        "pyproject.toml",
        "package.json",
        "Cargo.toml",
        "go.mod",
        "pom.xml",
        "Gemfile",
        "composer.json",
        "requirements.txt",
    )
)
