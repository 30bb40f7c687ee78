"""What a project says of itself, as tools of the domain `code`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from clew.knowledge.domains.shown import READS
from clew.tools import Tool, tool

if TYPE_CHECKING:
    from clew.knowledge.domains.code import OpenKnowledge

Need = Annotated[str, msgspec.Meta(description="what is needed, in a few words")]
ComponentType = Literal["ui", "hook", "utility", "pattern", "any"]
TokenCategory = Literal["colors", "spacing", "typography", "shadows", "radii", "all"]


def project_tools(known: OpenKnowledge) -> Sequence[Tool]:
    """Style, components, dependencies and design tokens; what reads them is loaded by the first that runs."""

    @tool(name="get_style_guide", effects=READS, searchable=False)
    async def get_style_guide(language: str = "") -> Any:
        """Tell how code is written here: names, layout and patterns, with examples; all languages, or one."""
        from clew.knowledge.project.style import get_style_guide as read  # with the rest of knowledge

        return await read((await known()).code, language or None)

    @tool(name="find_component", effects=READS, searchable=False)
    async def find_component(need: Need, type: ComponentType = "any") -> Any:
        """Find a component, hook or utility that is there already, before one is written anew."""
        from clew.knowledge.project.components import find_component as read  # as above

        return await read((await known()).code, need, type)

    @tool(name="check_dependency", effects=READS, searchable=False)
    async def check_dependency(need: Need) -> Any:
        """Find a package that the project has already for a need, before another is added."""
        from clew.knowledge.project.dependencies import check_dependency as read  # as above

        return await read((await known()).code, need)

    @tool(name="get_design_tokens", effects=READS, searchable=False)
    async def get_design_tokens(category: TokenCategory = "all") -> Any:
        """List the colours, spacings and other design tokens of the project."""
        from clew.knowledge.project.design_tokens import get_design_tokens as read  # as above

        return await read((await known()).code, category)

    @tool(name="find_design_token", effects=READS, searchable=False)
    async def find_design_token(value: str) -> Any:
        """Find the design token of a value, such as #3B82F6."""
        from clew.knowledge.project.design_tokens import find_design_token as read  # as above

        return await read((await known()).code, value)

    return get_style_guide, find_component, check_dependency, get_design_tokens, find_design_token
