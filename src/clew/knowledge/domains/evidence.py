"""Tools on evidence: the provenance of a node, and the list of conflicts. They belong to the domain `reference`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec

from clew.catalog.text import inline
from clew.errors import InvalidInput
from clew.knowledge.domains.code import Limit, OpenKnowledge
from clew.knowledge.domains.shown import READS, WIDTH
from clew.knowledge.evidence.citations import on_one_line
from clew.knowledge.evidence.conflicts import list_conflicts, resolve_conflict
from clew.knowledge.evidence.provenance import Source, add_source, sources_of
from clew.secrecy import mask_keys
from clew.tools import Effects, Tool, ToolContext, tool
from clew.trail.kinds import SourceKind

if TYPE_CHECKING:
    from clew.knowledge.evidence.conflicts import Conflict

WRITES = Effects(repeats_safely=True, reaches_out=False)
NodeId = Annotated[str, msgspec.Meta(description="the id of a note, a decision or a reference")]
Confidence = Annotated[float, msgspec.Meta(ge=0, le=1)]


def evidence_tools(known: OpenKnowledge) -> Sequence[Tool]:
    """Tools that show and extend provenance, and that list and resolve conflicts."""
    return *_provenance_tools(known), *_conflict_tools(known)


def _provenance_tools(known: OpenKnowledge) -> Sequence[Tool]:
    @tool(name="provenance", effects=READS, searchable=False)
    async def provenance(node_id: NodeId, ctx: ToolContext) -> str:
        """List the sources of a note, decision or reference, highest confidence first."""
        library = (await known()).library(ctx.by)
        chain = await sources_of(library.trail, node_id, by=ctx.by)
        return "\n".join(map(_source_line, chain)) or "No source is recorded."

    @tool(name="add_provenance", effects=WRITES, searchable=False)
    async def add_provenance(
        node_id: NodeId,
        ctx: ToolContext,
        path: Annotated[str, msgspec.Meta(description="a file of this repository")] = "",
        url: Annotated[str, msgspec.Meta(description="an address; it is stored, not fetched")] = "",
        confidence: Confidence = 0.5,
    ) -> str:
        """Add a file or an address to the sources of a note or decision. It counts as unverified."""
        if bool(path) == bool(url):
            raise InvalidInput("path", "or url must be given, and not both")
        library = (await known()).library(ctx.by)
        source = Source(
            kind=SourceKind.CODE if path else SourceKind.ACADEMIC,
            path=mask_keys(path) or None,
            url=mask_keys(url) or None,
            timestamp=library.clock.now(),
            confidence=confidence,
        )
        await add_source(library.trail, node_id, source, by=ctx.by)
        return f"Added: {_source_line(source)}"

    return provenance, add_provenance


def _conflict_tools(known: OpenKnowledge) -> Sequence[Tool]:
    @tool(name="list_conflicts", effects=READS, searchable=False)
    async def list_(ctx: ToolContext, limit: Limit = 10) -> str:
        """List sources that contradict each other and that nobody has resolved, newest first."""
        library = (await known()).library(ctx.by)
        found = await list_conflicts(library.trail, by=ctx.by, limit=limit)
        return "\n".join(map(_conflict_line, found)) or "There are no unresolved conflicts."

    @tool(name="resolve_conflict", effects=WRITES, searchable=False)
    async def resolve(
        conflict_id: Annotated[str, msgspec.Meta(description="an id that `list_conflicts` shows")],
        resolution: Annotated[str, msgspec.Meta(min_length=1, description="which side holds, and why")],
        ctx: ToolContext,
    ) -> str:
        """Mark a conflict as resolved and record the resolution."""
        library = (await known()).library(ctx.by)
        done = await resolve_conflict(library.trail, conflict_id, mask_keys(resolution), by=ctx.by, clock=library.clock)
        return f"Resolved: {inline(done.subject, WIDTH)}: {inline(done.resolution, WIDTH)}"

    return list_, resolve


def _source_line(source: Source) -> str:
    place = source.path or source.url or source.node_id or ""
    parts = (
        source.kind.label.replace("_", " "),
        on_one_line(mask_keys(place)),
        source.node_id if source.node_id != place else "",
        f"{source.timestamp:%Y-%m-%d}" if source.timestamp else "",
    )
    status = "verified" if source.verified else "unverified"
    return f"- {', '.join(filter(None, parts))} (confidence {source.confidence:.2f}, {status})"


def _conflict_line(conflict: Conflict) -> str:
    believe = f" Believe: {inline(mask_keys(conflict.resolution), WIDTH)}." if conflict.resolution else ""
    kind = conflict.kind.label.replace("_", " ")
    found = f"{conflict.detected_at:%Y-%m-%d} " if conflict.detected_at else ""
    return f"- {found}{kind}: {inline(mask_keys(conflict.description), 2 * WIDTH)}.{believe} ({conflict.id})"
