"""The MCP SDK alone: a server with one empty tool, and the time of a call on each transport."""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import time
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.server import MCPServer

from speed.catalog_stage import Settings
from speed.processes import clean_environment, serving
from speed.report import Finding, Row
from speed.timing import Rounds, rotate

MEASURE = "a bare mcp round trip"
PATH = str(Path(__file__).parents[1])


def build_server() -> MCPServer:
    server = MCPServer("bare")

    @server.tool()
    async def nothing(query: str) -> str:
        """Does nothing."""
        return query

    return server


async def measure(settings: Settings) -> list[Finding]:
    command = [sys.executable, "-m", "speed.bare_mcp"]
    async with contextlib.AsyncExitStack() as stack:
        http = stack.enter_context(serving([*command, "http"], {"PYTHONPATH": PATH}))
        stdio = StdioServerParameters(
            command=command[0], args=[*command[1:], "stdio"], env=clean_environment({"PYTHONPATH": PATH})
        )
        targets: dict[str, Any] = {
            "in process": build_server(),
            "stdio": stdio,
            "http": f"http://{http.host}:{http.port}/mcp",
        }
        clients = {name: await stack.enter_async_context(Client(target)) for name, target in targets.items()}
        took = await time_clients(clients, settings)
    return [Row(measure=MEASURE, records=1, contender=name, values=each.spread()) for name, each in took.items()]


async def time_clients(clients: dict[str, Client], settings: Settings) -> dict[str, Rounds]:
    took = {name: Rounds() for name in clients}
    for client in clients.values():
        await client.call_tool("nothing", {"query": "warm"})
    for turn in range(settings.rounds):
        for name in rotate(list(clients), turn):
            took[name].begin()
            for _ in range(settings.samples):
                began = time.perf_counter()
                await clients[name].call_tool("nothing", {"query": "a"})
                took[name].add(time.perf_counter() - began)
    return took


def serve(transport: str) -> None:
    server = build_server()
    if transport == "stdio":
        server.run("stdio")
        return
    import uvicorn

    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(json.dumps({"url": f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"}), flush=True)
        app = server.streamable_http_app()
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    serve(sys.argv[1])
