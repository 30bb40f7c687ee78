"""Tools of the domain `code` that search code, history and references at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from clew.catalog.text import inline
from clew.knowledge.domains.shown import READS, WIDTH
from clew.tools import Tool, ToolContext, tool

if TYPE_CHECKING:
    from clew.knowledge.domains.code import OpenKnowledge
    from clew.knowledge.searching import Finding

Where = Annotated[
    Sequence[Literal["code", "history", "academic"]], msgspec.Meta(description="only in these; empty: in all three")
]


def everywhere_tools(known: OpenKnowledge) -> Sequence[Tool]:
    """`search_all` groups results by domain; `smart_search` keeps to a budget of tokens."""

    @tool(name="search_all", effects=READS, searchable=False)
    async def search_all(
        query: str,
        ctx: ToolContext,
        domains: Where = (),
        limit_per_domain: Annotated[int, msgspec.Meta(ge=1, le=50)] = 5,
    ) -> str:
        """Search code, history and references at once, and show the results of each."""
        from clew.knowledge.searching import search_all as search  # with the rest of knowledge

        knowledge = await known()
        found = await search(
            knowledge.shelves,
            query,
            by=ctx.by,
            at=knowledge.clock.now(),
            domains=domains,
            limit_per_domain=limit_per_domain,
        )
        parts = [
            "\n".join((f"## {domain}", "", *(map(_line, each.results) if each.results else ["no matches"])))
            for domain, each in found.results.items()
        ]
        return "\n\n".join(parts)

    @tool(name="smart_search", effects=READS, searchable=False)
    async def smart_search(
        query: str,
        ctx: ToolContext,
        token_budget: Annotated[int, msgspec.Meta(ge=50, le=100_000)] = 1_000,
        thoroughness: Literal["quick", "moderate", "thorough"] = "moderate",
    ) -> str:
        """Search everything and show the best results within a budget of tokens."""
        from clew.knowledge.searching import smart_search as search  # with the rest of knowledge

        knowledge = await known()
        found = await search(
            knowledge.shelves,
            query,
            by=ctx.by,
            at=knowledge.clock.now(),
            token_budget=token_budget,
            thoroughness=thoroughness,
        )
        used = f"{found.tokens_used:,} of {found.budget:,} tokens used."
        return "\n".join((*map(_line, found.results), used)) if found.results else f"{found.hint or 'No room'} {used}"

    return search_all, smart_search


def _line(found: Finding) -> str:
    source = found.source + (f"; {found.warning}" if found.warning else "")
    return f"- {found.type} {inline(found.name, WIDTH)}: {inline(found.snippet, WIDTH)} ({inline(source, WIDTH)})"
