"""The four tools of the note processor: tags, summary, insights and explanation of a note. Each result is one
breadcrumb of its note, replaced when the note is processed again."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid5

from clew.agents.repairs.reliability_settings import NoteResults
from clew.errors import AlreadyExists, Conflict, InvalidInput
from clew.tools.tool import Effects, Tool, ToolContext, tool
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.model.edge import Edge, EdgeType
from clew.trail.store import Trail

MAX_TAGS, MAX_TAG = 20, 60
MAX_INSIGHTS = 20
MAX_TEXT = 20_000
_RETRIES = 10
_WRITES = Effects(repeats_safely=True, reaches_out=False, keyed=True)


def note_tools(trail: Trail, results: NoteResults) -> tuple[Tool, ...]:
    """One tool for each result."""

    @tool(searchable=False, effects=_WRITES)
    async def save_note_tags(tags: list[str], context: ToolContext, note_id: str = "") -> str:
        """Keep the tags of a note. Prefer tags that other notes have already.

        tags: short words in lower case, the most telling first.
        note_id: the id of the note; the one that this run is about if it is left out.
        """
        words = _words(tags)
        return await _save(trail, results.tags, note_id, {"tags": words}, context, tags=tuple(words))

    @tool(searchable=False, effects=_WRITES)
    async def save_note_summary(summary: str, context: ToolContext, note_id: str = "") -> str:
        """Keep the summary of a note.

        summary: what it says, in two to four sentences.
        note_id: the id of the note; the one that this run is about if it is left out.
        """
        return await _save(trail, results.summary, note_id, {"summary": _text("summary", summary)}, context)

    @tool(searchable=False, effects=_WRITES)
    async def save_note_insights(insights: list[str], context: ToolContext, note_id: str = "") -> str:
        """Store the insights from a note, also in comparison with similar notes.

        insights: one sentence each.
        note_id: the id of the note; the one that this run is about if it is left out.
        """
        kept = [_text("insights", each) for each in insights if each.strip()][:MAX_INSIGHTS]
        if not kept:
            raise InvalidInput("insights", "are empty", hint="Give at least one sentence")
        return await _save(trail, results.insights, note_id, {"insights": kept}, context)

    @tool(searchable=False, effects=_WRITES)
    async def save_note_eli5(explanation: str, context: ToolContext, note_id: str = "") -> str:
        """Keep an explanation of a note that a child of five would understand.

        explanation: a few plain sentences.
        note_id: the id of the note; the one that this run is about if it is left out.
        """
        kept = {"explanation": _text("explanation", explanation)}
        return await _save(trail, results.eli5, note_id, kept, context)

    return save_note_tags, save_note_summary, save_note_insights, save_note_eli5


def result_id(note_id: str, schema: str) -> str:
    """The id of a note's result of one schema: there is one at most."""
    return str(uuid5(UUID(note_id), schema))


async def _save(
    trail: Trail,
    schema: str,
    note_id: str,
    content: dict[str, Any],
    context: ToolContext,
    tags: tuple[str, ...] = (),
) -> str:
    """Write the result and tie it to its note. Raises NotFound if there is no such note."""
    note = await trail.records.get(note_id or context.run, by=context.by)
    session = (f"session:{context.by.session}",) if context.by.session else ()
    own = (f"note:{note.id}", *tags, *session, *context.lineage)
    draft = Draft(
        id=result_id(note.id, schema),
        title=f"{schema.split('.')[1].capitalize()} of {note.title}"[:200],
        schema_name=schema,
        tags=tuple(dict.fromkeys(own)),
        context={"note_id": note.id, "note_version": note.version, **content},
        scopes=note.scopes,
    )
    saved = await _put(trail, draft, context)
    edge = Edge(source=saved.id, target=note.id, type=EdgeType.BASED_ON.label)
    await trail.edges.add([edge], by=context.by, replace=True)
    return f"kept as {saved.id}"


async def _put(trail: Trail, draft: Draft, context: ToolContext) -> Breadcrumb:
    """Create the breadcrumb, or update the existing one."""
    by = context.by
    for _ in range(_RETRIES):
        try:
            return await trail.records.create(draft, by=by)
        except AlreadyExists:
            present = await trail.records.get(draft.id or "", by=by)
        change = Change(title=draft.title, tags=draft.tags, context=draft.context)
        try:
            return await trail.records.update(present.id, change, expect=present.version, by=by)
        except Conflict:
            continue
    raise Conflict(draft.id or "", expected=0, actual=0)


def _words(tags: list[str]) -> list[str]:
    """Tags as they are written on breadcrumbs. Raises InvalidInput if none is left."""
    words = [" ".join(each.replace(":", " ").casefold().split())[:MAX_TAG].strip() for each in tags]
    kept = list(dict.fromkeys(each for each in words if each and each.isprintable()))[:MAX_TAGS]
    if not kept:
        raise InvalidInput("tags", "are empty", hint="Give at least one word")
    return kept


def _text(name: str, text: str) -> str:
    if not text.strip():
        raise InvalidInput(name, "is empty")
    return text.strip()[:MAX_TEXT]
