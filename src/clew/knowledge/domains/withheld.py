"""What tools say beside their results where not all of the trail may be told."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from clew.tools import GuidedContent, Tool, ToolContext

if TYPE_CHECKING:
    from clew.knowledge.domains.code import OpenKnowledge


def telling_of_the_withheld(tools: Iterable[Tool], known: OpenKnowledge) -> tuple[Tool, ...]:
    """The same tools; below each result of theirs it is said when something was left out."""
    return tuple(_telling(each, known) for each in tools)


def _telling(tool: Tool, known: OpenKnowledge) -> Tool:
    async def call(arguments: dict[str, Any], context: ToolContext) -> GuidedContent:
        found = await tool.call(arguments, context)
        lines = await (await known()).consent.withheld()
        return msgspec.structs.replace(found, content="\n\n".join([found.content, *lines])) if lines else found

    return msgspec.structs.replace(tool, call=call)
