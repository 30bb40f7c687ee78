"""The domain `history`: what was done, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from clew.catalog.domain import Domain
from clew.catalog.text import inline
from clew.errors import InvalidInput
from clew.knowledge.domains.code import FilePath, Limit, OpenKnowledge, Query, commit_line
from clew.knowledge.domains.shown import READS, node_line, node_lines
from clew.knowledge.history.archive import Include, SummaryType
from clew.knowledge.history.briefing import Tier, brief
from clew.tools import Effects, GuidedContent, Tool, ToolContext, guide, tool

if TYPE_CHECKING:
    from clew.knowledge.history.why import Why

NAME = "history"
WRITES = Effects(reaches_out=False)
NO_SESSION = "outside"
"""The session of what is stored where the caller is in none."""


def build_history(open_knowledge: OpenKnowledge) -> Domain:
    """The domain over the history of a folder; `open_knowledge` is called by the first tool that runs."""
    return Domain(
        name=NAME,
        description="What was done in this repository: decisions, failures and their fixes, sessions, why a line is so",
        tools=(*_entry_points(open_knowledge), *_of_sessions(open_knowledge), *_of_topics(open_knowledge)),
    )


def _entry_points(known: OpenKnowledge) -> Sequence[Tool]:
    @tool(name="search_history", title="Search what was done", effects=READS)
    async def search_history(
        query: Query, ctx: ToolContext, limit: Limit = 10, summary_type: SummaryType | Literal["any"] = "any"
    ) -> GuidedContent:
        """Find decisions, failures, fixes and other entries of all sessions."""
        archive = (await known()).archive(ctx.by)
        found = await archive.search_history(query, limit, summary_type)
        if not found:
            return GuidedContent(content="Nothing was noted on that.")
        step = guide(f"{NAME}://tools/hidden/get_code_for_history", "its code", history_id=found[0].node.id)
        return GuidedContent(content=node_lines(found), guidance=[step])

    @tool(name="why_line", title="Why a line is as it is", effects=READS)
    async def why_line(file_path: FilePath, line: Annotated[int, msgspec.Meta(ge=1)], ctx: ToolContext) -> str:
        """Find the commits, decisions and entries that explain a line of a file."""
        return "\n".join(why_lines(await (await known()).why(file_path, line, by=ctx.by)))

    @tool(name="briefing", title="Where things stand", effects=READS)
    async def briefing(ctx: ToolContext, tier: Tier = "standard") -> str:
        """Tell where the session stands: open threads, decisions and failures, each with its source."""
        knowledge = await known()
        found = await brief(knowledge.chronicle(ctx.by, ctx.by.session or NO_SESSION), tier)
        sources = [f"[{number}] {id}" for number, id in enumerate(found.sources, 1)]
        return "\n".join([found.text, *sources])

    return search_history, why_line, briefing


def _of_sessions(known: OpenKnowledge) -> Sequence[Tool]:
    @tool(name="store_summary", effects=WRITES, searchable=False)
    async def store_summary(
        content: str,
        summary_type: SummaryType,
        ctx: ToolContext,
        code_references: Annotated[
            Sequence[str], msgspec.Meta(description="the code that it is about: path, path:line or path#qualname")
        ] = (),
        tags: Sequence[str] = (),
    ) -> str:
        """Note what was done, decided or broken, with the code that it is about."""
        archive = (await known()).archive(ctx.by)
        stored = await archive.store_summary(content, summary_type, ctx.by.session or NO_SESSION, code_references, tags)
        return f"Stored as {stored.node_id} with {stored.edges} edges to code."

    @tool(name="get_session_history", effects=READS, searchable=False)
    async def get_session_history(
        ctx: ToolContext, session_id: str = "", chronological: bool = True, include: Include = "all"
    ) -> str:
        """List what a session noted."""
        session = session_id or ctx.by.session
        if not session:
            raise InvalidInput("session_id", "is needed: you are in no session", hint="Name one")
        found = await (await known()).archive(ctx.by).get_session_history(session, chronological, include)
        return "\n".join(map(node_line, found)) or "It noted nothing."

    @tool(name="get_code_for_history", effects=READS, searchable=False)
    async def get_code_for_history(history_id: str, ctx: ToolContext) -> str:
        """List the code that an entry is about."""
        found = await (await known()).archive(ctx.by).get_code_for_history(history_id)
        return "\n".join(map(node_line, found)) or "It names no code."

    return store_summary, get_session_history, get_code_for_history


def _of_topics(known: OpenKnowledge) -> Sequence[Tool]:
    @tool(name="get_decisions", effects=READS, searchable=False)
    async def get_decisions(query: Query, ctx: ToolContext, limit: Limit = 10) -> str:
        """List the decisions on a topic, with where each is told."""
        found = await (await known()).archive(ctx.by).get_decisions(query, limit)
        return node_lines(found) or "Nothing was decided on that."

    @tool(name="find_failures", effects=READS, searchable=False)
    async def find_failures(query: Query, ctx: ToolContext, limit: Limit = 10, resolved_only: bool = False) -> str:
        """List past failures like a description, with how they were resolved."""
        found = await (await known()).archive(ctx.by).find_failures(query, limit, resolved_only)
        lines = [f"{node_line(each.node)} {_resolution(each.node.metadata.get('resolution'))}" for each in found]
        return "\n".join(lines) or "No failure like that was noted."

    @tool(name="find_patterns", effects=READS, searchable=False)
    async def find_patterns(query: Query, ctx: ToolContext, min_occurrences: int = 2, category: str = "") -> str:
        """List patterns that came up more than once."""
        found = await (await known()).archive(ctx.by).find_patterns(query, min_occurrences, category)
        lines = [f"- {inline(each.text, 160)} ({each.occurrences} times: {', '.join(each.node_ids)})" for each in found]
        return "\n".join(lines) or "No pattern came up that often."

    return get_decisions, find_failures, find_patterns


def why_lines(why: Why) -> list[str]:
    """What explains a line, one line a source."""
    return [
        f"{why.path}:{why.line}",
        *(f"{commit_line(each)}" for each in why.commits),
        *(f"- decided: {inline(each.title, 120)} ({each.cited})" for each in why.decisions),
        *(node_line(each) for each in why.history),
    ]


def _resolution(text: object) -> str:
    return f"resolved by: {inline(text, 120)}" if isinstance(text, str) and text else "not resolved"
