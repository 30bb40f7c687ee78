"""A server that is killed under its clients: clients that follow events miss none."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from clew.access import Principal
from clew.client import Client
from clew.trail.model.breadcrumb import Draft
from tests.faults.processes import PATIENCE, Child, open_at
from tests.faults.server import serve_until_killed

ADA = Principal(owner_id="ada", agent_id="writer")
KILLS, EVENTS = 2, 40


@pytest.mark.slow
@pytest.mark.req("RCR-21")
async def test_a_follower_gets_each_event_once_although_the_server_is_killed_again_and_again(tmp_path: Path) -> None:
    trail = await open_at(tmp_path)
    got, port = list[int](), 0
    client: Client | None = None
    for round in range(KILLS + 1):
        with Child(serve_until_killed, tmp_path, port) as server:
            url, credential = await asyncio.to_thread(server.hear)
            if client is None:
                port = int(url.rsplit(":", 1)[1])
                client = Client(url, credential=credential, owner_id="ada", jitter=lambda: 0.0)
                events = client.events(after=0)
            for number in range(EVENTS):
                draft = Draft(title="Event", context={"number": round * EVENTS + number})
                await trail.records.create(draft, by=ADA)
            wanted = (round + 1) * EVENTS - (EVENTS // 2 if round < KILLS else 0)
            async with asyncio.timeout(PATIENCE):
                while len(got) < wanted:
                    got.append(int(((await anext(events)).context or {})["number"]))
            if round < KILLS:
                server.kill()
    assert client is not None
    async with aclosing(events):
        await client.close()
    await trail.close()

    assert got == list(range((KILLS + 1) * EVENTS))
