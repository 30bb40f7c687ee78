"""`clew mcp`: this folder's catalog as an MCP server on standard input and output."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from clew.access import Principal
from clew.app import open_app
from clew.cli.folder_access import check_project
from clew.cli.options import HERE, Here
from clew.cli.project import prepare_folder
from clew.config import Config, find_folder

if TYPE_CHECKING:
    from clew.catalog.catalog import Catalog


def serve(*, here: Here = HERE) -> None:
    """Serve MCP on standard input and output.

    For a coding agent that starts it; `clew connect` writes the agent's settings. Offers two tools, ask and get, over
    everything that the folder reaches. Without --folder Clew uses the folder that the agent names (MCP roots),
    otherwise the current folder. Local files are read while it already answers. For several agents, or for REST, `clew
    up` serves the same over HTTP.

        clew mcp
        clew mcp serve --folder ~/shop/.clew
    """
    config = here.config()
    # Objects made at the start stay: looking at all of them again and again would take a fifth of the start, and would
    # let every so many answers wait.
    gc.disable()
    try:
        asyncio.run(_serve(here, config))
    finally:
        gc.enable()


async def _serve(here: Here, config: Config) -> None:
    # the SDK takes most of a second to import, so check the settings first
    from clew.adapters.mcp.sdk import load_sdk

    if not config.is_named:
        from clew.adapters.mcp.handshake import Handshake, claim_pipes

        with claim_pipes() as pipes:
            handshake = Handshake(*pipes)
            load_sdk()
            from clew.adapters.mcp.stdio import serve_client_folder

            await serve_client_folder(lambda roots: _open(_choose(here, config, roots), here.scope_set), handshake)
        return
    load_sdk()
    from clew.adapters.mcp.stdio import serve_stdio

    async with _open(config, here.scope_set) as (catalog, me):
        await serve_stdio(catalog, me)


@contextlib.asynccontextmanager
async def _open(config: Config, scopes: frozenset[str]) -> AsyncIterator[tuple[Catalog, Principal]]:
    """The catalog of a folder, kept fresh. Raises ClewError, for example for a folder that is not a project. Garbage
    collection, which is off during the start, is turned on again once the catalog is open."""
    from clew.cli.local_server.service import answering_commands  # after the handshake

    async with contextlib.AsyncExitStack() as stack:
        try:
            check_project(config)
            prepare_folder(config.folder)
            app = await stack.enter_async_context(open_app(config, scopes=scopes))
            await app.bootstrap()
            workspace = await app.workspace()
            gc.freeze()
        finally:
            gc.enable()
        async with app.keeping_fresh(), answering_commands(app):
            yield workspace.catalog, app.me


def _choose(here: Here, config: Config, roots: Sequence[Path]) -> Config:
    """The settings of the client's first folder, or of the current folder if the client names none."""
    if not roots:
        return config
    found = roots[0] / find_folder(roots[0])
    return msgspec.structs.replace(dataclasses.replace(here, folder=found).config(), is_named=False)
