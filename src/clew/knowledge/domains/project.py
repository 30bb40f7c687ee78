"""Tools of the domain `code` on the project itself: its style, components, dependencies and design tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from clew.knowledge.domains.node_lines import READS
from clew.tools import Tool, tool

if TYPE_CHECKING:
    from clew.knowledge.domains.code import OpenKnowledge

Need = Annotated[str, msgspec.Meta(description="what is needed, in a few words")]
Language = Annotated[str, msgspec.Meta(description="empty for all languages")]
Target = Annotated[str, msgspec.Meta(description="a file or folder; empty for the whole project")]
ComponentType = Literal["ui", "hook", "utility", "pattern", "any"]
TokenCategory = Literal["colors", "spacing", "typography", "shadows", "radii", "all"]


def project_tools(known: OpenKnowledge) -> Sequence[Tool]:
    """The tools; the modules behind them are imported with the rest of knowledge by the first that runs."""

    @tool(name="analyze_dependencies", title="What this project depends on", effects=READS)
    async def analyze_dependencies(target: Target = "") -> Any:
        """Analyze dependencies: which packages this project or a part of it depends on and where it imports them,
        which are unused or undeclared, and which files depend on it."""
        from clew.knowledge.project.dependencies import analyze_dependencies as read

        return await read((await known()).code, target)

    @tool(name="detect_patterns", title="Which patterns the code follows", effects=READS)
    async def detect_patterns(language: Language = "") -> Any:
        """Detect the patterns that the code follows, with examples: error handling, concurrency, exports and design
        patterns."""
        from clew.knowledge.project.style import detect_patterns as read

        return await read((await known()).code, language or None)

    @tool(name="get_style_guide", effects=READS, searchable=False)
    async def get_style_guide(language: Language = "") -> Any:
        """Show how code is written here: names, layout and patterns, with examples; all languages, or one."""
        from clew.knowledge.project.style import get_style_guide as read

        return await read((await known()).code, language or None)

    @tool(name="find_component", effects=READS, searchable=False)
    async def find_component(need: Need, type: ComponentType = "any") -> Any:
        """Find an existing component, hook or utility, before a new one is written."""
        from clew.knowledge.project.components import find_component as read

        return await read((await known()).code, need, type)

    @tool(name="check_dependency", effects=READS, searchable=False)
    async def check_dependency(need: Need) -> Any:
        """Find a package of the project that meets a need, before another is added."""
        from clew.knowledge.project.dependencies import check_dependency as read

        return await read((await known()).code, need)

    @tool(name="get_design_tokens", effects=READS, searchable=False)
    async def get_design_tokens(category: TokenCategory = "all") -> Any:
        """List the colours, spacings and other design tokens of the project."""
        from clew.knowledge.project.tokens import get_design_tokens as read

        return await read((await known()).code, category)

    @tool(name="find_design_token", effects=READS, searchable=False)
    async def find_design_token(value: str) -> Any:
        """Find the design token of a value, such as #3B82F6."""
        from clew.knowledge.project.tokens import find_design_token as read

        return await read((await known()).code, value)

    return (
        analyze_dependencies,
        detect_patterns,
        get_style_guide,
        find_component,
        check_dependency,
        get_design_tokens,
        find_design_token,
    )
