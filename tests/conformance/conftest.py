"""Every backend of the trail, opened for the tests of this folder. A new one joins by a line in BACKENDS."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Protocol

import pytest

from clew.clock import Clock, ManualClock
from clew.llm.wordllama import WordLlamaEmbedder
from clew.trail import open_trail
from clew.trail.store import Embedder, Trail


def _sqlite(folder: Path) -> str:
    return f"sqlite://{folder}/trail.db"


BACKENDS: dict[str, Callable[[Path], str]] = {"sqlite": _sqlite}


class OpenAgain(Protocol):
    """Opens the test's trail once more: beside the one that is open, or after it was closed."""

    def __call__(self, embedder: Embedder | None = None, clock: Clock = ...) -> Awaitable[Trail]: ...


@pytest.fixture(params=BACKENDS)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the test's trail is."""
    return BACKENDS[request.param](tmp_path)


@pytest.fixture
async def open_again(address: str, clock: ManualClock) -> AsyncIterator[OpenAgain]:
    opened: list[Trail] = []

    async def open_it(embedder: Embedder | None = None, clock: Clock = clock) -> Trail:
        opened.append(await open_trail(address, clock, embedder))
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
