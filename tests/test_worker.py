"""One worker process: its drain."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from clew.app import open_app
from clew.config import Config, HygieneConfig
from clew.worker import WorkerProcess

PATIENCE = 60.0


@pytest.mark.req("RCR-28")
async def test_a_drain_ends_in_time_although_its_record_cannot_be_written(tmp_path: Path) -> None:
    config = Config(folder=tmp_path, hygiene=HygieneConfig(enabled=False))
    async with asyncio.timeout(PATIENCE), open_app(config) as app:
        worker = WorkerProcess(app, frozenset({"hygiene"}))
        async with worker._records._writing:  # as during a write that does not return
            assert await worker.drain(0.05)
            assert worker.is_draining
