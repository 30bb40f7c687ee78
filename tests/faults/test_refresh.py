"""Kill -9 during refreshes, again and again on one file; then one restart must end with exactly the right resources."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from clew.access import Principal
from clew.catalog.domain import Domain
from clew.catalog.indexing.document_nodes import SCHEMA
from clew.catalog.indexing.lifecycle import Lifecycle
from clew.catalog.indexing.pipeline import RefreshPolicy
from clew.catalog.indexing.source_ledger import DOCUMENT_SCHEMA, keeper
from clew.catalog.resource import RawContent
from clew.clock import SystemClock
from clew.trail.bulk import each_record
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.query import SearchRequest
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.catalog.sample_domains import MemorySource, a_domain
from tests.faults.processes import Child, open_at

ME = Principal(owner_id="acme", agent_id="refresher")
ROUNDS = int(os.environ.get("CLEW_FAULT_ROUNDS", "30"))
POLICY = RefreshPolicy(lease_ms=60)
"""A short lease, so that the next process does not wait long for one that was killed."""
SCOPE = "insider"


def texts_of(state: int) -> dict[str, str]:
    """A folder in one of its states: documents come, go, change, grow, shrink and come back as they were."""
    dice = random.Random(state)
    kept = [number for number in range(150) if dice.random() < 0.8]
    return {f"d{number}": text_of(number, dice.randrange(4)) for number in kept}


def text_of(number: int, edition: int) -> str:
    return "\n".join(f"line{line} = word{number} of edition {edition}" for line in range(2 + edition))


def domain_of(state: int) -> Domain:
    scopes = frozenset({SCOPE}) if state % 2 else frozenset[str]()
    return a_domain(MemorySource(texts_of(state), is_local=True), scopes=scopes)


async def refresh_until_killed(channel: Connection, folder: Path, round: int) -> None:
    trail = await open_at(folder)
    channel.send("ready")
    while True:
        for state in (round % 5, round % 5 + 1, round % 5):
            lifecycle = Lifecycle(trail, [domain_of(state)], by=ME, clock=SystemClock(), policy=POLICY)
            await (lifecycle.wipe_and_rebuild() if state == 3 else lifecycle.restart())


@pytest.mark.slow
@pytest.mark.req("ERN-24")
async def test_after_kills_a_restart_ends_with_exactly_the_right_resources(tmp_path: Path) -> None:
    kill_again_and_again(tmp_path)
    trail = await open_at(tmp_path)
    try:
        for state in (2, 1):
            (report,) = await Lifecycle(trail, [domain_of(state)], by=ME, clock=SystemClock()).restart()
            assert (report.outcome, report.error) == ("refreshed", "")
            await check_resources(trail, state)
        assert await trail.upkeep.check() == []
    finally:
        await trail.close()


def kill_again_and_again(folder: Path) -> None:
    moments = random.Random(11)
    for round in range(ROUNDS):
        with Child(refresh_until_killed, folder, round) as child:
            assert child.hear() == "ready"
            time.sleep(moments.uniform(0.02, 0.25))  # the moment of the kill, not a wait for a condition
            child.kill()


async def check_resources(trail: Trail, state: int) -> None:
    """Every node of every document is there once with its content and scopes, and nothing else is."""
    by = keeper(ME, [SCOPE])
    wanted = wanted_of(texts_of(state))
    found = await records(trail, SCHEMA, by)
    assert Counter(each.context["path"] for each in found) == Counter(wanted.keys())
    assert {each.context["path"]: each.context["content"] for each in found} == wanted
    assert {each.scopes for each in found} == {(SCOPE,) if state % 2 else ()}
    books = await records(trail, DOCUMENT_SCHEMA, by)
    assert sorted(each.context["document"] for each in books) == sorted(texts_of(state))
    request = SearchRequest(text="edition", selector=Selector(schema_name=SCHEMA), limit=1_000)
    hits = (await trail.index.search(request, by=by)).hits
    assert {hit.breadcrumb.id for hit in hits} == {each.id for each in found}


def wanted_of(texts: dict[str, str]) -> dict[str, str]:
    wanted = {}
    for document, text in texts.items():
        wanted[document] = text
        lines = (line.partition(" = ") for line in text.splitlines())
        wanted |= {f"{document}/{name}": content for name, _, content in lines}
    return wanted


async def records(trail: Trail, schema_name: str, by: Principal) -> list[Breadcrumb]:
    return [each async for each in each_record(trail, Selector(schema_name=schema_name), by=by)]


@pytest.mark.req("ERN-24")
async def test_two_processes_that_refresh_one_source_neither_lose_nor_double_anything(tmp_path: Path) -> None:
    trail = await open_at(tmp_path)
    try:
        with Child(refresh_once, tmp_path, 4) as one, Child(refresh_once, tmp_path, 4) as other:
            assert (one.hear(), other.hear()) == ("refreshed", "refreshed")
            assert (one.wait(), other.wait()) == (0, 0)
        await check_resources(trail, 4)
        changes, _ = await trail.log.read(0, by=ME, selector=Selector(schema_name=SCHEMA), limit=10_000)
        assert len(changes) == len(wanted_of(texts_of(4))), "both wrote the same"
    finally:
        await trail.close()


class StuckSource(MemorySource):
    """A source that stands still when most of its documents were fetched."""

    async def fetch_content(self, id: str) -> RawContent:
        if len(self.fetched) == 110:
            self.gate = asyncio.Event()
        return await super().fetch_content(id)


async def stick_in_refresh(channel: Connection, folder: Path, state: int) -> None:
    trail, source = await open_at(folder), StuckSource(texts_of(state), is_local=True)
    lifecycle = Lifecycle(trail, [a_domain(source)], by=ME, clock=SystemClock(), policy=RefreshPolicy(lease_ms=2_000))
    running = asyncio.create_task(lifecycle.restart())
    await source.waiting.wait()
    channel.send("stuck")
    await running


@pytest.mark.req("ERN-24")
async def test_a_second_process_completes_the_refresh_of_a_killed_one(
    tmp_path: Path,
) -> None:
    trail = await open_at(tmp_path)
    try:
        with Child(stick_in_refresh, tmp_path, 4) as doomed:
            assert doomed.hear() == "stuck"
            written = await records(trail, SCHEMA, ME)
            assert 0 < len(written) < len(wanted_of(texts_of(4)))
            with Child(refresh_once, tmp_path, 4) as other:
                doomed.kill()
                assert (other.hear(), other.wait()) == ("refreshed", 0)
        await check_resources(trail, 4)
        assert await trail.upkeep.check() == []
    finally:
        await trail.close()


async def refresh_once(channel: Connection, folder: Path, state: int) -> None:
    trail = await open_at(folder)
    (report,) = await Lifecycle(trail, [domain_of(state)], by=ME, clock=SystemClock()).restart()
    channel.send(report.outcome)
    await trail.close()
