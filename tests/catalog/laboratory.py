"""A domain of misbehaving tools, and their outcomes."""

from __future__ import annotations

from typing import Any

from clew.catalog.domain import Domain
from clew.catalog.operations.answers import Results
from clew.tools import Tool, tool


def lab(*tools: Tool, **more: Any) -> Domain:
    return Domain(name="lab", description="Experiments", tools=tools, **more)


def content_of(results: Results, at: int = 0) -> str:
    data = results.results[at].data
    assert data is not None, results.results[at].error
    return data.content


def failing(name: str, error: BaseException) -> Tool:
    async def fail() -> str:
        raise error

    made: Tool = tool(name=name, description="Fails.")(fail)
    return made
