"""The scratchpad: notes of a session by key. They survive restarts and resumes, and no other session sees them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any
from uuid import UUID, uuid5

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.errors import AlreadyExists, Conflict, InvalidInput, NotFound
from clew.secrecy import mask_keys
from clew.team.members.toolkit.member_deps import READS, MemberDeps, session_principal
from clew.tools.tool import Effects, Tool, ToolContext, tool
from clew.trail.model.breadcrumb import NEVER, Breadcrumb, Change, Draft, Ttl
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

SCHEMA = "team.note.v1"
ALL = "all"
MAX_NOTES = 200
MAX_NOTE = 20_000
_TRIES = 10
_NAMESPACE = UUID("8f3c1f0c-51b4-5f6e-8c58-2b0c9f1a7d55")
NoteKey = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
Seconds = Annotated[int, msgspec.Meta(ge=0, le=31_536_000)]


class ScratchpadNote(msgspec.Struct, frozen=True, kw_only=True):
    """One note. `ttl` is in seconds; 0 means as long as the session."""

    key: str
    content: str
    created_at: datetime
    updated_at: datetime
    ttl: int = 0


class Scratchpad:
    """The notes of one session."""

    def __init__(self, trail: Trail, clock: Clock, by: Principal) -> None:
        if not by.session:
            raise InvalidInput("session", "is missing", hint="Notes belong to a session")
        self._records = trail.records
        self._clock = clock
        self._by = by
        self._session = by.session

    async def write(self, key: str, content: str, ttl: int = 0) -> ScratchpadNote:
        """Write a note, or replace the note of that key. Raises InvalidInput, Conflict."""
        if not content.strip() or len(content) > MAX_NOTE:
            raise InvalidInput("note", f"must have 1 to {MAX_NOTE:,} characters")
        draft = self._draft(key, mask_keys(content), ttl)
        for _ in range(_TRIES):
            try:
                return _note(await self._records.create(draft, by=self._by))
            except AlreadyExists:
                present = await self._records.get(draft.id or "", by=self._by)
            change = Change(context=draft.context, ttl=draft.ttl or NEVER)
            try:
                return _note(await self._records.update(present.id, change, expect=present.version, by=self._by))
            except Conflict:
                continue
        raise Conflict(draft.id or "", expected=0, actual=0)

    async def read(self, key: str = ALL) -> Sequence[ScratchpadNote]:
        """The note of a key, or all of them by key. Raises NotFound."""
        if key == ALL:
            tags = (f"session:{self._session}", "scratchpad")
            selector = Selector(schema_name=SCHEMA, all_tags=tags)
            page = await self._records.list(selector, by=self._by, limit=MAX_NOTES)
            return sorted(map(_note, page.items), key=lambda each: each.key)
        try:
            return [_note(await self._records.get(self._id(key), by=self._by))]
        except NotFound:
            known = ", ".join(each.key for each in await self.read())
            raise NotFound("note", key, hint=f"Notes are {known or 'none'}") from None

    def _id(self, key: str) -> str:
        return str(uuid5(_NAMESPACE, f"{self._by.owner_id}\n{self._session}\n{key}"))

    def _draft(self, key: str, content: str, ttl: int) -> Draft:
        kept: dict[str, Any] = {"key": key, "content": content, "ttl": ttl, "session_id": self._session}
        ends = Ttl(kind="datetime", expires_at=self._clock.now() + timedelta(seconds=ttl)) if ttl else NEVER
        return Draft(
            id=self._id(key),
            title=f"Note {key}"[:200],
            schema_name=SCHEMA,
            tags=("scratchpad", f"session:{self._session}"),
            context=kept,
            ttl=ends,
            embed="never",
        )


def scratchpad_toolkit(deps: MemberDeps) -> tuple[Tool, ...]:
    """Return scratchpad_write and scratchpad_read."""

    @tool(
        name="scratchpad_write", searchable=False, effects=Effects(repeats_safely=True, reaches_out=False, keyed=True)
    )
    async def scratchpad_write(key: NoteKey, note: str, ctx: ToolContext, ttl: Seconds = 0) -> ScratchpadNote:
        """Keep a note of this session under a key.

        Args:
            key: a short name
            note: the text; it replaces an earlier one
            ttl: seconds after which it goes away; 0 keeps it
        """
        return await Scratchpad(deps.trail, deps.clock, session_principal(ctx)).write(key, note, ttl)

    @tool(name="scratchpad_read", searchable=False, effects=READS)
    async def scratchpad_read(ctx: ToolContext, key: NoteKey = ALL) -> list[ScratchpadNote]:
        """Read a note of this session, or all of them.

        Args:
            key: the key of a note, or all
        """
        return list(await Scratchpad(deps.trail, deps.clock, session_principal(ctx)).read(key))

    return scratchpad_write, scratchpad_read


def _note(record: Breadcrumb) -> ScratchpadNote:
    return ScratchpadNote(
        key=record.context["key"],
        content=record.context["content"],
        created_at=record.created_at,
        updated_at=record.updated_at,
        ttl=record.context["ttl"],
    )
