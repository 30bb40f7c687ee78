"""Freshness by the oldest document."""

from __future__ import annotations

import pytest

from clew.access import Principal
from clew.catalog.domain import Domain
from clew.catalog.indexing.freshness import SourceFreshness, read_freshness
from clew.catalog.indexing.pipeline import run_pipeline
from clew.catalog.resource import DEFAULT_TTL_MS, Pipeline
from clew.clock import ManualClock
from clew.errors import SourceError
from clew.trail.store import Trail
from tests.catalog.sample_domains import FixedFormat, MemorySource, a_domain

HOUR = 3_600_000


async def run(trail: Trail, domain: Domain, me: Principal, clock: ManualClock) -> None:
    await run_pipeline(trail, domain, domain.extractors[0], by=me, clock=clock)


async def freshness(trail: Trail, domain: Domain, me: Principal, clock: ManualClock) -> SourceFreshness:
    return await read_freshness(trail, domain, domain.extractors[0], by=me, clock=clock)


@pytest.mark.req("ERN-16")
def test_an_omitted_ttl_is_four_hours() -> None:
    assert Pipeline(source=MemorySource({}), formats=[]).cache_ttl_ms == DEFAULT_TTL_MS == 14_400_000


@pytest.mark.req("ERN-16")
@pytest.mark.req("ERN-23")
async def test_a_source_is_fresh_until_its_ttl_has_passed(trail: Trail, me: Principal, clock: ManualClock) -> None:
    domain = a_domain(MemorySource({"a": "x"}))
    assert not (await freshness(trail, domain, me, clock)).is_fresh
    await run(trail, domain, me, clock)
    clock.advance(milliseconds=14_399_999)
    found = await freshness(trail, domain, me, clock)
    assert (found.is_fresh, found.age_ms) == (True, 14_399_999)
    clock.advance(milliseconds=1)
    found = await freshness(trail, domain, me, clock)
    assert (found.is_fresh, found.age_ms) == (False, 14_400_000)
    assert found.reason == "its oldest document is older than its TTL"


@pytest.mark.req("ERN-23")
async def test_a_document_that_was_verified_is_as_old_as_the_verification(
    trail: Trail, me: Principal, clock: ManualClock
) -> None:
    domain = a_domain(MemorySource({"a": "x", "b": "y"}))
    await run(trail, domain, me, clock)
    clock.advance(hours=5)
    await run(trail, domain, me, clock)
    assert (await freshness(trail, domain, me, clock)).age_ms == 0


@pytest.mark.req("ERN-23")
async def test_a_document_that_cannot_be_refreshed_keeps_its_age(
    trail: Trail, me: Principal, clock: ManualClock
) -> None:
    source = MemorySource({"a": "x", "b": "y"})
    domain = a_domain(source)
    await run(trail, domain, me, clock)
    source.texts["b"], source.failures["b"] = "changed", SourceError("memory", "is down")
    for hours in (1, 2):
        clock.advance(hours=1)
        await run(trail, domain, me, clock)
        assert (await freshness(trail, domain, me, clock)).age_ms == hours * HOUR
    source.failures.clear()
    await run(trail, domain, me, clock)
    assert (await freshness(trail, domain, me, clock)).age_ms == 0


async def test_a_source_with_a_document_that_was_never_read_is_not_fresh(
    trail: Trail, me: Principal, clock: ManualClock
) -> None:
    source = MemorySource({"a": "x", "b": "y"})
    source.failures["b"] = SourceError("memory", "is down")
    domain = a_domain(source)
    await run(trail, domain, me, clock)
    found = await freshness(trail, domain, me, clock)
    assert (found.is_fresh, found.age_ms, found.reason) == (False, None, "one of its documents could never be read")


async def test_a_document_that_makes_no_sense_does_not_age_its_source(
    trail: Trail, me: Principal, clock: ManualClock
) -> None:
    domain = a_domain(MemorySource({"a": "x", "b": "nonsense"}))
    await run(trail, domain, me, clock)
    assert (await freshness(trail, domain, me, clock)).is_fresh


@pytest.mark.req("ERN-23")
async def test_a_local_source_is_never_fresh(trail: Trail, me: Principal, clock: ManualClock) -> None:
    domain = a_domain(MemorySource({"a": "x"}, is_local=True))
    await run(trail, domain, me, clock)
    assert not (await freshness(trail, domain, me, clock)).is_fresh


@pytest.mark.parametrize(
    "other",
    [{"base_path": "else"}, {"scopes": frozenset({"admin"})}, {"formats": [FixedFormat([])]}, {"cache_ttl_ms": 0}],
    ids=["base path", "scopes", "formats", "ttl"],
)
async def test_a_changed_configuration_ends_freshness(
    trail: Trail, me: Principal, clock: ManualClock, other: dict[str, object]
) -> None:
    source = MemorySource({"a": "x"})
    await run(trail, a_domain(source), me, clock)
    assert (await freshness(trail, a_domain(source), me, clock)).is_fresh
    assert not (await freshness(trail, a_domain(source, **other), me, clock)).is_fresh  # type: ignore[arg-type]


async def test_an_empty_source_is_fresh_too(trail: Trail, me: Principal, clock: ManualClock) -> None:
    domain = a_domain(MemorySource({}))
    await run(trail, domain, me, clock)
    assert (await freshness(trail, domain, me, clock)).is_fresh


@pytest.mark.req("ERN-23")
async def test_a_clock_that_was_set_back_makes_nothing_fresh_for_longer(
    trail: Trail, me: Principal, clock: ManualClock
) -> None:
    domain = a_domain(MemorySource({"a": "x"}))
    await run(trail, domain, me, clock)
    clock.advance(days=-1)
    found = await freshness(trail, domain, me, clock)
    assert (found.is_fresh, found.age_ms) == (False, 0)
    assert found.reason == "its last verification is in the future, because the clock was set back"
    await run(trail, domain, me, clock)
    assert (await freshness(trail, domain, me, clock)).is_fresh
    clock.advance(hours=4)
    assert not (await freshness(trail, domain, me, clock)).is_fresh
