"""Tools that answer across code, history and references by following edges, without a model: which patterns, why
chosen, what changed, past issues. They belong to the domain `history`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import msgspec

from clew.catalog.text import inline
from clew.knowledge.domains.code import Limit, OpenKnowledge, Query, commit_line
from clew.knowledge.domains.shown import READS, WIDTH, node_line
from clew.knowledge.git.store import CommitFilter
from clew.knowledge.history.explanation import find_resolutions
from clew.knowledge.text import telling_words
from clew.tools import Tool, ToolContext, tool

if TYPE_CHECKING:
    from clew.knowledge.base import Knowledge
    from clew.knowledge.git.log import Commit
    from clew.knowledge.history.links import Related

ISSUE_COMMITS = 200
"""The newest commits of a file in which fixes and reverts are looked for."""
Place = Annotated[str, msgspec.Meta(description="a place in the code: path or path#qualname")]
PathFilter = Annotated[str, msgspec.Meta(description="a glob of paths; empty: all")]


def relation_tools(known: OpenKnowledge) -> Sequence[Tool]:
    """The four questions across domains, similar nodes with their neighbours, and the neighbours of one node."""
    return *_question_tools(known), *_neighbour_tools(known)


def _question_tools(known: OpenKnowledge) -> Sequence[Tool]:
    @tool(name="which_patterns", effects=READS, searchable=False)
    async def which_patterns(query: Query, ctx: ToolContext, path: PathFilter = "", limit: Limit = 10) -> str:
        """List the patterns that code implements, for code that fits a question."""
        links = (await known()).archive(ctx.by).links
        return _related_lines(await links.patterns_of(query, limit=limit, path=path or None)) or "No pattern is linked."

    @tool(name="why_chosen", effects=READS, searchable=False)
    async def why_chosen(query: Query, ctx: ToolContext, limit: Limit = 5) -> str:
        """List the decisions that fit a question, with the references they rest on and the code they name."""
        links = (await known()).archive(ctx.by).links
        return _related_lines(await links.why_chosen(query, limit=limit)) or "No decision fits."

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
        wanted = CommitFilter(since=since, words=tuple(telling_words(query)) if query.strip() else ())
        if path:
            wanted = msgspec.structs.replace(wanted, words=(), paths=tuple(await knowledge.commits.paths_of(path)))
        found = await knowledge.archive(ctx.by).links.changes_since(query or path, since, limit=limit)
        noted = [each for each in found if not path or any(_is_below(node.path, path) for node in each.code)]
        is_known = not path or bool(wanted.paths)
        commits, total = await knowledge.commits.select(wanted, limit) if is_known else (list["Commit"](), 0)
        more = [f"… and {total - len(commits):,} more commits"] if total > len(commits) else []
        lines = [*filter(None, [_related_lines(noted)]), *map(commit_line, commits), *more]
        return "\n".join(lines) or f"Nothing changed in {days} day{'s' * (days != 1)}."

    @tool(name="past_issues", effects=READS, searchable=False)
    async def past_issues(code: Place, ctx: ToolContext) -> str:
        """List failures and fixed bugs of a place in the code, and the commits of its file that fixed an issue or
        reverted another commit."""
        knowledge = await known()
        noted = await knowledge.archive(ctx.by).links.past_issues(code)
        lines = [*map(node_line, noted), *await _resolution_lines(knowledge, code)]
        return "\n".join(lines) or "No issue is known."

    return which_patterns, why_chosen, what_changed, past_issues


def _neighbour_tools(known: OpenKnowledge) -> Sequence[Tool]:
    @tool(name="similar_across_domains", effects=READS, searchable=False)
    async def similar_across_domains(
        query: Query, ctx: ToolContext, k: Limit = 10, path_filter: PathFilter = ""
    ) -> str:
        """List the nodes of all domains that fit a question best, each with its neighbours in the other domains."""
        links = (await known()).archive(ctx.by).links
        found = await links.similar_across_domains_with_context(query, k, path_filter or None)
        return _related_lines(found) or "Nothing fits."

    @tool(name="get_related", effects=READS, searchable=False)
    async def get_related(
        of: Annotated[str, msgspec.Meta(description="the id of a node, or a place in the code: path or path#qualname")],
        ctx: ToolContext,
    ) -> str:
        """Show a node of any domain with the code, entries and references that are linked to it."""
        return _related_lines([await (await known()).archive(ctx.by).links.neighbours_of(of)])

    return similar_across_domains, get_related


async def _resolution_lines(knowledge: Knowledge, code: str) -> list[str]:
    paths = await knowledge.commits.paths_of(code.partition("#")[0])
    commits, _ = await knowledge.commits.select(CommitFilter(paths=tuple(paths)), ISSUE_COMMITS) if paths else ([], 0)
    resolutions = find_resolutions(commits)
    return [
        f"- {each.kind} {each.failure[:WIDTH]}: {inline(each.what, WIDTH)} (commit {each.commit[:10]})"
        for each in resolutions
    ]


def _is_below(path: str | None, top: str) -> bool:
    return path is not None and (path == top or path.startswith(f"{top.rstrip('/')}/"))


def _related_lines(found: Sequence[Related]) -> str:
    lines: list[str] = []
    for each in found:
        lines.append(node_line(each.node))
        for name, nodes in (("code", each.code), ("history", each.history), ("reference", each.academic)):
            lines += [f"  {name}: {node_line(node).removeprefix('- ')}" for node in nodes]
    return "\n".join(lines)
