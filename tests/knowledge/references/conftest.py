"""A trail as every user has it, shelves over it, and a library of one owner."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.knowledge.references.research import Library
from clew.knowledge.searching import Shelves
from clew.knowledge.shelves import CodeShelf, NodeShelf
from clew.llm import open_embedder
from clew.trail import open_trail
from clew.trail.bootstrap import bootstrap
from clew.trail.kinds import NodeDomain
from clew.trail.store import Trail
from tests.knowledge.references.writing import Code


@pytest.fixture
async def trail(tmp_path: Path, clock: ManualClock, me: Principal, stranger: Principal) -> AsyncIterator[Trail]:
    opened = await open_trail(f"sqlite://{tmp_path}/trail.db", clock, open_embedder("wordllama"))
    await bootstrap(opened, me)
    await bootstrap(opened, stranger)
    yield opened
    await opened.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
async def shelves(trail: Trail, me: Principal) -> AsyncIterator[Shelves]:
    history = NodeShelf(trail, NodeDomain.HISTORY, me)
    literature = NodeShelf(trail, NodeDomain.ACADEMIC, me)
    code = CodeShelf(Code({"retry_request": "def retry_request backoff for requests that failed"}))
    yield {NodeDomain.CODE: code, NodeDomain.HISTORY: history, NodeDomain.ACADEMIC: literature}
    await history.close()
    await literature.close()


@pytest.fixture
def library(trail: Trail, clock: ManualClock, me: Principal, shelves: Shelves, root: Path) -> Library:
    return Library(trail, clock, me, shelves, root=root)
