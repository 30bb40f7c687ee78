"""`clew mcp`: this folder's catalog as an MCP server on standard input and output."""

from __future__ import annotations

import asyncio
import gc

from clew.app import open_app
from clew.cli.options import HERE, Here
from clew.cli.project import prepare_folder
from clew.config import Config


def serve(*, here: Here = HERE) -> None:
    """Serve MCP on standard input and output.

    For a coding agent that starts it; `clew connect` writes the agent's settings. Offers two tools, ask and get, over
    everything that this folder reaches. Local files are read while it already answers. For several agents, or for REST,
    `clew up` serves the same over HTTP.

        clew mcp
        clew mcp serve --folder ~/shop/.clew
    """
    config = here.config()
    prepare_folder(config.folder)
    asyncio.run(_serve(config, here.scope_set))


async def _serve(config: Config, scopes: frozenset[str]) -> None:
    # What is made at the start stays: looking at all of it again and again would take a fifth of the start, and would
    # let every so many answers wait.
    gc.disable()
    # the SDK takes most of a second to import; wrong settings are told before
    from clew.adapters.mcp.sdk import load_sdk

    load_sdk()
    from clew.adapters.mcp.stdio import serve_stdio

    async with open_app(config, scopes=scopes) as app:
        await app.bootstrap()
        workspace = await app.workspace()
        gc.freeze()
        gc.enable()
        async with app.keeping_fresh():
            await serve_stdio(workspace.catalog, app.me)
