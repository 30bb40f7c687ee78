"""Tools of the domain `code` that search code, history and references at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from clew.knowledge.domains.node_lines import READS
from clew.knowledge.search_domains import result_line
from clew.tools import Tool, ToolContext, tool

if TYPE_CHECKING:
    from clew.knowledge.domains.code import OpenKnowledge

Where = Annotated[
    Sequence[Literal["code", "history", "academic"]], msgspec.Meta(description="only in these; empty: in all three")
]


def search_tools(known: OpenKnowledge) -> Sequence[Tool]:
    """`search_all` groups results by domain; `smart_search` keeps to a budget of tokens."""

    @tool(name="search_all", effects=READS, searchable=False)
    async def search_all(
        query: str,
        ctx: ToolContext,
        domains: Where = (),
        limit_per_domain: Annotated[int, msgspec.Meta(ge=1, le=50)] = 5,
    ) -> str:
        """Search code, history and references at once, and show the results of each."""
        knowledge = await known()
        limit, now = limit_per_domain, knowledge.clock.now()
        found = await knowledge.search.search_all(query, by=ctx.by, at=now, domains=domains, limit_per_domain=limit)
        parts = []
        for domain, own in found.items():
            lines = [result_line(each.node, now) for each in own]
            parts += [f"## {domain}", "\n".join(lines) or "no matches"]
        return "\n\n".join(parts)

    @tool(name="smart_search", effects=READS, searchable=False)
    async def smart_search(
        query: str,
        ctx: ToolContext,
        token_budget: Annotated[int, msgspec.Meta(ge=50, le=100_000)] = 1_000,
        thoroughness: Literal["quick", "moderate", "thorough"] = "moderate",
    ) -> str:
        """Search everything and show the best results within a budget of tokens."""
        knowledge = await known()
        now = knowledge.clock.now()
        found = await knowledge.search.smart_search(
            query, by=ctx.by, at=now, token_budget=token_budget, thoroughness=thoroughness
        )
        lines = [result_line(each.node, now) for each in found.results] or [
            "No domain has anything on this, or nothing that fits."
        ]
        return "\n".join((*lines, f"{found.tokens_used:,} of {found.budget:,} tokens used."))

    return search_all, smart_search
