"""The domain `history`: past work and its reasons."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from clew.catalog.domain import Domain
from clew.catalog.operations.text import inline
from clew.knowledge.domains.code import Depth, FilePath, commit_line
from clew.knowledge.domains.journal import MARKS, journal_tools, lesson_tools
from clew.knowledge.domains.tool_builder import (
    READS,
    WIDTH,
    OpenKnowledge,
    add_withheld_note,
    method_tool,
    node_line,
    node_lines,
)
from clew.knowledge.evidence.trust import on_one_line
from clew.knowledge.git.commits import commit_node
from clew.knowledge.git.log import COMMIT_PREFIX
from clew.knowledge.git.store import CommitFilter
from clew.knowledge.history.brief import Tier, write_brief
from clew.knowledge.history.decisions import DECISION_PREFIX
from clew.knowledge.history.entries import NO_SESSION, Moment
from clew.knowledge.history.journal import ALL, WORK, Archive, SummaryType
from clew.knowledge.history.links import CrossDomain, Limit, NodeRef, Query
from clew.knowledge.nodes.kinds import NodeDomain, NodeType
from clew.knowledge.nodes.node_store import UNVERIFIED, Node, ScoredNode
from clew.knowledge.text import stems
from clew.lazy_pattern import lazy_pattern
from clew.tools import Effects, GuidedContent, Tool, ToolContext, guide, tool
from clew.trail.model.edge import Direction

if TYPE_CHECKING:
    from clew.knowledge.base import Knowledge
    from clew.knowledge.git.log import GitCommit
    from clew.knowledge.history.explanation import LineExplanation
    from clew.knowledge.history.journal import StoredSummary
    from clew.knowledge.history.links import Related

NAME = "history"
WRITES = Effects(reaches_out=False)
REASON = 300
PARAGRAPH = 500
ISSUE_COMMITS = 200
"""The newest commits of a file in which fixes and reverts are looked for."""
HOW_TO_NOTE = (
    f'To note something: `clew get {NAME}://tools/store_summary content="…" summary_type=decision`'
    " (or mistake, preference, failure)."
)
_FIX = lazy_pattern(r"\b(?:fix(?:e[sd])?|close[sd]?|resolve[sd]?|revert(?:s|ed)?)\b", re.IGNORECASE)
_LABELS = {NodeDomain.CODE: "code", NodeDomain.HISTORY: "history", NodeDomain.ACADEMIC: "reference"}
Place = Annotated[str, msgspec.Meta(description="a place in the code: path or path#qualname")]


def build_history(open_knowledge: OpenKnowledge) -> Domain:
    """The domain over the history of a folder; `open_knowledge` is called by the first tool that runs."""
    return Domain(
        name=NAME,
        is_builtin=True,
        description="What was done in this repository: decisions, failures and their fixes, sessions, commits, why a "
        "line is so. Decisions, mistakes and preferences are noted here",
        tools=add_withheld_note(
            (
                *_entry_points(open_knowledge),
                *_storage_tools(open_knowledge),
                *_topic_tools(open_knowledge),
                *journal_tools(open_knowledge),
                *_question_tools(open_knowledge),
                *_neighbour_tools(open_knowledge),
                *lesson_tools(open_knowledge),
            ),
            open_knowledge,
        ),
    )


def _entry_points(known: OpenKnowledge) -> Sequence[Tool]:
    @tool(name="search_history", title="Search what was done", effects=READS)
    async def search_history(
        query: Query,
        ctx: ToolContext,
        limit: Limit = 10,
        summary_type: SummaryType | Literal["any"] = "any",
        session_id: Annotated[str, msgspec.Meta(description="only of this session; empty: of all")] = "",
        since: Moment = None,
    ) -> GuidedContent:
        """Find decisions, failures, fixes and other entries of all sessions, and commits by their messages."""
        knowledge = await known()
        archive = knowledge.archive(ctx.by)
        is_known = await archive.links.nodes.knows(query, NodeDomain.HISTORY)
        kind = {} if summary_type == "any" else {"summary_type": summary_type}
        wanted = msgspec.structs.replace(ALL, metadata=kind, session_id=session_id or None, created_after=since)
        found = await (archive.find if is_known else archive.find_records)(query, limit, wanted)
        if summary_type == "any" and not session_id:
            await knowledge.commits.catch_up()
            commits = await knowledge.commits.search(query, limit=limit, since=since)
            found = _in_turns(query, found, commits)[:limit]
        if not found:
            return GuidedContent(content=f"Nothing was noted on that. {HOW_TO_NOTE}")
        if found[0].node.id.startswith((COMMIT_PREFIX, DECISION_PREFIX)):
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
        chronicle = knowledge.chronicle(ctx.by, ctx.by.session or NO_SESSION)
        return (await write_brief(chronicle, tier, await knowledge.decisions.nodes())).text

    return search_history, why_line, briefing


def _storage_tools(known: OpenKnowledge) -> Sequence[Tool]:
    @tool(name="store_summary", title="Note a decision, a mistake or a preference", effects=WRITES)
    async def store_summary(
        content: Annotated[str, msgspec.Meta(description="what to remember, in a sentence or a few")],
        summary_type: SummaryType,
        ctx: ToolContext,
        title: Annotated[str, msgspec.Meta(description="a short name; empty: how it begins")] = "",
        outcome: Annotated[str, msgspec.Meta(description="the outcome; of a failure or mistake, its fix")] = "",
        code_references: Annotated[
            Sequence[str], msgspec.Meta(description="the code that it is about: path, path:line or path#qualname")
        ] = (),
        tags: Sequence[str] = (),
        inspired_by: Annotated[Sequence[str], msgspec.Meta(description="ids of references that led to it")] = (),
    ) -> str:
        """Store a summary of work, a decision or a failure, with the code that it is about. It is checked against the
        code, and marked if the code does not confirm it. A mistake with its fix causes warnings from then on. A
        preference is stored under its title if it has one."""
        knowledge, session = await known(), ctx.by.session or NO_SESSION
        sources = [await knowledge.search.save_section(each, by=ctx.by) for each in inspired_by]
        stored = await knowledge.archive(ctx.by).store_summary(
            content, summary_type, session, code_references, tags, inspired_by=sources, title=title, outcome=outcome
        )
        if summary_type == "mistake" and outcome.strip():
            await knowledge.mistakes(ctx.by).report_mistake(title.strip() or content, content, outcome, tags=tags)
        if summary_type == "preference" and title.strip():
            await knowledge.preferences(ctx.by).set_preference(title, content)
        return stored_line(stored)

    return (store_summary,)


def _topic_tools(known: OpenKnowledge) -> Sequence[Tool]:
    made = partial(method_tool, known, lambda knowledge, by: knowledge.archive(by))
    return (
        made(Archive.get_decisions, _decision_lines),
        made(Archive.find_failures, _failure_lines),
        made(Archive.why_chosen, lambda found: _related_lines(found) or "No decision fits."),
        made(Archive.find_patterns, _pattern_lines),
        made(Archive.get_session_history, _node_list),
        made(Archive.get_code_for_history, _node_list),
    )


def _decision_lines(found: Sequence[ScoredNode]) -> str:
    return node_lines(found) or f"Nothing was decided on that. {HOW_TO_NOTE}"


def _failure_lines(found: Sequence[ScoredNode]) -> str:
    lines = [f"{node_line(each.node)} {_resolution(each.node.metadata.get('resolution'))}" for each in found]
    return "\n".join(lines) or f"No failure like that was noted. {HOW_TO_NOTE}"


def _node_list(found: Sequence[Node]) -> str:
    return "\n".join(map(node_line, found)) or "There is none."


def _pattern_lines(found: Sequence[Sequence[ScoredNode]]) -> str:
    lines = [
        f"- {inline(each[0].node.content, WIDTH)} ({len(each)} times: {', '.join(one.node.id for one in each)})"
        for each in found
    ]
    return "\n".join(lines) or "No pattern came up that often."


def _question_tools(known: OpenKnowledge) -> Sequence[Tool]:
    @tool(name="what_changed", effects=READS, searchable=False)
    async def what_changed(
        ctx: ToolContext,
        query: Annotated[str, msgspec.Meta(description="on what, in your own words; empty: on anything")] = "",
        path: Annotated[str, msgspec.Meta(description="a file or a folder; empty: any")] = "",
        days: Annotated[int, msgspec.Meta(ge=1, description="how far back")] = 7,
        limit: Limit = 10,
    ) -> str:
        """List the work of the last days: entries with the code they name, then commits, newest first."""
        knowledge = await known()
        since = knowledge.clock.now() - timedelta(days=days)
        recent = msgspec.structs.replace(ALL, created_after=since)
        found = await knowledge.archive(ctx.by).links.search(query or path, limit, recent)
        noted = [each for each in found if _is_work_on(each, path)]
        noted.sort(key=lambda each: each.node.created_at, reverse=True)
        commits = await _changes(knowledge, query, path, since, limit)
        lines = [*filter(None, [_related_lines(noted)]), *map(node_line, commits)]
        return "\n".join(lines) or f"Nothing changed in {days} day{'s' * (days != 1)}."

    @tool(name="past_issues", effects=READS, searchable=False)
    async def past_issues(code: Place, ctx: ToolContext) -> str:
        """List failures and fixed bugs of a place in the code, and the commits of its file that fix or revert
        something."""
        knowledge = await known()
        noted = await knowledge.archive(ctx.by).links.linked(code, NodeDomain.HISTORY)
        lines = [*map(node_line, filter(_is_issue, noted)), *map(commit_line, await _fixes(knowledge, code))]
        return "\n".join(lines) or "No issue is known."

    return what_changed, past_issues


def _neighbour_tools(known: OpenKnowledge) -> Sequence[Tool]:
    made = partial(method_tool, known, lambda knowledge, by: knowledge.archive(by).links)
    return (
        made(CrossDomain.which_patterns, lambda found: _related_lines(found) or "No pattern is linked."),
        made(CrossDomain.similar_across_domains, lambda found: _related_lines(found) or "Nothing fits."),
        made(CrossDomain.get_related, lambda found: _related_lines([found])),
        made(similar_nodes, lambda found: node_lines(found) or "Nothing is like it."),
        made(follow_edges, _node_list),
        made(get_current, node_line),
        made(supersede, lambda old: f"{old.id} is superseded by {old.superseded_by}.", effects=MARKS),
    )


async def similar_nodes(links: CrossDomain, of: NodeRef, k: Limit = 10) -> list[ScoredNode]:
    """List the nodes of all domains that are nearest in meaning to a node, without the node itself."""
    return await links.nodes.similar_to_node(links.node_id(of), k)


async def follow_edges(
    links: CrossDomain,
    of: NodeRef,
    edge_type: Annotated[str, msgspec.Meta(description="for example references, inspired_by, supersedes, followed_by")],
    direction: Direction = "outgoing",
    depth: Depth = 1,
) -> list[Node]:
    """Follow the edges of one type from a node, and list the nodes that they lead to, nearest first."""
    return await links.nodes.traverse(links.node_id(of), edge_type, direction, depth)


async def get_current(links: CrossDomain, of: NodeRef) -> Node:
    """Show the current version of an entry or reference: itself, or the last one that superseded it."""
    return await links.nodes.current(links.node_id(of))


async def supersede(
    links: CrossDomain,
    old: Annotated[str, msgspec.Meta(description="the id of the entry or reference that is out of date")],
    new: Annotated[str, msgspec.Meta(description="the id of the one that replaces it")],
) -> Node:
    """Mark an entry or a reference as superseded by a newer one. It stays on record, and answers prefer the newer
    one."""
    return await links.nodes.supersede(old, new)


async def _changes(knowledge: Knowledge, query: str, path: str, since: datetime, limit: int) -> list[Node]:
    """The newest commits below a path, or those on a topic, or all."""
    if query.strip() and not path:
        await knowledge.commits.catch_up()
        return [each.node for each in await knowledge.commits.search(query, limit=limit, since=since)]
    paths = await knowledge.commits.paths_of(path) if path else []
    wanted = CommitFilter(since=since, paths=tuple(paths))
    found = (await knowledge.commits.select(wanted, limit))[0] if paths or not path else []
    return [commit_node(commit) for commit in found]


async def _fixes(knowledge: Knowledge, code: str) -> list[GitCommit]:
    """The commits of a file whose messages say that they fix or revert something."""
    paths = await knowledge.commits.paths_of(code.partition("#")[0])
    commits, _ = await knowledge.commits.select(CommitFilter(paths=tuple(paths)), ISSUE_COMMITS) if paths else ([], 0)
    return [commit for commit in commits if _FIX.search(f"{commit.subject}\n{commit.body}")]


def _is_work_on(entry: Related, path: str) -> bool:
    """Whether an entry is of finished work, and names code below a path."""
    places = [f"{node.path}/" for node in entry.linked if node.domain is NodeDomain.CODE]
    top = f"{path.rstrip('/')}/" if path else ""
    return entry.node.metadata.get("summary_type") in WORK and any(place.startswith(top) for place in places)


def _is_issue(entry: Node) -> bool:
    return entry.node_type is NodeType.FAILURE or entry.metadata.get("summary_type") == "bug_fix"


def _related_lines(found: Sequence[Related]) -> str:
    lines: list[str] = []
    for each in found:
        lines.append(node_line(each.node))
        lines += [f"  {_LABELS[node.domain]}: {node_line(node).removeprefix('- ')}" for node in each.linked]
    return "\n".join(lines)


def _in_turns(query: str, noted: Sequence[ScoredNode], commits: Sequence[ScoredNode]) -> list[ScoredNode]:
    """Entries and commits alternately, because their scores are not comparable; entries without a word of the question
    last."""
    wanted = stems(query)
    near = [each for each in noted if wanted & stems(f"{each.node.name}\n{each.node.content}")]
    turns = [each for turn in zip_longest(near, commits) for each in turn if each is not None]
    return [*turns, *(each for each in noted if each not in near)]


def stored_line(stored: StoredSummary) -> str:
    """The result of storing a summary on one line, with the reasons if it is unverified."""
    edges = f" with {stored.edges} edge{'' if stored.edges == 1 else 's'} to code" if stored.edges else ""
    stored_as = f"Stored as {stored.node_id}{edges}"
    if not stored.warnings:
        return f"{stored_as}; {'the code has what it refers to' if stored.edges else 'it names no code'}."
    return f"{stored_as}, marked {UNVERIFIED}: {inline('; '.join(stored.warnings), REASON)}."


def why_lines(why: LineExplanation) -> list[str]:
    """The explanation of a line, one line a source; below a commit, the first paragraph of its message."""
    span = f"-{why.last_line}" if why.last_line > why.line else ""
    return [
        f"{on_one_line(why.path)}:{why.line}{span}",
        *_uncommitted(why),
        *(line for each in why.commits for line in _why_commit(each)),
        *(f"- decided: {inline(each.title, WIDTH)} ({on_one_line(each.cited)})" for each in why.decisions),
        *(node_line(each) for each in why.history),
    ]


def _uncommitted(why: LineExplanation) -> list[str]:
    if not why.uncommitted:
        return []
    if why.line == why.last_line:
        return ["- not committed yet: the line is new, or changed on disk"]
    return [f"- not committed yet: line{'s' * (len(why.uncommitted) > 1)} {', '.join(map(str, why.uncommitted))}"]


def _why_commit(commit: GitCommit) -> list[str]:
    reason = next((part for part in commit.body.split("\n\n") if part.strip()), "")
    said = [f"  {inline(reason, PARAGRAPH)}"] if reason else []
    return [f"- {commit.at:%Y-%m-%d} {inline(commit.subject, PARAGRAPH)} ({commit.sha[:10]})", *said]


def _resolution(text: object) -> str:
    return f"resolved by: {inline(text, WIDTH)}" if isinstance(text, str) and text else "not resolved"
