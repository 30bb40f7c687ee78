"""`clew mcp login` and `clew mcp logout`: log in to a foreign server with a browser, or forget the login."""

from __future__ import annotations

import asyncio
from typing import Annotated

from cyclopts import Parameter

from clew.cli.options import HERE, Here, Json
from clew.cli.terminal.output import count, is_terminal, note, print_json
from clew.cli.workspace import open_workspace_here
from clew.errors import ClewError, InvalidInput

MAX_WAIT = 3_600

Server = Annotated[str, Parameter(help="The server, as `clew mcp ls` names it.")]


async def login(
    server: Server,
    /,
    *,
    no_browser: Annotated[bool, Parameter(help="Only print the address; open no browser.")] = False,
    wait: Annotated[int, Parameter(help="How many seconds to wait for you.")] = 300,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Log in to a foreign server with OAuth.

    Prints the address to open, and opens it if this is a terminal. The answer comes back to a port of this machine.
    The tokens are kept as a secret of the trail and renewed as needed; nobody is shown them.

        clew mcp login linear
        clew mcp login linear --no-browser
    """
    # loads the client of foreign servers, which other commands do not need
    from clew.catalog.consent.consent import trust_servers
    from clew.catalog.servers.login.login import log_in

    if not 0 < wait <= MAX_WAIT:
        raise InvalidInput("--wait", f"must be above 0 and at most {MAX_WAIT:,}")

    async def show(address: str) -> None:
        note(f"Open this address to log in to {server}:\n\n  {address}\n")
        if is_terminal() and not no_browser:
            await asyncio.to_thread(_open, address)

    async with open_workspace_here(here) as (app, workspace):
        registry = workspace.servers
        registry.config(server)
        for wish in trust_servers(app.config, {server}):
            note(f"{server} {wish.summary}", dim=True)
        await workspace.notice_consent()
        await log_in(registry.config(server), registry.vault, show, seconds=wait)
        problem = ""
        try:
            await registry.refresh(server)
        except ClewError as error:
            problem = str(error)
        tools = len(registry.entries(server, "tool"))
    if json:
        print_json({"server": server, "tools": tools, "problem": problem})
        return
    note(f"Logged in to {server}." if problem else f"Logged in to {server}, which has {count(tools, 'tool')}.")
    if problem:
        note(f"Clew could not read it: {problem}")


async def logout(server: Server, /, *, json: Json = False, here: Here = HERE) -> None:
    """Forget the login to a foreign server.

    Removes its tokens from the trail. The server may still list Clew among the applications that you allowed.

        clew mcp logout linear
    """
    from clew.catalog.servers.login.login import log_out  # as above

    async with open_workspace_here(here) as (_, workspace):
        workspace.servers.config(server)
        was_there = await log_out(server, workspace.servers.vault)
    if json:
        print_json({"server": server, "logged_out": was_there})
    else:
        note(f"Logged out of {server}." if was_there else f"There was no login to {server}.")


def _open(address: str) -> None:
    import webbrowser  # looks for the browsers of this machine

    webbrowser.open(address)
