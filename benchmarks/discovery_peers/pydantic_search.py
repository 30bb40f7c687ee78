"""pydantic-ai's tool search over the same tools, through the toolset that its capability puts around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai import ModelRetry, RunContext
from pydantic_ai.capabilities import ToolSearch
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import DeferredLoadingToolset, ExternalToolset
from pydantic_ai.usage import RunUsage

from discovery_peers.data import Row

SEARCH = "search_tools"


class PydanticSearch:
    """It searches names and descriptions; with `texts`, the body is part of the description."""

    def __init__(self, rows: Sequence[Row], *, texts: bool = False) -> None:
        self._ids = {row.name: row.id for row in rows}
        abouts = [f"{row.description}\n{row.text}" if texts else row.description for row in rows]
        defined = [
            ToolDefinition(name=row.name, description=about, parameters_json_schema=row.schema)
            for row, about in zip(rows, abouts, strict=True)
        ]
        self._context: RunContext[None] = RunContext(deps=None, model=TestModel(), usage=RunUsage())
        self._tools: Any = ToolSearch(max_results=10).get_wrapper_toolset(
            DeferredLoadingToolset(ExternalToolset(defined))
        )
        self._listed: Any = None

    async def rank(self, query: str) -> list[str]:
        if self._listed is None:
            self._listed = await self._tools.get_tools(self._context)
        try:
            found = await self._tools.call_tool(SEARCH, {"queries": [query]}, self._context, self._listed[SEARCH])
        except ModelRetry:  # a question without one word in Latin letters
            return []
        return [self._ids[each["name"]] for each in found["discovered_tools"]]
