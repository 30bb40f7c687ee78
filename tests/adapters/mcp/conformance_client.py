"""The registry's connection as the client that the conformance suite measures: the suite gives the address last.

It does what Clew does with a server: it reads what there is, and calls the tools with the arguments that they need.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from typing import Any

from clew.catalog.servers.config import ServerConfig
from clew.catalog.servers.connection import ServerConnection
from clew.errors import ServerError

SAMPLES: dict[str, Any] = {"string": "text", "number": 2, "integer": 2, "boolean": True, "array": [], "object": {}}
GIVEN: dict[str, dict[str, Any]] = {"add_numbers": {"a": 5, "b": 3}}
ECHOED = "json_schema_2020_12_tool"
"""A tool whose schema the suite wants to have back."""


def calls_of(tools: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """The calls that the suite asks for, or else one of each tool."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    asked = [(each["name"], each.get("arguments", {})) for each in context.get("toolCalls", ())]
    schemas = {tool["name"]: tool["inputSchema"] for tool in tools}
    return asked or [(name, GIVEN.get(name) or arguments_of(schema, schemas)) for name, schema in schemas.items()]


def arguments_of(schema: dict[str, Any], schemas: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Arguments that a tool takes."""
    properties = schema.get("properties", {})
    if set(properties) == {"schema"} and ECHOED in schemas:
        return {"schema": schemas[ECHOED]}
    return {name: SAMPLES.get(each.get("type"), "text") for name, each in properties.items()}


async def main(url: str) -> None:
    connection = ServerConnection(ServerConfig(id="suite", transport="http", url=url, timeout_seconds=20))
    try:
        await connection.about()
        for name, arguments in calls_of((await connection.list_all("tools")).entries):
            with contextlib.suppress(ServerError):  # a refusal is an answer; the suite judges what was sent
                await connection.call_tool(name, arguments)
        for resource in (await connection.list_all("resources")).entries:
            await connection.read_resource(resource["uri"])
        for prompt in (await connection.list_all("prompts")).entries:
            await connection.get_prompt(prompt["name"], {})
    finally:
        await connection.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
