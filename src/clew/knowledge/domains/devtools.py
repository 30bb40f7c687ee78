"""Tools of the domain `code` that discover the development tools of a project and store the user's preference."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from clew.catalog.operations.text import code_span, inline
from clew.knowledge.domains.node_lines import READS
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
from clew.tools import Effects, GuidedContent, Tool, ToolContext, guide, tool

if TYPE_CHECKING:
    from clew.knowledge.domains.code import OpenKnowledge

PREFER = "code://tools/hidden/prefer_tool"
NOT_KNOWN = "- Not known:"
_USED = ("config_file", "package_manifest", "user_choice")
"""Sources of tools that are used here; the others only suggest."""


def devtools_tools(known: OpenKnowledge) -> Sequence[Tool]:
    """`discover_tools`, which `ask` finds, and `prefer_tool`, to which its answer leads."""

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
        run_command: Annotated[str, msgspec.Meta(description="how it is run, where it is not known")] = "",
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
