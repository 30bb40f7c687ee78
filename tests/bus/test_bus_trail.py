"""A trail on a bus: its notices, and processes that survive the loss of workers and of the bus itself."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from clew.bus.local import LocalBus
from clew.bus.notice import Notice
from clew.bus.trail import BusTrail
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.model.event import Consumer
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.bus.crew import ME, NAME, job_handler, open_on_bus, work
from tests.bus.nats_server import NatsServer
from tests.faults.processes import Child, eventually, is_settled, open_at


def job(session: str = "") -> Draft:
    return Draft(title="Job", schema_name="job.v1", tags=(f"session:{session}",) if session else (), context={})


@pytest.fixture
async def announced(tmp_path: Path) -> AsyncIterator[tuple[Trail, list[Notice]]]:
    """A trail on a bus, and the notices that it sends."""
    bus, notices = LocalBus(), list[Notice]()
    trail = BusTrail(await open_at(tmp_path), bus)
    bus.listen(lambda notice: notices.append(notice) if notice is not None else None)
    yield trail, notices
    await trail.close()


async def test_every_write_is_announced_by_id_schema_and_tags_and_without_its_content(
    announced: tuple[Trail, list[Notice]],
) -> None:
    trail, notices = announced
    made = await trail.records.create(Draft(title="secret", tags=("mine",), context={"key": "secret"}), by=ME)
    changed = await trail.records.update(made.id, Change(title="other"), expect=1, by=ME)
    many = await trail.records.create_many([job(), job()], by=ME)
    await trail.records.update(many[0].id, Change(title="other"), expect=1, by=ME)
    await trail.records.delete(changed.id, by=ME)
    assert [each.id for each in notices] == [made.id, made.id, many[0].id, many[1].id, many[0].id, made.id]
    assert notices[0] == Notice(id=made.id, owner_id="acme", tags=("mine",))
    assert "secret" not in repr(notices)


async def test_the_outputs_of_a_handler_are_announced(announced: tuple[Trail, list[Notice]]) -> None:
    trail, notices = announced
    await trail.deliveries.register(Consumer(name=NAME, selector=Selector(schema_name="job.v1")), by=ME)
    await trail.records.create(job(), by=ME)
    claims = await trail.deliveries.claim(NAME, by=ME, worker="w")
    written = await trail.deliveries.finish(claims[0], [Draft(title="Done", context={})], by=ME)
    assert notices[-1].id == written[0].id


@pytest.mark.req("RCR-22")
async def test_a_record_is_announced_to_the_agents_whose_subscriptions_mean_it(
    announced: tuple[Trail, list[Notice]],
) -> None:
    trail, notices = announced
    for agent, schema in (("writer", "job.v1"), ("reader", "note.v1")):
        consumer = Consumer(name=f"agent/{agent}", selector=Selector(schema_name=schema), agent_id=agent)
        await trail.deliveries.register(consumer, by=ME)

    async def is_known() -> bool:
        await trail.records.create(job(), by=ME)
        return notices[-1].agents == ("writer",)

    await eventually(is_known, "the subscriptions are known")


@pytest.mark.req("RCR-22")
async def test_a_consumer_killed_before_its_acknowledgement_gets_the_event_again(
    nats: NatsServer, tmp_path: Path
) -> None:
    trail = await open_on_bus(tmp_path, nats.url)
    with Child(work, tmp_path, nats.url, True) as stuck:
        assert stuck.hear() == "ready"
        await trail.records.create(job(), by=ME)
        seq = stuck.hear()
        with Child(work, tmp_path, nats.url) as other:
            assert other.hear() == "ready"
            stuck.kill()
            await eventually(lambda: is_settled(trail, NAME, ME), "the job is done")
            other.tell("stop")
            assert other.wait() == 0
    assert [each.tags for each in await outputs(trail)] == [(f"event:{seq}",)]
    await trail.close()


@pytest.mark.req("RCR-22")
@pytest.mark.req("RCR-28")
async def test_work_goes_on_while_the_bus_is_killed_and_nothing_is_lost_or_doubled(
    nats: NatsServer, tmp_path: Path
) -> None:
    trail = await open_on_bus(tmp_path, nats.url)
    await trail.deliveries.register(job_handler().consumer, by=ME)
    jobs = list[str]()
    with ExitStack() as stack:
        crew = [stack.enter_context(Child(work, tmp_path, nats.url)) for _ in range(2)]
        assert [each.hear() for each in crew] == ["ready", "ready"]
        for number in range(60):
            if number % 20 == 10:
                nats.kill()
            elif number % 20 == 0 and number:
                nats.start()
            jobs.append((await trail.records.create(job(f"s{number % 7}"), by=ME)).id)
            await asyncio.sleep(0)
        await eventually(lambda: is_settled(trail, NAME, ME), "all jobs are done")
        for each in crew:
            each.tell("stop")
        assert [each.wait() for each in crew] == [0, 0]
    done = Counter(each.tags[0] for each in await outputs(trail))
    assert len(done) == len(jobs)
    assert set(done.values()) == {1}
    await trail.close()


async def outputs(trail: Trail) -> list[Breadcrumb]:
    return list((await trail.records.list(Selector(schema_name="done.v1"), by=ME, limit=1_000)).items)
