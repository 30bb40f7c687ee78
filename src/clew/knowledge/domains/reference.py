"""The domain `reference`: what others wrote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec

from clew.catalog.domain import Domain
from clew.catalog.text import inline
from clew.knowledge.domains.code import Limit, OpenKnowledge, Query
from clew.knowledge.domains.shown import READS
from clew.knowledge.domains.withheld import telling_of_the_withheld
from clew.knowledge.references.ingesting import Kind, NewSource
from clew.tools import Effects, Guidance, GuidedContent, Tool, ToolContext, guide, tool
from clew.trail.kinds import NodeDomain

if TYPE_CHECKING:
    from clew.knowledge.references.answers import Findings

NAME = "reference"
ReferenceId = Annotated[str, msgspec.Meta(description="the id of a reference")]


def build_reference(open_knowledge: OpenKnowledge) -> Domain:
    """The domain over documents; `open_knowledge` is called by the first tool that runs."""
    return Domain(
        name=NAME,
        description="What others wrote: documents of this repository and of its packages, papers and standards",
        tools=telling_of_the_withheld((*_entry_points(open_knowledge), *_kept(open_knowledge)), open_knowledge),
    )


def _entry_points(known: OpenKnowledge) -> Sequence[Tool]:
    @tool(name="research", title="What is written on this", effects=READS)
    async def research(
        query: Query,
        ctx: ToolContext,
        depth: Annotated[int, msgspec.Meta(ge=1, le=3, description="ten sources for each step")] = 2,
        focus_areas: Sequence[str] = (),
        include_papers: bool = True,
        include_docs: bool = True,
    ) -> GuidedContent:
        """Find what documents, packages, papers and standards say on a topic, with their sources."""
        library = (await known()).library(ctx.by)
        found = await library.research(query, depth, focus_areas, include_papers, include_docs)
        return GuidedContent(content=findings_text(found), guidance=_next_steps(found))

    @tool(name="compare_approaches", title="Compare approaches", effects=READS)
    async def compare_approaches(
        approaches: Annotated[Sequence[str], msgspec.Meta(description="two to four")],
        ctx: ToolContext,
        context: str = "",
        criteria: Sequence[str] = (),
    ) -> str:
        """Compare two to four approaches by what is written on each."""
        library = (await known()).library(ctx.by)
        return findings_text(await library.compare_approaches(approaches, context, criteria))

    return research, compare_approaches


def _kept(known: OpenKnowledge) -> Sequence[Tool]:
    @tool(name="find_best_practices", effects=READS, searchable=False)
    async def find_best_practices(topic: str, ctx: ToolContext, technology: str = "", limit: Limit = 5) -> str:
        """Find what is recommended on a topic."""
        return findings_text(await (await known()).library(ctx.by).find_best_practices(topic, technology, limit))

    @tool(name="find_papers", effects=READS, searchable=False)
    async def find_papers(
        query: Query, ctx: ToolContext, limit: Limit = 5, min_year: int | None = None, venues: Sequence[str] = ()
    ) -> str:
        """Find papers that were taken in."""
        return findings_text(await (await known()).library(ctx.by).find_papers(query, limit, min_year, venues))

    @tool(name="synthesize_with_codebase", effects=READS, searchable=False)
    async def synthesize_with_codebase(topic: str, ctx: ToolContext, show_gaps: bool = False) -> str:
        """Put what others recommend beside what the code does."""
        return findings_text(await (await known()).library(ctx.by).synthesize_with_codebase(topic, show_gaps))

    @tool(name="get_code_for_academic", effects=READS, searchable=False)
    async def get_code_for_academic(academic_id: ReferenceId, ctx: ToolContext, limit: Limit = 5) -> str:
        """Find the code that a reference is about."""
        return findings_text(await (await known()).library(ctx.by).get_code_for_academic(academic_id, limit))

    @tool(name="get_history_for_academic", effects=READS, searchable=False)
    async def get_history_for_academic(academic_id: ReferenceId, ctx: ToolContext) -> str:
        """Find what was decided or done because of a reference."""
        return findings_text(await (await known()).library(ctx.by).get_history_for_academic(academic_id))

    @tool(name="ingest_source", effects=Effects(reaches_out=False), searchable=False)
    async def ingest_source(kind: Kind, ctx: ToolContext, path: str = "", text: str = "", title: str = "") -> str:
        """Take a file of this folder, or a text, in as a reference; the same one again is taken in once. It stays
        unverified until a person has looked at it."""
        source = NewSource(kind=kind, path=path, text=text, title=title)
        by = msgspec.structs.replace(ctx.by, steers=False)  # no person vouches for what a tool is given
        done = await (await known()).library(by).ingest_source(source)
        became = f"{done.written} parts written, {done.superseded} superseded, unverified, trust {done.trust}"
        return f"{inline(done.title, 120)}: {became}."

    return (
        find_best_practices,
        find_papers,
        synthesize_with_codebase,
        get_code_for_academic,
        get_history_for_academic,
        ingest_source,
    )


def _next_steps(found: Findings) -> list[Guidance]:
    best = [each.id for each in found.sources if each.domain == NodeDomain.ACADEMIC.label][:1]
    return [
        step
        for id in best
        for step in (
            guide(f"{NAME}://tools/hidden/get_code_for_academic", "the code that the first is about", academic_id=id),
            guide("history://tools/store_summary", "note what you make of it", inspired_by=[id]),
        )
    ]


def findings_text(found: Findings) -> str:
    """What was found, with a line for each warning and each gap."""
    lines = [found.text, *found.warnings, *(f"disagreement: {each}" for each in found.conflicts)]
    return "\n".join([*lines, *(f"gap: {each}" for each in found.gaps)])
