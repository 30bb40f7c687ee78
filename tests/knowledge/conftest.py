"""A trail as every user has it, set up and with the default embedder; and a folder of a project."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.llm import open_embedder
from clew.trail import open_trail
from clew.trail.bootstrap import bootstrap
from clew.trail.store import Trail
from tests.knowledge.git.repository import Repository


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for complete answers, even on a busy machine."""
    monkeypatch.setattr("clew.knowledge.base.WAIT_SECONDS", 60.0)


@pytest.fixture(scope="session")
def set_up(tmp_path_factory: pytest.TempPathFactory, me: Principal, stranger: Principal) -> Path:
    """The folder of a trail that is set up for both owners, for tests to copy."""
    folder = tmp_path_factory.mktemp("trail")

    async def make() -> None:
        trail = await open_trail(f"sqlite://{folder}/trail.db", ManualClock())
        for owner in (me, stranger):
            await bootstrap(trail, owner)
        await trail.close()

    asyncio.run(make())
    return folder


@pytest.fixture
async def trail(tmp_path: Path, clock: ManualClock, set_up: Path) -> AsyncIterator[Trail]:
    shutil.copytree(set_up, tmp_path, dirs_exist_ok=True)
    opened = await open_trail(f"sqlite://{tmp_path}/trail.db", clock, open_embedder("wordllama"))
    yield opened
    await opened.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")
