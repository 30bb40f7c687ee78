"""One server for the tests of a worker, and a client with an owner of its own for each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from uuid import uuid4

import pytest

from clew.client import Client
from tests.servers import Served, serve_in_thread


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve_in_thread(tmp_path_factory.mktemp("client")) as served:
        yield served


@pytest.fixture
async def client(server: Served) -> AsyncIterator[Client]:
    async with Client(server.url, credential=server.credential, owner_id=f"owner-{uuid4()}") as made:
        yield made
