"""Which tools for development a project uses, and which the user prefers, as tools of the domain `code`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from clew.knowledge.domains.shown import READS
from clew.knowledge.project.devtools_records import CATEGORIES, ToolCategory, ToolChoice, ToolDiscoveryRequest
from clew.tools import Effects, GuidedContent, Tool, ToolContext, guide, tool

if TYPE_CHECKING:
    from clew.knowledge.domains.code import OpenKnowledge


def devtools_tools(known: OpenKnowledge) -> Sequence[Tool]:
    """One to ask, found by `ask`, and one to tell, which the answer of the first leads to."""

    @tool(name="discover_tools", title="Which linter, formatter, test runner is used", effects=READS)
    async def discover_tools(
        ctx: ToolContext,
        category: Annotated[ToolCategory | Literal["all"], msgspec.Meta(description="which kind of tool")] = "all",
        path: Annotated[str, msgspec.Meta(description="the file or folder that it is for")] = ".",
        force_refresh: bool = False,
    ) -> GuidedContent:
        """Tell which linter, formatter, type checker, test runner and language server this project uses, from its
        configuration, manifests and scripts, and how each is run."""
        from clew.knowledge.project.devtools_telling import PREFER, told, worded  # with the rest of knowledge

        discovery = (await known()).discovery(ctx.by)
        parts, steps = [], []
        for each in CATEGORIES if category == "all" else (category,):
            request = ToolDiscoveryRequest(
                session_id=ctx.by.session or "", requesting_agent=ctx.by.agent_id, tool_category=each, target_path=path
            )
            found = await discovery.discover(request, force_refresh)
            parts.append("\n".join((f"## {worded(each)}", "", *told(each, found))))
            if found.requires_user or not found.tools:
                steps.append(guide(PREFER, f"tell which {worded(each)} the user wants", category=each))
        return GuidedContent(content="\n\n".join(parts), guidance=steps)

    @tool(name="prefer_tool", effects=Effects(repeats_safely=True, reaches_out=False), searchable=False)
    async def prefer_tool(
        category: ToolCategory,
        name: Annotated[str, msgspec.Meta(description="the tool, as the user named it")],
        ctx: ToolContext,
        language: Annotated[str, msgspec.Meta(description="empty for that of most files")] = "",
        run_command: Annotated[str, msgspec.Meta(description="how it is run, where it is not known")] = "",
    ) -> str:
        """Remember which tool the user wants, for all sessions to come. Ask the user first. What the project itself
        configures still comes before it."""
        choice = ToolChoice(name=name, run_command=run_command)
        found = await (await known()).discovery(ctx.by).prefer(category, choice, language)
        return f"Remembered for all sessions: {name} as {category.replace('_', ' ')} for {found or 'any language'}."

    return discover_tools, prefer_tool
