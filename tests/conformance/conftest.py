"""Every backend of the trail, opened for the tests of this folder. A new one joins by a line in BACKENDS."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Protocol

import pytest

from clew.clock import Clock, ManualClock
from clew.llm.wordllama import WordLlamaEmbedder
from clew.trail import SEARCH_MEMORY, open_trail
from clew.trail.store import Embedder, Trail
from tests.postgres_server import PostgresServer


def _sqlite(request: pytest.FixtureRequest) -> str:
    return f"sqlite://{request.getfixturevalue('tmp_path')}/trail.db"


def _postgres(request: pytest.FixtureRequest) -> str:
    address: str = request.getfixturevalue("postgres_address")
    return address


BACKENDS: dict[str, Callable[[pytest.FixtureRequest], str]] = {"sqlite": _sqlite, "postgres": _postgres}


class OpenAgain(Protocol):
    """Opens the test's trail once more: beside the one that is open, or after it was closed."""

    def __call__(self, embedder: Embedder | None = None, clock: Clock = ...) -> Awaitable[Trail]: ...


@pytest.fixture(params=BACKENDS)
def address(request: pytest.FixtureRequest) -> str:
    """The address of the test's trail."""
    return BACKENDS[request.param](request)


@pytest.fixture
def storage(address: str, request: pytest.FixtureRequest) -> Path:
    """The folder with all files of the trail."""
    if address.startswith("sqlite"):
        return Path(address.removeprefix("sqlite://")).parent
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server.folder


@pytest.fixture
def search_memory() -> int:
    """Bytes of records that an open trail may hold in memory for searches."""
    return SEARCH_MEMORY


@pytest.fixture
async def open_again(address: str, clock: ManualClock, search_memory: int) -> AsyncIterator[OpenAgain]:
    opened: list[Trail] = []

    async def open_it(embedder: Embedder | None = None, clock: Clock = clock) -> Trail:
        opened.append(await open_trail(address, clock, embedder, search_memory=search_memory))
        return opened[-1]

    yield open_it
    for each in opened:
        await each.close()


@pytest.fixture
async def trail(open_again: OpenAgain) -> Trail:
    """An empty trail without an embedder."""
    return await open_again()


@pytest.fixture(scope="session")
def wordllama() -> WordLlamaEmbedder:
    """The real default embedder: its weights are loaded once."""
    return WordLlamaEmbedder()


@pytest.fixture
async def meaning(open_again: OpenAgain, wordllama: WordLlamaEmbedder) -> Trail:
    """An empty trail that embeds what is written."""
    return await open_again(wordllama)
