"""Shelves over a trail, and a library of one owner."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.knowledge.documents.research import Library
from clew.knowledge.searching import Shelves
from clew.knowledge.shelves import CodeShelf, NodeShelf
from clew.trail.kinds import NodeDomain
from clew.trail.store import Trail
from tests.knowledge.code_in_memory import Code


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
