"""The wiring: what runs while an app is open, and what it leaves behind."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clew.app import App, open_app
from clew.clock import ManualClock
from clew.config import Config, HygieneConfig, WebhookConfig

PATIENCE = 20.0


@pytest.fixture
async def app(tmp_path: Path, clock: ManualClock) -> AsyncIterator[App]:
    async with open_app(Config(folder=tmp_path, hygiene=HygieneConfig(enabled=False)), clock) as opened:
        yield opened


async def test_a_look_for_new_webhooks_leaves_nothing_behind(app: App) -> None:
    async with app.background() as refresh:
        before = asyncio.all_tasks()
        for _ in range(20):
            refresh()
        started = asyncio.all_tasks() - before
        assert len(started) == 20
        traces = [weakref.ref(task) for task in started]
        await asyncio.wait(started, timeout=PATIENCE)
        assert all(task.done() for task in started)
        del started
        gc.collect()
        assert not any(trace() for trace in traces)


async def test_background_work_ends_with_its_context(app: App) -> None:
    before = asyncio.all_tasks()
    async with app.background() as refresh:
        refresh()
        assert asyncio.all_tasks() > before
    assert asyncio.all_tasks() == before


async def test_background_work_that_fails_is_told_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = Config(folder=tmp_path, webhooks=WebhookConfig(allow=("nowhere",)))
    async with open_app(config) as app, app.background() as refresh:
        before = asyncio.all_tasks()
        refresh()
        await asyncio.wait(asyncio.all_tasks() - before, timeout=PATIENCE)
        assert "a background task failed" in caplog.text
        assert "nowhere" in caplog.text
