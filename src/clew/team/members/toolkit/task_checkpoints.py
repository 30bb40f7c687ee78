"""Checkpoints of a task that an agent saves itself: summary, steps, notes, files and decisions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.errors import InvalidInput, NotFound
from clew.knowledge.domains.tool_builder import OpenKnowledge
from clew.knowledge.history.entries import ArchiveQuery, Category
from clew.team.members.toolkit.member_deps import READS, MemberDeps, session_principal
from clew.team.members.toolkit.scratchpad import Scratchpad, ScratchpadNote
from clew.team.messages.conversation import get_conversation
from clew.tools.tool import Effects, Tool, ToolContext, tool
from clew.trail.model.breadcrumb import NEVER, Breadcrumb, Draft
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

SCHEMA = "team.task-checkpoint.v1"
LATEST = "latest"
CheckpointStatus = Literal["in_progress", "blocked", "paused", "completed"]
READERS, WRITERS = ("engineer_read_file", "librarian_get_file"), ("engineer_write_file", "engineer_edit_file")
MAX_CALLS = 500
NO_STEPS = "No step is left: check the result, and signal completion."


class CheckpointDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A choice that was made on the way."""

    question: str
    choice: str
    reason: str = ""


class TaskCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """How far a task is."""

    id: str
    session_id: str
    pipeline: str
    agent: str
    created_at: datetime
    summary: str
    completed: tuple[str, ...]
    next_steps: tuple[str, ...]
    status: CheckpointStatus
    decisions: tuple[CheckpointDecision, ...]
    files_read: tuple[str, ...]
    files_modified: tuple[str, ...]
    scratchpad: tuple[ScratchpadNote, ...] = ()
    hint: str = ""


class TaskCheckpoints:
    """Saves and restores the checkpoints of a session."""

    def __init__(self, trail: Trail, clock: Clock, response_schema: str, by: Principal) -> None:
        self._trail = trail
        self._clock = clock
        self._responses = response_schema
        self._by = by

    async def save(self, draft: TaskCheckpoint, conversation: str) -> TaskCheckpoint:
        """Store a checkpoint with the files that the conversation read and changed so far."""
        read, changed = await self._files(conversation)
        kept = msgspec.structs.replace(draft, files_read=read, files_modified=changed)
        record = await self._trail.records.create(
            Draft(
                title=f"Checkpoint: {draft.summary}"[:200],
                schema_name=SCHEMA,
                tags=(f"session:{draft.session_id}", f"agent:{draft.agent}", "checkpoint"),
                context=msgspec.to_builtins(kept),
                ttl=NEVER,
                embed="never",
            ),
            by=self._by,
        )
        return _read(record)

    async def restore(self, id: str = LATEST) -> TaskCheckpoint:
        """A checkpoint of this session with the notes as they are now, and the next step. Raises NotFound."""
        tags = (f"session:{self._by.session}", "checkpoint")
        page = await self._trail.records.list(Selector(schema_name=SCHEMA, all_tags=tags), by=self._by, limit=100)
        found = [each for each in page.items if id in (LATEST, each.id)]
        if not found:
            raise NotFound("checkpoint", id, hint="Save one with save_checkpoint")
        checkpoint = _read(found[0])
        notes = await Scratchpad(self._trail, self._clock, self._by).read()
        step = f"Next: {checkpoint.next_steps[0]}" if checkpoint.next_steps else NO_STEPS
        return msgspec.structs.replace(checkpoint, scratchpad=tuple(notes), hint=step)

    async def _files(self, conversation: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The files that calls of a conversation read and changed."""
        selector = Selector(schema_name=self._responses, session=conversation, tag_prefix="file:")
        page = await self._trail.records.list(selector, by=self._by, limit=MAX_CALLS, oldest_first=True)
        read, changed = dict[str, None](), dict[str, None]()
        for each in page.items:
            paths = [tag.removeprefix("file:") for tag in each.tags if tag.startswith("file:")]
            named = changed if each.context.get("tool") in WRITERS else read
            named.update(dict.fromkeys(paths))
        return tuple(read), tuple(changed)


def checkpoint_toolkit(deps: MemberDeps, response_schema: str) -> tuple[Tool, ...]:
    """Return save_checkpoint and resume_task."""

    def checkpoints(ctx: ToolContext) -> TaskCheckpoints:
        return TaskCheckpoints(deps.trail, deps.clock, response_schema, session_principal(ctx))

    @tool(name="save_checkpoint", searchable=False, effects=Effects(repeats_safely=True, reaches_out=False))
    async def save_checkpoint(
        summary: str,
        ctx: ToolContext,
        completed: tuple[str, ...] = (),
        next_steps: tuple[str, ...] = (),
        status: CheckpointStatus = "in_progress",
    ) -> str:
        """Save how far the task is, with your notes and the files that you used.

        Args:
            summary: what was done, in a sentence or two
            completed: steps that are done
            next_steps: steps that are left, the next one first
            status: the state of the task
        """
        if not summary.strip():
            raise InvalidInput("summary", "is empty")
        place = get_conversation(ctx.by.session)
        draft = TaskCheckpoint(
            id="",
            session_id=place.session,
            pipeline=place.pipeline,
            agent=ctx.by.agent_id,
            created_at=deps.clock.now(),
            summary=summary,
            completed=completed,
            next_steps=next_steps,
            status=status,
            decisions=tuple(await session_decisions(deps.knowledge, session_principal(ctx))),
            files_read=(),
            files_modified=(),
        )
        return f"Saved as {(await checkpoints(ctx).save(draft, ctx.by.session or '')).id}."

    @tool(name="resume_task", searchable=False, effects=READS)
    async def resume_task(ctx: ToolContext, id: str = LATEST) -> TaskCheckpoint:
        """Return a checkpoint of this session with notes, files, decisions and the next step.

        Args:
            id: the id of a checkpoint, or latest
        """
        return await checkpoints(ctx).restore(id)

    return save_checkpoint, resume_task


async def session_decisions(known: OpenKnowledge, by: Principal) -> Sequence[CheckpointDecision]:
    """The decisions in the journal of a session, oldest first."""
    wanted = ArchiveQuery(categories=(Category.DECISION,), current_only=True, limit=20)
    found = await (await known()).chronicle(by, by.session or "").query(wanted)
    return [CheckpointDecision(question=each.name, choice=each.content) for each in reversed(found)]


def _read(record: Breadcrumb) -> TaskCheckpoint:
    return msgspec.structs.replace(msgspec.convert(record.context, TaskCheckpoint), id=record.id)
