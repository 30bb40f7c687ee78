"""Handles survive kill -9: a caller may still use all routes that it was shown."""

from __future__ import annotations

import os
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from clew.access import Principal
from clew.catalog.operations.answers import Item
from clew.errors import HandleRefused
from tests.faults.processes import Child
from tests.tools.fraud import ANALYST, FINCRIME, ME, USER, WAREHOUSE, ask, catalog_at, codes_of, get

ROUNDS = int(os.environ.get("CLEW_FAULT_ROUNDS", "20"))


async def serve_until_killed(channel: Connection, folder: Path) -> None:
    """Ask and follow the guidance without end, and report the shown routes each time."""
    async with catalog_at(folder, WAREHOUSE, strict=True) as (catalog, _):
        while True:
            handle = (await ask(catalog, "fraud")).handle
            channel.send((handle, ANALYST))
            await get(catalog, ANALYST, handle=handle)
            channel.send((handle, USER))
            await get(catalog, USER, handle=handle, user_id="u1")
            channel.send((handle, FINCRIME))


@pytest.mark.req("BEY-01")
async def test_a_handle_survives_the_kill_of_its_process(tmp_path: Path) -> None:
    told: list[tuple[str, str]] = []
    for round in range(min(ROUNDS, 20)):
        with Child(serve_until_killed, tmp_path) as child:
            told += [child.hear() for _ in range(1 + round % 5)]
            child.kill()
    async with catalog_at(tmp_path, WAREHOUSE, strict=True, shared=True) as (catalog, _):
        for handle, route in told:
            item = Item(route=route, params={} if route == ANALYST else {"user_id": "u1"})
            assert codes_of(await catalog.get([item], by=ME, handle=handle)) == ["ok"], (handle, route)
        for other in (Principal(owner_id="acme", agent_id="bob"), Principal(owner_id="other", agent_id="ann")):
            with pytest.raises(HandleRefused):
                await get(catalog, ANALYST, by=other, handle=told[0][0])
