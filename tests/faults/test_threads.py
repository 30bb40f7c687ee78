"""Effects of threads and other programs on each other's view of one file."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from clew.access import Principal
from clew.errors import NotFound, StorageError
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.event import Consumer
from clew.trail.store import Trail
from tests.faults.processes import PATIENCE

ME = Principal(owner_id="acme", agent_id="ann")
LOOK = "import apsw, sys; apsw.Connection(sys.argv[1]).execute('SELECT count(*) FROM breadcrumbs').get"


def draft(title: str) -> Draft:
    return Draft(title=title, context={})


async def titles(trail: Trail, by: Principal) -> set[str]:
    return {each.title for each in (await trail.records.list(by=by, limit=1_000)).items}


async def test_opening_a_trail_twice_keeps_the_locks_that_protect_its_log(tmp_path: Path) -> None:
    """Another program that opens and closes the file removes the log, unless it sees that somebody holds it."""
    address = f"sqlite://{tmp_path / 'trail.db'}"
    one = await open_trail(address)
    await one.records.create(draft("before"), by=ME)
    two = await open_trail(address)
    log = tmp_path / "trail.db-wal"
    inode = log.stat().st_ino
    command = [sys.executable, "-c", LOOK, str(tmp_path / "trail.db")]
    await asyncio.to_thread(subprocess.run, command, check=True)
    assert log.stat().st_ino == inode
    await one.records.create(draft("after"), by=ME)
    assert await titles(two, ME) == {"before", "after"}
    await one.close()
    await two.close()


async def test_a_write_that_fails_hides_nothing_from_those_who_read_meanwhile(tmp_path: Path) -> None:
    trail = await open_trail(f"sqlite://{tmp_path / 'trail.db'}")
    owners = [Principal(owner_id=f"owner-{number}") for number in range(10)]
    for owner in owners:
        await trail.records.create(draft(owner.owner_id), by=owner)

    async def fail() -> None:
        for _ in range(200):
            try:
                await trail.records.delete("00000000-0000-7000-8000-000000000000", by=owners[0])
            except NotFound:
                continue

    async def look(owner: Principal) -> list[set[str]]:
        return [await titles(trail, owner) for _ in range(60)]

    _, *seen = await asyncio.gather(fail(), *(look(owner) for owner in owners))
    assert [each for owner, all_ in zip(owners, seen, strict=True) for each in all_ if each != {owner.owner_id}] == []
    await trail.close()


async def test_a_claim_that_is_cancelled_twice_holds_nothing(tmp_path: Path) -> None:
    trail = await open_trail(f"sqlite://{tmp_path / 'trail.db'}")
    await trail.deliveries.register(Consumer(name="c"), by=ME)
    for number in range(60):
        waiting = asyncio.ensure_future(trail.deliveries.claim("c", by=ME, worker="w", wait=PATIENCE))
        writing = asyncio.ensure_future(trail.records.create(draft(str(number)), by=ME))
        for _ in range(number % 12):
            await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        waiting.cancel()
        (claims,) = await asyncio.gather(waiting, return_exceptions=True)
        for claim in claims if isinstance(claims, list) else []:
            await trail.deliveries.release(claim, by=ME)
        await writing
    async with asyncio.timeout(PATIENCE):
        while (await trail.deliveries.consumers(by=ME))[0].claimed:
            await asyncio.sleep(0)
    assert len(await trail.deliveries.claim("c", by=ME, worker="w", limit=100)) == 60
    await trail.close()


async def test_every_call_of_a_closed_trail_raises_the_same_error(tmp_path: Path) -> None:
    trail = await open_trail(f"sqlite://{tmp_path / 'trail.db'}")
    made = await trail.records.create(draft("x"), by=ME)
    await trail.close()
    asked = (
        trail.records.list(by=ME),
        trail.records.get(made.id, by=ME),
        trail.log.head(),
        trail.records.create(draft("y"), by=ME),
    )
    for each in await asyncio.gather(*asked, return_exceptions=True):
        assert isinstance(each, StorageError)
        assert "closed" in str(each)
