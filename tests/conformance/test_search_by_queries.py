"""Search on PostgreSQL by a process that has no memory for the records: the tests of search, which then ask the server
for candidates."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from clew.access import Principal
from clew.trail.store import Trail
from tests.conformance.records import found_titles, make
from tests.conformance.test_search import *  # noqa: F403
from tests.conformance.test_search_freshness import *  # noqa: F403
from tests.conformance.test_search_order import *  # noqa: F403
from tests.conformance.test_vector_search import *  # noqa: F403
from tests.postgres_server import PostgresServer

pytestmark = [pytest.mark.req("O2"), pytest.mark.req("BEY-07")]


@pytest.fixture
def address(postgres_server: PostgresServer) -> Iterator[str]:
    address = postgres_server.make_database()
    yield address
    postgres_server.give_back(address)


@pytest.fixture
def search_memory() -> int:
    return 0


async def test_a_process_without_memory_for_records_says_so_once(
    trail: Trail, me: Principal, caplog: pytest.LogCaptureFixture
) -> None:
    await make(trail, me, "thread")
    for _ in range(3):
        assert await found_titles(trail, me, "thread") == ["thread"]
    assert [record.message for record in caplog.records if "search.memory_mb" in record.message] == [
        "searches ask the server: the records take 0 MB of memory, and search.memory_mb allows 0"
    ]
