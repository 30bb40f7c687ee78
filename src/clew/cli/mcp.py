"""`clew mcp`: this folder's catalog as an MCP server on standard input and output."""

from __future__ import annotations

import asyncio

from clew.app import App, open_app
from clew.cli.options import HERE, Here
from clew.cli.output import note
from clew.cli.project import prepare_folder
from clew.config import Config


def serve(*, here: Here = HERE) -> None:
    """Serve MCP on standard input and output.

    For a coding agent that starts it; `clew connect` writes the agent's settings. Offers two tools, ask and get, over
    everything that this folder reaches. Local files are read while it already answers.

        clew mcp
        clew mcp serve --folder ~/work/shop/.clew
    """
    config = here.config()
    prepare_folder(config.folder)
    asyncio.run(_serve(config, here.scope_set))


async def _serve(config: Config, scopes: frozenset[str]) -> None:
    # the SDK takes most of a second to import; wrong settings are told before
    from clew.adapters.mcp.stdio import serve_stdio

    async with open_app(config, scopes=scopes) as app:
        await app.bootstrap()
        workspace = await app.workspace()
        reading = asyncio.create_task(_read(app))
        try:
            await serve_stdio(workspace.catalog, app.me)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


async def _read(app: App) -> None:
    """Bring the sources up to date while the server answers."""
    workspace = await app.workspace()
    for id, problem in (await workspace.meet_servers()).items():
        note(f"clew: the server {id} cannot be used yet: {problem}")
    for report in await workspace.lifecycle().restart():
        if report.outcome == "failed":
            note(f"clew: {report.source_id} was not refreshed: {report.error}")
