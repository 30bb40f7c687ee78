"""One shop for each module of tests: tests here read it and change nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from clew.app import App, open_app
from clew.clock import ManualClock
from clew.config import Config, HygieneConfig
from tests.knowledge.answering.shop import NOW, Shop, make_shop
from tests.knowledge.doors import PATIENCE


@pytest.fixture
def trust_file(trust_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One trust file for this folder of tests: an app outlives a test."""
    path = trust_folder / "answering.json"
    monkeypatch.setenv("CLEW_TRUST", str(path))
    return path


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return make_shop(tmp_path_factory.mktemp("answering") / "shop")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app(shop: Shop, trust_folder: Path) -> AsyncIterator[App]:
    config = Config(folder=shop.root / ".clew", hygiene=HygieneConfig(enabled=False))
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("CLEW_TRUST", str(trust_folder / "answering.json"))
        async with open_app(config, ManualClock(NOW)) as opened:
            await opened.bootstrap()
            opened.knowledge().patience = PATIENCE
            await opened.knowledge().gather()
            yield opened
