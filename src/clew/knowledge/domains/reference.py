"""The domain `reference`: documents, research over them, the sources of statements, and conflicts between sources."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import msgspec

from clew.catalog.domain import Domain
from clew.catalog.operations.text import inline
from clew.errors import InvalidInput
from clew.knowledge.documents.findings import ResearchFindings
from clew.knowledge.documents.ingest import Kind, NewSource
from clew.knowledge.documents.readers import parse_date
from clew.knowledge.documents.research import Library
from clew.knowledge.domains.tool_builder import READS, WIDTH, OpenKnowledge, add_withheld_note, method_tool
from clew.knowledge.evidence.conflicts import list_conflicts, resolve_conflict
from clew.knowledge.evidence.provenance import NodeSource, sources_of
from clew.knowledge.evidence.trust import on_one_line
from clew.knowledge.history.links import Limit
from clew.knowledge.nodes.kinds import NodeDomain
from clew.secrecy import mask_keys
from clew.tools import Effects, Guidance, GuidedContent, Tool, ToolContext, guide, tool

if TYPE_CHECKING:
    from clew.knowledge.evidence.conflicts import SourceConflict

NAME = "reference"
NodeId = Annotated[str, msgspec.Meta(description="the id of a note, a decision or a reference")]


def build_reference(open_knowledge: OpenKnowledge) -> Domain:
    """The domain over documents; the first tool that runs calls `open_knowledge`."""
    groups = (_research_tools, _ingestion_tools, _evidence_tools)
    tools = [each for group in groups for each in group(open_knowledge)]
    return Domain(
        name=NAME,
        is_builtin=True,
        description="Texts of others: documents of this repository, papers and standards",
        tools=add_withheld_note(tools, open_knowledge),
    )


def _research_tools(known: OpenKnowledge) -> Sequence[Tool]:
    made = partial(method_tool, known, lambda knowledge, by: knowledge.library(by), render=findings_text)
    return (
        made(Library.research, render=_researched, title="What is written on this"),
        made(Library.compare_approaches, title="Compare approaches"),
        made(Library.find_best_practices, title="Best practices"),
        made(Library.design_proposal, title="Draft a design proposal"),
        made(Library.find_papers),
        made(Library.synthesize_with_codebase),
        made(Library.get_code_for_academic),
        made(Library.get_history_for_academic),
    )


def _researched(found: ResearchFindings) -> GuidedContent:
    return GuidedContent(content=findings_text(found), guidance=_next_steps(found))


def _ingestion_tools(known: OpenKnowledge) -> Sequence[Tool]:
    @tool(name="ingest_source", title="Ingest a source", effects=Effects(reaches_out=False))
    async def ingest_source(
        kind: Kind,
        ctx: ToolContext,
        path: Annotated[str, msgspec.Meta(description="a file of this folder")] = "",
        text: Annotated[str, msgspec.Meta(description="the text itself, instead of a path")] = "",
        title: str = "",
        url: Annotated[str, msgspec.Meta(description="where it is from; stored as a claim, not fetched")] = "",
        authors: Sequence[str] = (),
        published: Annotated[str, msgspec.Meta(description="a date such as 2022-06-01")] = "",
        venue: str = "",
    ) -> str:
        """Ingest a source for research: an RFC, a paper, an article, a spec or a page, as a file of this folder or as
        text. It stays unverified until a person verifies it."""
        published_at = parse_date(published) if published else None
        if published and published_at is None:
            raise InvalidInput("published", "is not a date", hint="For example 2022-06-01")
        given = {"path": path, "text": text, "title": title, "url": url, "venue": venue}
        source = NewSource(kind=kind, authors=authors, published_at=published_at, **given)
        done = await (await known()).library(ctx.by).ingest_source(source)
        status = "verified" if done.is_verified else "unverified"
        became = f"{done.written} parts written, {done.removed} removed, {status}, trust {done.trust}"
        verify = "" if done.is_verified else f"\nA person can verify it: `clew verify {done.ids[0]}`"
        return f"{inline(done.title, 120)}: {became}.{verify}"

    return (ingest_source,)


def _evidence_tools(known: OpenKnowledge) -> Sequence[Tool]:
    @tool(name="provenance", effects=READS, searchable=False)
    async def provenance(node_id: NodeId, ctx: ToolContext) -> str:
        """List the sources of a note, decision or reference, highest confidence first."""
        library = (await known()).library(ctx.by)
        chain = await sources_of(library.trail, node_id, by=ctx.by)
        return "\n".join(map(_source_line, chain)) or "No source is recorded."

    @tool(name="list_conflicts", effects=READS, searchable=False)
    async def list_(ctx: ToolContext, limit: Limit = 10) -> str:
        """List unresolved contradictions between sources, newest first."""
        library = (await known()).library(ctx.by)
        found = await list_conflicts(library.trail, by=ctx.by, limit=limit)
        return "\n".join(map(_conflict_line, found)) or "There are no unresolved conflicts."

    @tool(name="resolve_conflict", effects=Effects(repeats_safely=True, reaches_out=False), searchable=False)
    async def resolve(
        conflict_id: Annotated[str, msgspec.Meta(description="an id that `list_conflicts` shows")],
        resolution: Annotated[str, msgspec.Meta(min_length=1, description="which side holds, and why")],
        ctx: ToolContext,
    ) -> str:
        """Mark a conflict as resolved and record the resolution."""
        library = (await known()).library(ctx.by)
        done = await resolve_conflict(library.trail, conflict_id, mask_keys(resolution), by=ctx.by, clock=library.clock)
        return f"Resolved: {inline(done.subject, WIDTH)}: {inline(done.resolution, WIDTH)}"

    return provenance, list_, resolve


def _next_steps(found: ResearchFindings) -> list[Guidance]:
    best = [each.node.id for each in found.sources if each.node.domain is NodeDomain.ACADEMIC][:1]
    return [
        step
        for id in best
        for step in (
            guide(f"{NAME}://tools/hidden/get_code_for_academic", "the code that the first is about", academic_id=id),
            guide("history://tools/store_summary", "note what you make of it", inspired_by=[id]),
        )
    ]


def findings_text(found: ResearchFindings) -> str:
    """The text of the findings, with a line for each warning, conflict and gap, and for other domains to ask."""
    lines = [found.text, *found.warnings, *(f"disagreement: {each}" for each in found.conflicts)]
    lines += [f"gap: {each}" for each in found.gaps]
    lines += [f"Retrieval: {found.stopped}."] if found.stopped else []
    lines += [f"Also in: {', '.join(found.also_exists_in)}"] if found.sources and found.also_exists_in else []
    return "\n".join(lines)


def _source_line(source: NodeSource) -> str:
    place = source.path or source.url or source.node_id or ""
    parts = (
        source.kind.label.replace("_", " "),
        on_one_line(mask_keys(place)),
        source.node_id if source.node_id != place else "",
        f"{source.timestamp:%Y-%m-%d}" if source.timestamp else "",
    )
    status = "verified" if source.verified else "unverified"
    return f"- {', '.join(filter(None, parts))} (confidence {source.confidence:.2f}, {status})"


def _conflict_line(conflict: SourceConflict) -> str:
    believe = f" Believe: {inline(mask_keys(conflict.resolution), WIDTH)}." if conflict.resolution else ""
    kind = conflict.kind.label.replace("_", " ")
    found = f"{conflict.detected_at:%Y-%m-%d} " if conflict.detected_at else ""
    return f"- {found}{kind}: {inline(mask_keys(conflict.description), 2 * WIDTH)}.{believe} ({conflict.id})"
