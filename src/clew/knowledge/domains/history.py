"""The domain `history`: past work and its reasons."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from clew.catalog.domain import Domain
from clew.catalog.text import inline
from clew.errors import InvalidInput
from clew.knowledge.domains.code import FilePath, Limit, OpenKnowledge, Query
from clew.knowledge.domains.journal import journal_tools
from clew.knowledge.domains.lessons import lesson_tools
from clew.knowledge.domains.relations import relation_tools
from clew.knowledge.domains.shown import READS, add_withheld_note, node_line, node_lines
from clew.knowledge.evidence.provenance import on_one_line
from clew.knowledge.git.log import COMMIT_PREFIX
from clew.knowledge.history.briefing import Tier, brief
from clew.knowledge.history.entries import NO_SESSION
from clew.knowledge.history.journal import Include, SummaryType
from clew.knowledge.text import stems
from clew.tools import Effects, GuidedContent, Tool, ToolContext, guide, tool
from clew.trail.kinds import NodeDomain
from clew.trail.nodes import UNVERIFIED, ScoredNode

if TYPE_CHECKING:
    from clew.knowledge.git.log import Commit
    from clew.knowledge.history.explanation import Why
    from clew.knowledge.history.journal import Stored

NAME = "history"
WRITES = Effects(reaches_out=False)
REASON = 300
TITLE = 160
HOW_TO_NOTE = (
    f'To note something: `clew get {NAME}://tools/store_summary content="…" summary_type=decision`'
    " (or mistake, preference, failure)."
)
Topic = Annotated[str, msgspec.Meta(description="on what, in your own words; empty: the newest")]
PARAGRAPH = 500


def build_history(open_knowledge: OpenKnowledge) -> Domain:
    """The domain over the history of a folder; `open_knowledge` is called by the first tool that runs."""
    return Domain(
        name=NAME,
        description="What was done in this repository: decisions, failures and their fixes, sessions, commits, why a "
        "line is so. Decisions, mistakes and preferences are noted here",
        tools=add_withheld_note(
            (
                *_entry_points(open_knowledge),
                *_session_tools(open_knowledge),
                *_topic_tools(open_knowledge),
                *journal_tools(open_knowledge),
                *relation_tools(open_knowledge),
                *lesson_tools(open_knowledge),
            ),
            open_knowledge,
        ),
    )


def _entry_points(known: OpenKnowledge) -> Sequence[Tool]:
    @tool(name="search_history", title="Search what was done", effects=READS)
    async def search_history(
        query: Query, ctx: ToolContext, limit: Limit = 10, summary_type: SummaryType | Literal["any"] = "any"
    ) -> GuidedContent:
        """Find decisions, failures, fixes and other entries of all sessions, and commits by their messages."""
        knowledge = await known()
        is_known = await knowledge.search.nodes.knows(query, NodeDomain.HISTORY, by=ctx.by)
        found = await knowledge.archive(ctx.by).search_history(query, limit, summary_type) if is_known else []
        if summary_type == "any":
            await knowledge.commits.catch_up()
            commits = await knowledge.commits.search(query, limit=limit)
            found = _in_turns(query, found, commits)[:limit]
        if not found:
            return GuidedContent(content=f"Nothing was noted on that. {HOW_TO_NOTE}")
        if found[0].node.id.startswith(COMMIT_PREFIX):
            return GuidedContent(content=node_lines(found))
        step = guide(f"{NAME}://tools/hidden/get_code_for_history", "its code", history_id=found[0].node.id)
        return GuidedContent(content=node_lines(found), guidance=[step])

    @tool(name="why_line", title="Why a line is as it is", effects=READS)
    async def why_line(file_path: FilePath, line: Annotated[int, msgspec.Meta(ge=1)], ctx: ToolContext) -> str:
        """Find the commits, decisions and entries that explain a line of a file."""
        return "\n".join(why_lines(await (await known()).why(file_path, line, by=ctx.by)))

    @tool(name="briefing", title="Where things stand", effects=READS)
    async def briefing(ctx: ToolContext, tier: Tier = "standard") -> str:
        """Show the state of the session: open threads, decisions and failures, each with its source."""
        knowledge = await known()
        await knowledge.decisions.catch_up()
        found = await brief(knowledge.chronicle(ctx.by, ctx.by.session or NO_SESSION), tier)
        sources = [f"[{number}] {place}" for number, place in enumerate(found.places, 1)]
        return "\n".join([found.text, *sources])

    return search_history, why_line, briefing


def _session_tools(known: OpenKnowledge) -> Sequence[Tool]:
    @tool(name="store_summary", title="Note a decision, a mistake or a preference", effects=WRITES)
    async def store_summary(
        content: Annotated[str, msgspec.Meta(description="what to remember, in a sentence or a few")],
        summary_type: SummaryType,
        ctx: ToolContext,
        title: Annotated[str, msgspec.Meta(description="a short name; empty: how it begins")] = "",
        outcome: Annotated[str, msgspec.Meta(description="what came of it; of a failure or mistake, its fix")] = "",
        code_references: Annotated[
            Sequence[str], msgspec.Meta(description="the code that it is about: path, path:line or path#qualname")
        ] = (),
        tags: Sequence[str] = (),
        inspired_by: Annotated[Sequence[str], msgspec.Meta(description="ids of references that led to it")] = (),
    ) -> str:
        """Store a summary of work, a decision or a failure, with the code that it is about. It is checked against the
        code, and marked if the code does not confirm it. A mistake with its fix gives warnings from then on, and a
        preference with a title is stored under it."""
        knowledge, session = await known(), ctx.by.session or NO_SESSION
        sources = [await knowledge.search.save_section(each, by=ctx.by) for each in inspired_by]
        stored = await knowledge.archive(ctx.by).store_summary(
            content, summary_type, session, code_references, tags, inspired_by=sources, title=title, outcome=outcome
        )
        knowledge.resolver.cache.clear()
        if summary_type == "mistake" and outcome.strip():
            await knowledge.mistakes(ctx.by).report_mistake(title.strip() or content, content, outcome, tags=tags)
        if summary_type == "preference" and title.strip():
            await knowledge.preferences(ctx.by).set_preference(title, content)
        return stored_line(stored)

    @tool(name="get_session_history", effects=READS, searchable=False)
    async def get_session_history(
        ctx: ToolContext, session_id: str = "", chronological: bool = True, include: Include = "all"
    ) -> str:
        """List the entries of a session."""
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


def _topic_tools(known: OpenKnowledge) -> Sequence[Tool]:
    @tool(name="get_decisions", effects=READS, searchable=False)
    async def get_decisions(ctx: ToolContext, query: Topic = "", limit: Limit = 10) -> str:
        """List the decisions on a topic, or the newest, each with its place: entries and decision records."""
        found = await (await known()).archive(ctx.by).get_decisions(query, limit)
        return node_lines(found) or f"Nothing was decided on that. {HOW_TO_NOTE}"

    @tool(name="find_failures", effects=READS, searchable=False)
    async def find_failures(ctx: ToolContext, query: Topic = "", limit: Limit = 10, resolved_only: bool = False) -> str:
        """List failures and mistakes that fit a description, or the newest, with their resolutions."""
        found = await (await known()).archive(ctx.by).find_failures(query, limit, resolved_only)
        lines = [f"{node_line(each.node)} {_resolution(each.node.metadata.get('resolution'))}" for each in found]
        return "\n".join(lines) or f"No failure like that was noted. {HOW_TO_NOTE}"

    @tool(name="find_patterns", effects=READS, searchable=False)
    async def find_patterns(query: Query, ctx: ToolContext, min_occurrences: int = 2, category: str = "") -> str:
        """List patterns that came up more than once."""
        found = await (await known()).archive(ctx.by).find_patterns(query, min_occurrences, category)
        lines = [f"- {inline(each.text, 160)} ({each.occurrences} times: {', '.join(each.node_ids)})" for each in found]
        return "\n".join(lines) or "No pattern came up that often."

    return get_decisions, find_failures, find_patterns


def _in_turns(query: str, noted: Sequence[ScoredNode], commits: Sequence[ScoredNode]) -> list[ScoredNode]:
    """Entries and commits, whose scores are not comparable, in turns; entries without a word of the question last."""
    wanted = stems(query)
    near = [each for each in noted if wanted & stems(f"{each.node.name}\n{each.node.content}")]
    turns = [each for turn in zip_longest(near, commits) for each in turn if each is not None]
    return [*turns, *(each for each in noted if each not in near)]


def stored_line(stored: Stored) -> str:
    """The result of storing a summary on one line, with the reasons if it is unverified."""
    edges = f" with {stored.edges} edge{'' if stored.edges == 1 else 's'} to code" if stored.edges else ""
    told = f"Stored as {stored.node_id}{edges}"
    if stored.is_verified:
        return f"{told}; {'the code bears it out' if stored.edges else 'it names no code'}."
    return f"{told}, marked {UNVERIFIED}: {inline('; '.join(stored.warnings), REASON)}."


def why_lines(why: Why) -> list[str]:
    """The explanation of a line, one line a source; below a commit, the first paragraph of its message."""
    span = f"-{why.last_line}" if why.last_line > why.line else ""
    return [
        f"{on_one_line(why.path)}:{why.line}{span}",
        *_uncommitted(why),
        *(line for each in why.commits for line in _why_commit(each)),
        *(f"- decided: {inline(each.title, TITLE)} ({on_one_line(each.cited)})" for each in why.decisions),
        *(node_line(each) for each in why.history),
    ]


def _uncommitted(why: Why) -> list[str]:
    if not why.uncommitted:
        return []
    if why.line == why.last_line:
        return ["- not committed yet: the line is new, or changed on disk"]
    return [f"- not committed yet: line{'s' * (len(why.uncommitted) > 1)} {', '.join(map(str, why.uncommitted))}"]


def _why_commit(commit: Commit) -> list[str]:
    reason = next((part for part in commit.body.split("\n\n") if part.strip()), "")
    said = [f"  {inline(reason, PARAGRAPH)}"] if reason else []
    return [f"- {commit.at:%Y-%m-%d} {inline(commit.subject, PARAGRAPH)} ({commit.sha[:10]})", *said]


def _resolution(text: object) -> str:
    return f"resolved by: {inline(text, 120)}" if isinstance(text, str) and text else "not resolved"
