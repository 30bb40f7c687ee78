"""`clew connect --check`: start the server as a coding agent does, and ask it a question."""

from __future__ import annotations

import asyncio
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
from mcp import Client
from mcp_types import Implementation

import clew
from clew.catalog.operations.answers import CatalogAnswer
from clew.catalog.servers.connections.client_factory import foreign_errors
from clew.catalog.servers.connections.server_errors import Faults
from clew.catalog.servers.connections.stdio import open_stdio
from clew.cli.servers.client_formats import ServerLaunch
from clew.cli.servers.clients import WORKSPACE, ClientFile
from clew.cli.servers.connect import client_path, link_command
from clew.cli.terminal.answer import first_line
from clew.errors import ClewError, ConfigError

QUESTION = "what is this project about"
NOT_CITED = "no file of this folder answers it"
PATIENCE = 60.0
"""Seconds for the start, the list of tools and the answer together."""


@dataclass(frozen=True, slots=True)
class ConnectionCheck:
    """The answer of a server that a client can start."""

    server: str
    tools: int
    question: str
    answer: str

    @property
    def fields(self) -> dict[str, Any]:
        return asdict(self)


async def check_connection(client: ClientFile, launch: ServerLaunch, project: Path) -> ConnectionCheck:
    """Start the server by the client's entry, in the client's folder and outside of the active virtual environment.

    Raises ConfigError if the program is not found, and ClewError if it does not answer.
    """
    path = client_path()
    words = [word.replace(WORKSPACE, str(project)) for word in (launch.command, *launch.args)]
    if shutil.which(words[0], path=path) is None:
        error = ConfigError(f"{client.title} does not find the program {words[0]!r}")
        error.hint = f"Put it on your PATH: {link_command()}"
        raise error
    faults = Faults()
    cwd = Path.home() if client.is_global else project
    try:
        async with asyncio.timeout(PATIENCE):
            return await _ask(tuple(words), {**os.environ, "PATH": path}, cwd, faults, project)
    except TimeoutError:
        raise ClewError(f"the server did not answer within {PATIENCE:.0f} seconds: run `{' '.join(words)}`") from None
    except foreign_errors() as error:
        reason = faults.last_complaint() or faults.reason or faults.plain(str(error))
        raise ClewError(f"the server did not start: {reason}") from None


async def _ask(
    command: tuple[str, ...], env: dict[str, str], cwd: Path, faults: Faults, project: Path
) -> ConnectionCheck:
    info = Implementation(name="clew-connect", version=clew.__version__)
    async with Client(open_stdio(command, env, str(cwd), faults), cache=None, client_info=info) as session:
        tools = await session.list_tools()
        answer = await session.call_tool("ask", {"query": QUESTION})
        text = "\n".join(getattr(each, "text", "") for each in answer.content)
        if answer.is_error:
            raise ClewError(f"the server started, but it did not answer: {faults.plain(text)}")
        server = session.server_info
        name = "a server without a name" if server is None else f"{server.name} {server.version}"
        return ConnectionCheck(name, len(tools.tools), QUESTION, _shown(answer.structured_content, project))


def _shown(answer: dict[str, Any] | None, project: Path) -> str:
    """The answer on one line, as `clew ask` shows its best citation."""
    try:
        found = msgspec.convert(answer or {}, CatalogAnswer)
    except msgspec.ValidationError:
        return NOT_CITED
    return first_line(found, project) or next(iter(found.notes), NOT_CITED)
