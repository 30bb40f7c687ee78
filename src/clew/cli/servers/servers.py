"""Commands for the foreign MCP servers of a folder: ls, approve, rm."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import msgspec
from cyclopts import Parameter

from clew.cli.options import HERE, Here, Json
from clew.cli.terminal.output import count, note, print_json, print_rows, say
from clew.cli.terminal.progress import progress
from clew.cli.workspace import open_workspace_here
from clew.decode_errors import suggest
from clew.errors import ClewError, ConfigError, InvalidInput, NotFound

if TYPE_CHECKING:
    from clew.catalog.servers.config import McpServerConfig
    from clew.catalog.servers.registry import ServerRegistry
    from clew.config import Config


class ServerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A server as a list shows it. `changed` are tools that wait for approval; `error` is the reason why it cannot be
    used, or the error of its last listing. `logged_in` is None if no login is needed."""

    id: str
    transport: str
    target: str
    enabled: bool
    trusted: bool
    known: bool
    tools: int
    resources: int
    prompts: int
    changed: list[str]
    error: str
    logged_in: bool | None


async def ls(*, json: Json = False, here: Here = HERE) -> None:
    """List the foreign MCP servers and what they offer.

    Shows the tools of the last listing, the last error, whether a login is needed, and which changed tools wait for
    approval. Clew starts only servers whose last start failed, to see whether they work again.

        clew mcp ls
        clew mcp ls --json
    """
    async with open_workspace_here(here) as (_, workspace):
        registry = workspace.servers
        with progress("Looking again at servers that did not start"):
            await asyncio.gather(*(_retry(each, registry) for each in registry.servers.list()))
        found = [await _describe(each, registry) for each in registry.servers.list()]
    if json:
        print_json(found)
        return
    rows = [(one.id, one.transport, one.target, str(one.tools), _state(one)) for one in found]
    print_rows(("server", "transport", "target", "tools", "state"), rows, main=4)
    if not found:
        note("No servers. Import those of your editor with `clew mcp import`, or add one with `clew mcp add`")


async def _retry(server: McpServerConfig, registry: ServerRegistry) -> None:
    """Retry a server that could not be started last time. The registry records the outcome."""
    if not server.enabled or not registry.allows(server) or not await registry.failures.could_not_start(server.id):
        return
    with suppress(ClewError):
        await registry.refresh(server.id)


async def _describe(server: McpServerConfig, registry: ServerRegistry) -> ServerInfo:
    """Describe a server without contacting it."""
    from clew.catalog.servers.server_status import is_logged_in

    tools = registry.entries(server.id, "tool")
    error, logged_in = await registry.failures.problem(server.id), None
    try:
        logged_in = await is_logged_in(server, registry.vault, os.environ)
    except ConfigError as missing:
        error = str(missing)
    return ServerInfo(
        id=server.id,
        transport=server.transport,
        target=server.target,
        enabled=server.enabled,
        trusted=registry.allows(server),
        known=registry.about(server.id) is not None,
        tools=len(tools),
        resources=len(registry.entries(server.id, "resource")),
        prompts=len(registry.entries(server.id, "prompt")),
        changed=[one.name for one in tools if one.state == "changed"],
        error=error,
        logged_in=logged_in,
    )


async def approve(
    server: Annotated[str, Parameter(help="The server.")],
    /,
    *tools: Annotated[str, Parameter(help="Names of its tools. [default: all tools that changed]")],
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Accept tools of a foreign server as it describes them now.

    A tool whose description or parameters changed is refused until you have looked at it: `clew mcp ls --json` names
    them, `clew get SERVER://tools/guide` shows them.

        clew mcp approve github
    """
    async with open_workspace_here(here) as (_, workspace):
        registry = workspace.servers
        waiting = [one.name for one in registry.entries(server, "tool") if one.state == "changed"]
        approved = [(await registry.approve(server, tool)).name for tool in tools or waiting]
    if json:
        print_json({"server": server, "approved": approved})
        return
    for name in approved:
        say(f"approved {name}")
    note(f"{count(len(approved), 'tool')} of {server} approved." if approved else f"No tool of {server} has changed.")


async def rm(
    *servers: Annotated[str, Parameter(help="The servers.")],
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Forget foreign servers and what they offered.

    Removes them from mcp.json and from the trail. The rest of mcp.json and the settings of other clients stay
    unchanged.

        clew mcp rm github
    """
    from clew.catalog.consent.consent import project_of
    from clew.cli.servers.mcp_file import remove_servers
    from clew.trust import Trust

    if not servers:
        raise InvalidInput("SERVERS", "are missing", hint="`clew mcp ls` lists them")
    named = dict.fromkeys(servers)
    async with open_workspace_here(here) as (app, workspace):
        known = [each.id for each in workspace.servers.servers.list()]
        for server in named:
            _check_known(server, known)
            _check_removable(server, app.config)
        remove_servers(app.config.folder, named)
        for server in named:
            await workspace.servers.servers.remove(server)
            Trust.open().revoke(project_of(app.config), "server", server)
    if json:
        print_json({"removed": list(named)})
    else:
        note(f"Removed {', '.join(named)}.")


def _check_known(server: str, known: Sequence[str]) -> None:
    """Raises NotFound, with the name that was probably meant."""
    if server not in known:
        error = NotFound("server", server)
        error.hint = suggest(server, known, "Servers are") or "There are none"
        raise error


def _check_removable(server: str, config: Config) -> None:
    """Raises InvalidInput for a server of the settings, which no command changes."""
    if server in {each.id for each in config.mcp.servers}:
        raise InvalidInput("SERVERS", f"{server} is in the settings", hint="Remove it there: clew config edit")


def _state(server: ServerInfo) -> str:
    if not server.enabled:
        return "off"
    if not server.trusted:
        return "not trusted yet: run `clew trust`"
    if server.logged_in is False:
        return f"not logged in: clew mcp login {server.id}"
    if server.error:
        return f"failed: {server.error}"
    if server.changed:
        return f"{count(len(server.changed), 'tool')} changed: clew mcp approve {server.id}"
    return "ready" if server.known else "not looked at yet"
