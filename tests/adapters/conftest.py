"""One server for the tests of a worker; each test has an owner of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import httpx
import pytest

from tests.servers import Served, serve_in_thread


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve_in_thread(tmp_path_factory.mktemp("rest")) as served:
        yield served


@pytest.fixture
def owner() -> str:
    return f"owner-{uuid4()}"


@pytest.fixture
async def http(server: Served, owner: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client with all roles and its own owner."""
    async with server.client(owner) as client:
        yield client
