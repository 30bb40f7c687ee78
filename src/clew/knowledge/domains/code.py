"""The tools of the domain `code`. `ask` finds the entry points; their results lead to the other tools."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from clew.catalog.domain import Domain
from clew.catalog.operations.text import code_span, fence, inline
from clew.errors import NotFound
from clew.knowledge.domains.tool_builder import (
    READS,
    OpenKnowledge,
    add_withheld_note,
    caller_lines,
    link_line,
    method_tool,
    node_line,
    node_lines,
    symbol_ref,
)
from clew.knowledge.evidence.trust import on_one_line
from clew.knowledge.git.store import CommitFilter
from clew.knowledge.history.links import Limit, Query
from clew.knowledge.nodes.node_store import Node, ScoredNode
from clew.knowledge.project.components import find_component
from clew.knowledge.project.dependencies import analyze_dependencies, check_dependency
from clew.knowledge.project.style import detect_patterns, get_style_guide
from clew.knowledge.project.tokens import find_design_token, get_design_tokens
from clew.knowledge.project.tool_scan import ProjectTool, find_project_tools
from clew.knowledge.project.tools import (
    CATEGORIES,
    DiscoveredTool,
    ToolCategory,
    ToolDiscoveryRequest,
    ToolDiscoveryResponse,
    ToolOption,
    category_label,
)
from clew.knowledge.search_domains import result_line
from clew.tools import Effects, Guidance, GuidedContent, Tool, ToolContext, guide, tool

if TYPE_CHECKING:  # the first tool that runs loads parsers and the rest of knowledge
    from clew.knowledge.base import Knowledge
    from clew.knowledge.code.graph import CodeGraph
    from clew.knowledge.code.models import FileInfo, SymbolLink
    from clew.knowledge.git.log import GitCommit

NAME = "code"
EVERYWHERE = f"{NAME}://tools/hidden/search_all"
STILL_READING = "None is known yet, but not all files have been read: ask again in a moment."
MAX_SHOWN = 30
"""Lines that one part of an answer shows."""

SymbolId = Annotated[str, msgspec.Meta(description="`path#qualname`, a name, or the path of a file")]
FilePath = Annotated[str, msgspec.Meta(description="the path from the top of the repository")]
Kind = Literal["function", "method", "class", "interface", "constant", "variable", "module", "file", "all"]
Folder = Annotated[str, msgspec.Meta(description="only below it")]
Depth = Annotated[int, msgspec.Meta(ge=1, le=5, description="how many steps")]
EdgeKind = Literal["imports", "calls", "references", "extends", "implements", "all"]
Where = Annotated[
    Sequence[Literal["code", "history", "academic"]], msgspec.Meta(description="only in these; empty: in all three")
]


def build_code(open_knowledge: OpenKnowledge) -> Domain:
    """The domain over the code of a folder. The first tool that runs calls `open_knowledge`."""
    own = (_entry_points, _symbol_tools, _file_tools, _project_tools)
    of_trail = (_history_tools, devtools_tools, _search_tools)
    noted = add_withheld_note((each for build in of_trail for each in build(open_knowledge)), open_knowledge)
    return Domain(
        name=NAME,
        is_builtin=True,
        description="The code of this repository: what is defined where, what calls what, and what each file is about",
        tools=(*(each for build in own for each in build(open_knowledge)), *noted),
    )


def _entry_points(known: OpenKnowledge) -> Sequence[Tool]:
    @tool(name="search_code", title="Search the code", effects=READS)
    async def search_code(
        query: Query,
        limit: Limit = 10,
        symbol_type: Kind = "all",
        file_pattern: Annotated[str, msgspec.Meta(description="only below a path, a glob such as src/**")] = "",
    ) -> GuidedContent:
        """Find functions, classes and files of this repository by name, by words or by what they are for."""
        code = (await known()).code
        found = await code.search(query, limit=limit, symbol_type=symbol_type, file_pattern=file_pattern or None)
        return _found(found, query)

    @tool(name="locate", title="Which files is this about", effects=READS)
    async def locate(
        query: Annotated[str, msgspec.Meta(description="the text of the issue or error, as long as it is")],
        limit: Limit = 10,
    ) -> GuidedContent:
        """Find the files that an issue, an error or a change is about, with the best line of each."""
        found = await (await known()).code.locate(query, limit=limit)
        lines = [f"- {on_one_line(at.path)}:{at.line} {inline(at.symbol)} ({inline(at.why, 120)})" for at in found]
        route = f"{NAME}://tools/hidden/get_file_symbols"
        steps = [guide(route, "what the first of them defines", file_path=at.path) for at in found[:1]]
        return GuidedContent(content="\n".join(lines) or "No file is about that.", guidance=steps)

    @tool(name="what_calls", title="What calls this", effects=READS)
    async def what_calls(symbol: SymbolId, depth: Depth = 1) -> GuidedContent:
        """Find the callers of a function, method or class, within a number of steps."""
        code = (await known()).code
        found = caller_lines(await code.callers(symbol, depth=depth))
        return GuidedContent(content=found or _linked(code, (), "Nothing in this repository calls it."))

    return search_code, locate, what_calls


def _symbol_tools(known: OpenKnowledge) -> Sequence[Tool]:
    @tool(name="get_symbol", effects=READS, searchable=False)
    async def get_symbol(symbol_id: SymbolId, include_source: bool = False) -> GuidedContent:
        """Read a symbol: its kind and place, and its source on request."""
        code = (await known()).code
        node = await code.symbol(symbol_id)
        parts = [node_line(node), *([_source(node, await code.source(node.id))] if include_source else [])]
        return GuidedContent(content="\n\n".join(parts), guidance=_next_steps(node))

    @tool(name="get_context", effects=READS, searchable=False)
    async def get_context(symbol_id: SymbolId) -> str:
        """Read a symbol or a file with its source, the symbols that use it, and the symbols that it uses."""
        code = (await known()).code
        node = await code.symbol(symbol_id)
        used_by = _section("Used by", map(link_line, await code.dependents(node.id)))
        uses = _section("Uses", map(link_line, await code.dependencies(node.id)))
        return "\n\n".join((node_line(node), _source(node, await code.source(node.id)), used_by, uses))

    @tool(name="get_dependencies", effects=READS, searchable=False)
    async def get_dependencies(symbol_id: SymbolId, edge_type: EdgeKind = "all", depth: Depth = 1) -> str:
        """List what a symbol or a file uses."""
        code = (await known()).code
        links = await code.dependencies(symbol_id, edge_type=edge_type, depth=depth)
        return _linked(code, links, "It uses nothing of this repository.")

    @tool(name="get_dependents", effects=READS, searchable=False)
    async def get_dependents(symbol_id: SymbolId, edge_type: EdgeKind = "all", depth: Depth = 1) -> str:
        """List what uses a symbol or a file."""
        code = (await known()).code
        links = await code.dependents(symbol_id, edge_type=edge_type, depth=depth)
        return _linked(code, links, "Nothing of this repository uses it.")

    @tool(name="find_similar_symbols", effects=READS, searchable=False)
    async def find_similar_symbols(
        symbol_id: SymbolId, limit: Limit = 10, same_type_only: bool = False
    ) -> GuidedContent:
        """Find symbols that read like another one."""
        code = (await known()).code
        return _found(await code.similar(symbol_id, limit=limit, same_type_only=same_type_only))

    return get_symbol, get_context, get_dependencies, get_dependents, find_similar_symbols


def _file_tools(known: OpenKnowledge) -> Sequence[Tool]:
    @tool(name="get_file_symbols", effects=READS, searchable=False)
    async def get_file_symbols(file_path: FilePath, symbol_type: Kind = "all") -> str:
        """List what a file defines, in its order."""
        nodes = await (await known()).code.symbols_of(file_path, symbol_type=symbol_type)
        return "\n".join(map(node_line, nodes)) or "It defines nothing."

    @tool(name="list_files", effects=READS, searchable=False)
    async def list_files(
        pattern: Annotated[str, msgspec.Meta(description="only what this glob matches, such as **/*.py")] = "",
        limit: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 200,
    ) -> str:
        """List the files of this repository."""
        files = await (await known()).code.files(pattern)
        lines = [f"- {on_one_line(each.path)} ({each.language or 'text'}, {each.lines:,} lines)" for each in files]
        return "\n".join(_first(lines, limit)) or "No file matches that."

    @tool(name="get_structure", effects=READS, searchable=False)
    async def get_structure(path: Folder = "", depth: Depth = 2) -> str:
        """Show the folders of this repository, with their languages and sizes."""
        place = "" if path in ("", ".", "./", "/") else f"{path.removeprefix('./').strip('/')}/"
        files = [file for file in await (await known()).code.files() if file.path.startswith(place)]
        if place and not files:
            raise NotFound("folder", path[:200])
        return "\n".join(_outline(place.rstrip("/"), files, depth))

    return get_file_symbols, list_files, get_structure


def _history_tools(known: OpenKnowledge) -> Sequence[Tool]:
    @tool(name="get_history_for_code", effects=READS, searchable=False)
    async def get_history_for_code(
        file_path: FilePath,
        ctx: ToolContext,
        limit: Limit = 10,
    ) -> str:
        """List the notes about a file, and the commits that touched it, newest first."""
        knowledge = await known()
        noted = await knowledge.archive(ctx.by).get_history_for_code(file_path, limit)
        commits = await knowledge.code.with_rebuild(lambda: _commits_of(knowledge, file_path, limit))
        lines = [*map(node_line, noted), *map(commit_line, commits)]
        return "\n".join(lines) or "There are no notes about it, and no commit touched it."

    return (get_history_for_code,)


def _search_tools(known: OpenKnowledge) -> Sequence[Tool]:
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


def _project_tools(known: OpenKnowledge) -> Sequence[Tool]:
    """Style, components, dependencies and design tokens: each tool is the function of its name."""
    made = partial(method_tool, known, lambda knowledge, _: knowledge.code, render=lambda found: found)
    hidden = (get_style_guide, find_component, check_dependency, get_design_tokens, find_design_token)
    return (
        made(analyze_dependencies, title="What this project depends on"),
        made(detect_patterns, title="Which patterns the code follows"),
        *map(made, hidden),
    )


async def _commits_of(knowledge: Knowledge, path: str, limit: int) -> Sequence[GitCommit]:
    await knowledge.commits.read()
    paths = tuple(await knowledge.commits.paths_of(path)) or (path,)
    return (await knowledge.commits.select(CommitFilter(paths=paths), limit))[0]


def commit_line(commit: GitCommit) -> str:
    """One commit on a line: date, subject and id."""
    return f"- {commit.at:%Y-%m-%d} {inline(commit.subject, 300)} ({commit.sha[:10]})"


def _source(node: Node, text: str) -> str:
    return fence(text, f"From {code_span(node.path or '')}.", limit=40_000)


def _section(title: str, lines: Iterable[str]) -> str:
    return "\n".join((f"## {title}", "", *(_first([*lines], MAX_SHOWN) or ["none"])))


def _first(lines: Sequence[str], limit: int) -> list[str]:
    more = [f"… and {len(lines) - limit:,} more"] if len(lines) > limit else []
    return [*lines[:limit], *more]


def _linked(code: CodeGraph, links: Sequence[SymbolLink], none: str) -> str:
    """The links, a line each. `none` is certain only if all files and edges are indexed."""
    if links:
        return "\n".join(map(link_line, links))
    return none if code.is_current else STILL_READING


def _found(found: Sequence[ScoredNode], query: str = "") -> GuidedContent:
    if not found:
        steps = [guide(EVERYWHERE, "look in history and references too", query=query)] if query else []
        return GuidedContent(content="No code matches that.", guidance=steps)
    return GuidedContent(content=node_lines(found), guidance=_next_steps(found[0].node))


def _next_steps(node: Node) -> list[Guidance]:
    ref = symbol_ref(node)
    return [
        guide(f"{NAME}://tools/hidden/get_symbol", "read it", symbol_id=ref, include_source=True),
        guide(f"{NAME}://tools/hidden/get_dependents", "what uses it", symbol_id=ref),
        guide(f"{NAME}://tools/hidden/get_history_for_code", "how it came about", file_path=node.path),
    ]


def _outline(path: str, files: Sequence[FileInfo], depth: int, indent: str = "") -> list[str]:
    """A folder with totals of all files below it, then its folders and files down to `depth`."""
    below: dict[str, list[FileInfo]] = {}
    for file in files:
        below.setdefault(file.path[len(path) :].lstrip("/").partition("/")[0], []).append(file)
    languages = Counter(file.language for file in files if file.language).most_common(3)
    size = f"{len(files):,} files, {sum(file.lines for file in files):,} lines"
    shown = [f"{indent}- {on_one_line(path) or '.'}/ ({', '.join((size, *(name for name, _ in languages)))})"]
    for name in sorted(below) if depth else ():
        place = f"{path}/{name}".lstrip("/")
        if below[name][0].path == place:
            shown.append(f"{indent}  - {on_one_line(name)}")
        else:
            shown += _outline(place, below[name], depth - 1, f"{indent}  ")
    return shown


# -- development tools ---------------------------------------------------------------------------------------------

PREFER = "code://tools/hidden/prefer_tool"
NOT_KNOWN = "- Not known:"
_USED = ("config_file", "package_manifest", "user_choice")
"""Sources of tools that are used here; the others only suggest."""


def devtools_tools(known: OpenKnowledge) -> Sequence[Tool]:
    """`discover_tools`, which `ask` finds, and `prefer_tool`, which its answer suggests."""

    @tool(name="discover_tools", title="Which linter, formatter, test runner is used", effects=READS)
    async def discover_tools(
        ctx: ToolContext,
        category: Annotated[ToolCategory | Literal["all"], msgspec.Meta(description="which kind of tool")] = "all",
        path: Annotated[str, msgspec.Meta(description="the file or folder that it is for")] = ".",
        force_refresh: bool = False,
    ) -> GuidedContent:
        """Show which linter, formatter, type checker, test runner and language server this project uses, from its
        configuration, manifests and scripts, and how each is run."""
        knowledge = await known()
        discovery = knowledge.discovery(ctx.by)
        parts, steps = [], []
        if category == "all" and path == ".":
            tools = await asyncio.to_thread(find_project_tools, knowledge.root)
            parts.append("\n".join(("## Commands", "", *map(_command_line, tools))))
        for each in CATEGORIES if category == "all" else (category,):
            request = ToolDiscoveryRequest(
                session_id=ctx.by.session or "", requesting_agent=ctx.by.agent_id, tool_category=each, target_path=path
            )
            found = await discovery.discover(request, force_refresh)
            parts.append("\n".join((f"## {category_label(each)}", "", *response_lines(each, found))))
            if found.requires_user or not found.tools:
                steps.append(guide(PREFER, f"tell which {category_label(each)} the user wants", category=each))
        return GuidedContent(content="\n\n".join(parts), guidance=steps)

    @tool(name="prefer_tool", effects=Effects(repeats_safely=True, reaches_out=False), searchable=False)
    async def prefer_tool(
        category: ToolCategory,
        name: Annotated[str, msgspec.Meta(description="the tool, as the user named it")],
        ctx: ToolContext,
        language: Annotated[str, msgspec.Meta(description="empty for that of most files")] = "",
        run_command: Annotated[
            str, msgspec.Meta(description="the command that runs it, if Clew does not know it")
        ] = "",
    ) -> str:
        """Remember which tool the user wants, for all sessions to come. Ask the user first. The configuration of the
        project still comes before it."""
        found = await (await known()).discovery(ctx.by).prefer(category, name, run_command, language)
        return f"Remembered for all sessions: {name} as {category_label(category)} for {found or 'any language'}."

    return discover_tools, prefer_tool


def _command_line(tool: ProjectTool) -> str:
    return f"- {tool.kind}: {code_span(tool.command)} for {', '.join(tool.files)} ({inline(tool.reason)})"


def response_lines(category: ToolCategory, response: ToolDiscoveryResponse) -> list[str]:
    """A response, a line each: tools that are used, whether one is missing, suggestions, and options."""
    used = [each for each in response.tools if each.source in _USED]
    lines = [f"- {_tool_line(each)} (confidence {response.confidence})" for each in used]
    if response.requires_user or not response.tools:
        what = "whether that is the one" if used else f"which {category_label(category)} is used"
        lines.append(f"{NOT_KNOWN} {what}; nothing here configures one, and the user has not said.")
    lines += [f"- Suggested: {_tool_line(each)}" for each in response.tools if each not in used]
    return [*lines, *map(_option_line, response.user_options[:-1])]  # the last is a tool of the user's own


def _tool_line(tool: DiscoveredTool) -> str:
    version = f" {tool.version}" if tool.version else ""
    kind = f"{category_label(tool.category)}{f' for {tool.language}' if tool.language else ''}"
    install = f" ({inline(tool.install_cmd)})" if tool.install_cmd else ""
    installed = "installed" if tool.is_installed else f"not installed here{install}"
    run = f"run: {inline(tool.run_command)}; " if tool.run_command else ""
    return f"{inline(tool.name, 100)}{version}, {kind}: {inline(tool.rationale)}; {run}{installed}"


def _option_line(option: ToolOption) -> str:
    against = f"; against it: {', '.join(option.cons)}" if option.cons else ""
    pros = inline(", ".join(option.pros))
    return f"- To choose from: {inline(option.tool.name, 100)}, for it: {pros}{inline(against)}"
