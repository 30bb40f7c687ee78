"""A server whose folder the client chooses, through a client of the Python SDK in the same process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import ListRootsResult, Root

from clew.access import Principal
from clew.adapters.mcp import late_catalog
from clew.adapters.mcp.late_catalog import NOBODY, ClientFolderCatalog, OpenCatalog
from clew.adapters.mcp.server import build_server
from clew.catalog.catalog import Catalog
from clew.catalog.domain import Domain
from clew.errors import NotFound
from clew.tools import tool
from tests.adapters.mcp.catalogs import ME, open_catalog
from tests.servers import PATIENCE

ASK = {"query": "look after the kettle"}


class Watched:
    """A logger's messages; `seen` is set at the first."""

    def __init__(self) -> None:
        self.seen = asyncio.Event()
        self.messages: list[str] = []

    def __call__(self, record: logging.LogRecord) -> bool:
        if record.levelno == logging.ERROR:
            self.messages.append(record.getMessage())
            self.seen.set()
        return True


def kettle_domain(name: str) -> Domain:
    @tool
    async def kettle() -> str:
        """Look after the kettle."""
        return name

    return Domain(name=name, description="The kettle", tools=(kettle,))


@contextlib.asynccontextmanager
async def connected(opens: OpenCatalog, **more: Any) -> AsyncIterator[Client]:
    catalog = ClientFolderCatalog(opens)
    async with (
        catalog.running(),
        Client(build_server(catalog, lambda context: NOBODY), mode="legacy", cache=None, **more) as client,
    ):
        yield client


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(late_catalog, "ROOTS_SECONDS", 0.0)
    watch, log = Watched(), logging.getLogger("clew.mcp")
    log.addFilter(watch)
    yield watch
    log.removeFilter(watch)


@pytest.mark.req("BEY-11")
async def test_a_late_folder_that_cannot_be_opened_leaves_the_open_catalog_in_use(
    tmp_path: Path, watched: Watched
) -> None:
    names = asyncio.Event()

    async def name_roots(context: Any) -> ListRootsResult:
        await names.wait()
        return ListRootsResult(roots=[Root(uri=tmp_path.as_uri())])

    opened: list[Sequence[Path]] = []

    @contextlib.asynccontextmanager
    async def opens(roots: Sequence[Path]) -> AsyncIterator[tuple[Catalog, Principal]]:
        opened.append(roots)
        if roots:
            raise NotFound("folder", str(roots[0]))
        async with open_catalog(tmp_path, kettle_domain("here")) as catalog:
            yield catalog, ME

    async with asyncio.timeout(PATIENCE), connected(opens, list_roots_callback=name_roots) as client:
        assert "here://tools/kettle" in str((await client.call_tool("ask", ASK)).content)
        names.set()
        await watched.seen.wait()
        assert "here://tools/kettle" in str((await client.call_tool("ask", ASK)).content)
    assert "cannot be opened" in watched.messages[0]
    assert opened == [[], [tmp_path]]


async def test_a_request_gets_its_rules_from_the_catalog_that_answered_it(tmp_path: Path, watched: Watched) -> None:
    names, switched = asyncio.Event(), asyncio.Event()

    async def name_roots(context: Any) -> ListRootsResult:
        await names.wait()
        return ListRootsResult(roots=[Root(uri=tmp_path.as_uri())])

    asked: list[tuple[str, str]] = []

    class Recorded(Catalog):
        """A catalog that notes its calls, and whose answer comes after the folder was changed."""

        name = "here"

        async def ask(self, *args: Any, **more: Any) -> Any:
            asked.append((self.name, "ask"))
            names.set()
            await switched.wait()
            return await super().ask(*args, **more)

        async def rules(self, *args: Any, **more: Any) -> str:
            asked.append((self.name, "rules"))
            return await super().rules(*args, **more)

    @contextlib.asynccontextmanager
    async def opens(roots: Sequence[Path]) -> AsyncIterator[tuple[Catalog, Principal]]:
        place = tmp_path / ("late" if roots else "here")
        place.mkdir()
        async with open_catalog(place, kettle_domain(place.name)) as catalog:
            catalog.__class__ = Recorded
            assert isinstance(catalog, Recorded)
            catalog.name = place.name
            if roots:
                asyncio.get_running_loop().call_soon(switched.set)  # after this catalog has replaced the other
            yield catalog, ME

    async with asyncio.timeout(PATIENCE), connected(opens, list_roots_callback=name_roots) as client:
        await client.call_tool("ask", ASK)
        assert asked == [("here", "ask"), ("here", "rules")]
        await client.call_tool("ask", ASK)
        assert asked[2:] == [("late", "ask"), ("late", "rules")]


async def test_a_folder_that_could_not_be_opened_is_tried_again_by_the_next_request(tmp_path: Path) -> None:
    is_mended = asyncio.Event()

    @contextlib.asynccontextmanager
    async def opens(roots: Sequence[Path]) -> AsyncIterator[tuple[Catalog, Principal]]:
        if not is_mended.is_set():
            raise NotFound("folder", "here")
        async with open_catalog(tmp_path, kettle_domain("here")) as catalog:
            yield catalog, ME

    async with asyncio.timeout(PATIENCE), connected(opens) as client:
        assert (await client.call_tool("ask", ASK)).is_error
        is_mended.set()
        assert "here://tools/kettle" in str((await client.call_tool("ask", ASK)).content)
