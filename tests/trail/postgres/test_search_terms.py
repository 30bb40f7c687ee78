"""Terms of records on PostgreSQL: the time at which they are computed."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from clew.access import Principal
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.query import SearchRequest

pytestmark = pytest.mark.req("BEY-07")

PATIENCE = 60.0


def read_indexed(address: str) -> tuple[int, int]:
    """The event up to which terms are complete, and the newest one."""
    with psycopg.connect(address) as connection:
        row = connection.execute("SELECT (SELECT value::bigint FROM meta WHERE key = 'indexed'), head FROM log")
        indexed, head = row.fetchone() or (0, 0)
        return indexed, head


@pytest.mark.parametrize("writer", ["here", "there"])
async def test_once_a_process_has_searched_records_are_indexed_without_a_search(
    address: str, me: Principal, writer: str
) -> None:
    """Records of this process, and records of another process, which it notices while a caller waits."""
    here, there = await open_trail(address), await open_trail(address)
    await here.index.warm()
    waiting = asyncio.ensure_future(here.log.wait(100, PATIENCE))
    trail = here if writer == "here" else there
    await trail.records.create(Draft(title="A lighthouse", context={}), by=me)
    async with asyncio.timeout(PATIENCE):
        while read_indexed(address) != (1, 1):
            await asyncio.sleep(0.01)
    waiting.cancel()
    found = await there.index.search(SearchRequest(text="lighthouse"), by=me)
    assert [hit.breadcrumb.title for hit in found.hits] == ["A lighthouse"]
    await here.close()
    await there.close()
