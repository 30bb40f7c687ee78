"""Order, room and sharing: sessions, busy handlers, many workers."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from clew.trail import open_trail
from clew.trail.model.event import Event
from clew.trail.store import Trail
from clew.trail.work.handlers import Worker
from tests.handlers import ANN, PATIENCE, Calls, handler_of, note, run_worker, settled, text_of, until


@pytest.mark.req("SYL-116")
@pytest.mark.req("O8")
async def test_a_slow_session_delays_no_other_and_keeps_its_own_order(trail: Trail) -> None:
    gate = asyncio.Event()
    finished: list[str] = []

    async def act(event: Event) -> None:
        if "session:slow" in event.tags:
            await gate.wait()
        finished.append(text_of(event))

    calls = Calls(act)
    async with run_worker(trail, handler_of(calls), concurrency=4):
        slow = [note(f"slow {number}", "session:slow") for number in range(20)]
        quick = [note(f"quick {number}", f"session:{number % 3}") for number in range(30)]
        await trail.records.create_many([*slow, *quick], by=ANN)
        await until(trail, lambda state: state.pending + state.claimed == 20)

        assert sorted(finished) == sorted(f"quick {number}" for number in range(30))
        for session in range(3):
            of_session = [text for text in finished if int(text.split()[1]) % 3 == session]
            assert of_session == sorted(of_session, key=lambda text: int(text.split()[1]))

        gate.set()
        await settled(trail)

    assert [text for text in finished if text.startswith("slow")] == [f"slow {number}" for number in range(20)]


async def test_no_more_events_are_claimed_than_there_is_room_for(trail: Trail) -> None:
    gate = asyncio.Event()
    running = most = 0

    async def act(event: Event) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await gate.wait()
        running -= 1

    calls = Calls(act)
    async with run_worker(trail, handler_of(calls), concurrency=3):
        await trail.records.create_many([note(str(number)) for number in range(20)], by=ANN)
        for _ in range(3):
            await calls.next()
        assert (await until(trail, lambda state: state.claimed == 3)).pending == 17

        gate.set()
        await settled(trail)

    assert most == 3
    assert len(calls.events) == 20


async def test_a_busy_handler_does_not_keep_another_waiting(trail: Trail) -> None:
    stuck = Calls(lambda event: asyncio.Event().wait())
    quick = Calls()

    async with run_worker(trail, handler_of(stuck, name="stuck"), handler_of(quick, name="quick"), concurrency=2):
        await trail.records.create_many([note(str(number)) for number in range(10)], by=ANN)
        for _ in range(2):
            await stuck.next()
        await settled(trail, "quick")

    assert len(quick.events) == 10
    assert len(stuck.events) == 2


@pytest.mark.req("RCR-28")
async def test_ten_workers_execute_a_thousand_events_a_thousand_times() -> None:
    trail = await open_trail("sqlite://:memory:")
    done: list[int] = []
    finished = asyncio.Event()

    async def act(event: Event) -> None:
        done.append(event.seq)
        if len(done) == 1_000:
            finished.set()

    handler = handler_of(Calls(act))
    workers = [Worker(trail, [handler], by=ANN, worker_id=f"w{number}") for number in range(10)]
    await workers[0].register()
    try:
        async with asyncio.timeout(2 * PATIENCE), asyncio.TaskGroup() as group:
            for worker in workers:
                group.create_task(worker.run())
            for start in range(0, 1_000, 100):
                await trail.records.create_many([note(str(start + at)) for at in range(100)], by=ANN)
            await finished.wait()
            await settled(trail)
            for worker in workers:
                worker.stop()
    finally:
        await trail.close()

    assert len(done) == len(set(done)) == 1_000


@pytest.mark.req("RCR-28")
async def test_workers_on_two_event_loops_share_the_events(trail: Trail) -> None:
    done: list[tuple[int, int]] = []
    begun, both = threading.Barrier(3), threading.Barrier(2, timeout=PATIENCE)

    async def note_loop(event: Event, deps: Any) -> None:
        is_first = threading.get_ident() not in {ident for _, ident in done}
        done.append((event.seq, threading.get_ident()))
        if is_first:
            await asyncio.to_thread(both.wait)  # neither goes on before the other has something to do

    async def work_there() -> None:
        async with run_worker(trail, handler_of(note_loop), worker_id=str(threading.get_ident()), concurrency=1):
            await asyncio.to_thread(begun.wait)
            await asyncio.to_thread(begun.wait)

    threads = [threading.Thread(target=asyncio.run, args=(work_there(),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    await asyncio.to_thread(begun.wait)
    for _ in range(300):
        await trail.records.create(note(), by=ANN)
    await settled(trail)
    await asyncio.to_thread(begun.wait)
    for thread in threads:
        await asyncio.to_thread(thread.join)

    assert sorted(seq for seq, _ in done) == list(range(1, 301))
    assert len({ident for _, ident in done}) == 2
