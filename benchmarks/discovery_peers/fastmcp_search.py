"""FastMCP's BM25 search transform over the same tools, called as its server calls it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastmcp import FastMCP
from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools.base import Tool, ToolResult

from discovery_peers.data import Row

SEARCH = "search_tools"


class Listed(Tool):
    """A tool that is only looked for."""

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        return ToolResult(content="done")


def build_server(rows: Sequence[Row], *, texts: bool = False, results: int = 10) -> FastMCP:
    """A server with the transform, which searches names, descriptions and parameters; with `texts`, the body is part
    of the description."""
    server = FastMCP("bench", transforms=[BM25SearchTransform(max_results=results)])
    for row in rows:
        about = f"{row.description}\n{row.text}" if texts else row.description
        server.add_tool(Listed(name=row.name, description=about, parameters=row.schema))
    return server


class FastMcpSearch:
    """The answer that a client of such a server gets."""

    def __init__(self, rows: Sequence[Row], *, texts: bool = False) -> None:
        self._ids = {row.name: row.id for row in rows}
        self._server = build_server(rows, texts=texts)

    async def rank(self, query: str) -> list[str]:
        answer = await self._server.call_tool(SEARCH, {"query": query})
        found = answer.structured_content or {}
        return [self._ids[each["name"]] for each in found.get("result", [])]
