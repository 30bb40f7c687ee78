"""Indexing before answers: its progress, and work that is done only once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.knowledge import base
from clew.knowledge.base import PARTIAL, Knowledge, open_knowledge
from clew.trail.store import Trail
from tests.knowledge.code.repositories import make_repository

FILES = {"src/retry.py": "def backoff(attempt):\n    return 2**attempt\n"}
WHERE = "where is backoff"


@pytest.fixture
async def knowledge(trail: Trail, clock: ManualClock, me: Principal, tmp_path: Path) -> AsyncIterator[Knowledge]:
    root = make_repository(tmp_path / "shop", FILES)
    found = open_knowledge(trail, clock, tmp_path, root, me, None)
    yield found
    await found.close()


async def read_documents() -> list[str]:
    return ["read"]


async def never() -> list[str]:
    await asyncio.Event().wait()
    return []


@pytest.mark.req("BEY-11")
async def test_answers_are_complete_again_after_a_slow_pass(
    knowledge: Knowledge, me: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as hurried:
        hurried.setattr(base, "BRIEF_SECONDS", 0.0)
        hurried.setattr(base, "FEW_FILES", 0)
        assert await knowledge.gather_briefly(never) is None
    assert PARTIAL in (await knowledge.answer(WHERE, me)).notes

    assert await knowledge.gather_briefly(read_documents) == ["read"]
    assert PARTIAL not in (await knowledge.answer(WHERE, me)).notes


@pytest.mark.req("BEY-11")
async def test_documents_count_as_read_where_only_the_commits_take_too_long(
    knowledge: Knowledge, me: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "BRIEF_SECONDS", 0.0)
    monkeypatch.setattr("clew.knowledge.git.commits.QUICK", 0)
    assert await knowledge.gather_briefly(read_documents) == ["read"]
    assert PARTIAL in (await knowledge.answer(WHERE, me)).notes
