from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import AccessDenied, InvalidInput, LeaseLost, StorageFull
from clew.trail import claims, open_trail
from clew.trail.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.claims import describe, printable
from clew.trail.event import Claim, Consumer, ConsumerState, Event, RetryPolicy
from clew.trail.handlers import Handler, Worker, handles
from clew.trail.selector import EVERYTHING, ContextMatch, Selector
from clew.trail.store import Trail

ANN = Principal(owner_id="ann")
NOTES = Selector(schema_name="note.v1")
LONG = timedelta(seconds=30)


def note(text: str = "hello", *tags: str) -> Draft:
    return Draft(title="Note", schema_name="note.v1", tags=tags, context={"text": text})


def text_of(event: Event) -> str:
    assert event.breadcrumb is not None
    return str(event.breadcrumb.context["text"])


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def trail(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Trail]:
    trail = await open_trail(f"sqlite://{tmp_path}/trail.db", clock)
    yield trail
    await trail.close()


class Calls:
    """A handler function that remembers its events and does what a test wants."""

    def __init__(self, act: Callable[[Event], Any] = lambda event: None) -> None:
        self._act = act
        self.events: list[Event] = []
        self.queue: asyncio.Queue[Event] = asyncio.Queue()

    async def __call__(self, event: Event, deps: Any) -> Sequence[Draft] | None:
        self.events.append(event)
        self.queue.put_nowait(event)
        result = self._act(event)
        return await result if asyncio.iscoroutine(result) else result

    async def next(self) -> Event:
        async with asyncio.timeout(5):
            return await self.queue.get()


def handler_of(function: Any, selector: Selector = NOTES, **options: Any) -> Handler:
    return handles(selector, **{"name": "reader", **options})(function)


@asynccontextmanager
async def working(trail: Trail, *handlers: Handler, worker_id: str = "w1", **options: Any) -> AsyncIterator[Worker]:
    worker = Worker(trail, handlers, by=ANN, worker_id=worker_id, **options)
    await worker.register()
    running = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        async with asyncio.timeout(5):
            await running


async def until(
    trail: Trail, holds: Callable[[ConsumerState], bool], name: str = "reader", by: Principal = ANN
) -> ConsumerState:
    async with asyncio.timeout(5):
        while True:
            for state in await trail.deliveries.consumers(by=by):
                if state.consumer.name == name and holds(state):
                    return state


async def settled(trail: Trail, name: str = "reader") -> ConsumerState:
    """The consumer once it has looked at everything and has nothing to do."""
    head = await trail.log.head()
    return await until(trail, lambda state: state.cursor >= head and state.pending + state.claimed == 0, name)


async def texts(trail: Trail, schema_name: str) -> list[str]:
    page = await trail.records.list(Selector(schema_name=schema_name), by=ANN, limit=1000, oldest_first=True)
    return [str(found.context["text"]) for found in page.items]


# -- from event to outputs ----------------------------------------------------------------------------------


async def test_a_handler_turns_an_event_into_breadcrumbs(trail: Trail) -> None:
    @handles(NOTES)
    async def shout(event: Event, deps: dict[str, str]) -> list[Draft]:
        tags = event.breadcrumb.session_tags if event.breadcrumb else ()
        return [
            Draft(
                title="Shout",
                schema_name="shout.v1",
                tags=tags,
                context={"text": text_of(event).upper() + deps["end"]},
            )
        ]

    async with working(trail, shout, deps={"end": "!"}):
        await trail.records.create(note("hello", "session:s1"), by=ANN)
        await settled(trail, "shout")

    [shouted] = (await trail.records.list(Selector(schema_name="shout.v1"), by=ANN)).items
    assert shouted.context == {"text": "HELLO!"}
    assert shouted.session == "s1"


def test_a_handler_is_named_after_its_function_unless_told_otherwise() -> None:
    async def tidy(event: Event, deps: None) -> None:
        return None

    assert handles(NOTES)(tidy).name == "tidy"
    assert handles(NOTES, name="other")(tidy).name == "other"
    assert handles(NOTES, name="other")(tidy).consumer == Consumer(name="other", selector=NOTES)


async def test_two_handlers_of_one_name_are_refused(trail: Trail) -> None:
    with pytest.raises(InvalidInput, match="reader"):
        Worker(trail, [handler_of(Calls()), handler_of(Calls())], by=ANN, worker_id="w1")


async def test_a_caller_that_may_not_subscribe_cannot_run_a_worker(trail: Trail) -> None:
    emitter = Principal(owner_id="ann", roles=frozenset({"emitter"}))

    with pytest.raises(AccessDenied):
        await Worker(trail, [handler_of(Calls())], by=emitter, worker_id="w1").run()


async def test_a_handler_that_starts_at_the_beginning_sees_what_was_there_before(trail: Trail) -> None:
    await trail.records.create(note("old"), by=ANN)
    everything, news = Calls(), Calls()

    async with working(trail, handler_of(everything, name="all", start="beginning"), handler_of(news, name="news")):
        await trail.records.create(note("new"), by=ANN)
        await settled(trail, "all")
        await settled(trail, "news")

    assert [text_of(event) for event in everything.events] == ["old", "new"]
    assert [text_of(event) for event in news.events] == ["new"]


async def test_outputs_can_trigger_further_handlers(trail: Trail) -> None:
    @handles(NOTES)
    async def first(event: Event, deps: None) -> list[Draft]:
        return [Draft(title="Step", schema_name="step.v1", context={"text": text_of(event) + ">1"})]

    @handles(Selector(schema_name="step.v1"))
    async def second(event: Event, deps: None) -> list[Draft]:
        return [Draft(title="End", schema_name="end.v1", context={"text": text_of(event) + ">2"})]

    async with working(trail, first, second):
        await trail.records.create(note("go"), by=ANN)
        async with asyncio.timeout(5):
            while not (ends := await texts(trail, "end.v1")):
                pass

    assert ends == ["go>1>2"]


# -- the second look ----------------------------------------------------------------------------------------


@pytest.mark.req("RCR-23")
async def test_an_event_that_the_selector_does_not_mean_is_acknowledged_without_running(trail: Trail) -> None:
    calls = Calls()
    narrow = Selector(schema_name="note.v1", context_match=(ContextMatch(path="text", value="mine"),))

    async with working(trail, handler_of(calls, narrow)):
        await trail.deliveries.register(Consumer(name="reader", selector=EVERYTHING), by=ANN)
        await trail.records.create(note("not mine"), by=ANN)
        await trail.records.create(Draft(title="Other", schema_name="other.v1", context={"text": "mine"}), by=ANN)
        await trail.records.create(note("mine"), by=ANN)
        state = await settled(trail)

    assert [text_of(event) for event in calls.events] == ["mine"]
    assert state.dead == 0


async def test_an_event_whose_breadcrumb_is_gone_is_acknowledged_without_running(trail: Trail) -> None:
    calls = Calls()
    handler = handler_of(calls)
    await Worker(trail, [handler], by=ANN, worker_id="w0").register()
    gone = await trail.records.create(note("gone"), by=ANN)
    await trail.records.delete(gone.id, by=ANN)
    await trail.records.create(note("here"), by=ANN)

    async with working(trail, handler):
        await settled(trail)

    assert [text_of(event) for event in calls.events] == ["here"]


async def test_deletions_come_to_those_who_ask_for_them(trail: Trail) -> None:
    calls = Calls()

    async with working(trail, handler_of(calls, types=("breadcrumb.deleted",))):
        written = await trail.records.create(note(), by=ANN)
        await trail.records.delete(written.id, by=ANN)
        await trail.records.create(Draft(title="Other", schema_name="other.v1", context={}), by=ANN)
        await settled(trail)

    assert [(event.type, event.breadcrumb_id) for event in calls.events] == [("breadcrumb.deleted", written.id)]


async def test_a_handler_sees_the_version_that_the_change_made(trail: Trail) -> None:
    calls = Calls()
    handler = handler_of(calls)
    await Worker(trail, [handler], by=ANN, worker_id="w0").register()
    written = await trail.records.create(note("one"), by=ANN)
    await trail.records.update(written.id, Change(context={"text": "two"}), expect=1, by=ANN)

    async with working(trail, handler):
        await settled(trail)

    assert [(event.type, event.version, text_of(event)) for event in calls.events] == [
        ("breadcrumb.created", 1, "one"),
        ("breadcrumb.updated", 2, "two"),
    ]


# -- failure ------------------------------------------------------------------------------------------------


async def pass_time(trail: Trail, clock: ManualClock, **amount: float) -> None:
    """Move the clock once nothing is under way. Workers look at it when anything is written."""
    await until(trail, lambda state: state.claimed == 0)
    clock.advance(**amount)
    await trail.records.create(Draft(title="Tick", schema_name="tick.v1", context={}), by=ANN)


@pytest.mark.req("SYL-112")
async def test_a_passing_failure_succeeds_on_a_later_attempt_and_writes_once(trail: Trail, clock: ManualClock) -> None:
    def act(event: Event) -> list[Draft]:
        if len(calls.events) < 3:
            raise ConnectionError("not yet")
        return [Draft(title="Done", schema_name="done.v1", context={"text": "done"})]

    calls = Calls(act)
    async with working(trail, handler_of(calls, retry=RetryPolicy(attempts=3))):
        await trail.records.create(note(), by=ANN)
        for _ in range(2):
            await calls.next()
            await pass_time(trail, clock, hours=1)
        await calls.next()
        state = await settled(trail)

    assert len({event.seq for event in calls.events}) == 1
    assert (len(calls.events), state.dead) == (3, 0)
    assert await texts(trail, "done.v1") == ["done"]


@pytest.mark.req("SYL-112")
async def test_a_failed_event_is_not_tried_before_its_backoff(trail: Trail, clock: ManualClock) -> None:
    calls = Calls(fail_with(ValueError("no")))

    async with working(trail, handler_of(calls, retry=RetryPolicy(backoff=100.0))):
        await trail.records.create(note("a"), by=ANN)
        await calls.next()
        await pass_time(trail, clock, seconds=70)
        await trail.records.create(note("b"), by=ANN)
        assert text_of(await calls.next()) == "b"
        await pass_time(trail, clock, seconds=60)
        assert text_of(await calls.next()) == "a"


def fail_with(error: BaseException) -> Callable[[Event], Any]:
    def act(event: Event) -> None:
        raise error

    return act


@pytest.mark.req("SYL-113")
@pytest.mark.req("O16")
async def test_an_exhausted_event_is_a_dead_letter_with_its_reason_and_is_replayed_once(
    trail: Trail, clock: ManualClock
) -> None:
    broken = True

    def act(event: Event) -> list[Draft]:
        if broken:
            raise RuntimeError("the pump\nis broken \x1b[31m")
        return [Draft(title="Done", schema_name="done.v1", context={"text": text_of(event)})]

    calls = Calls(act)
    async with working(trail, handler_of(calls, retry=RetryPolicy(attempts=2))):
        await trail.records.create(note("x"), by=ANN)
        await calls.next()
        await pass_time(trail, clock, hours=1)
        await calls.next()
        await until(trail, lambda state: state.dead == 1)
        [letter] = await trail.dead_letters.list(by=ANN)
        assert (letter.attempts, letter.reason) == (2, "RuntimeError: the pump is broken [31m")

        broken = False
        await trail.dead_letters.replay(letter.id, by=ANN)
        await calls.next()
        state = await settled(trail)

    assert state.dead == 0
    assert await texts(trail, "done.v1") == ["x"]


@pytest.mark.req("SYL-112")
async def test_nothing_is_tried_after_the_deadline(trail: Trail, clock: ManualClock) -> None:
    calls = Calls(fail_with(ValueError("no")))
    policy = RetryPolicy(attempts=50, backoff=10.0, deadline=60.0)

    async with working(trail, handler_of(calls, retry=policy)):
        await trail.records.create(note(), by=ANN)
        await calls.next()
        await pass_time(trail, clock, seconds=61)
        await until(trail, lambda state: state.dead == 1)

    assert len(calls.events) == 1


async def test_a_run_longer_than_the_deadline_fails(trail: Trail) -> None:
    calls = Calls(lambda event: asyncio.Event().wait())

    async with working(trail, handler_of(calls, retry=RetryPolicy(attempts=1, deadline=0.05))):
        await trail.records.create(note(), by=ANN)
        await until(trail, lambda state: state.dead == 1)

    [letter] = await trail.dead_letters.list(by=ANN)
    assert "TimeoutError" in letter.reason


@pytest.mark.parametrize(
    "outputs",
    [
        "not drafts",
        [{"title": "no draft"}],
        [Draft(title="", context={})],
        [Draft(title="ok", context={"half": "\ud800"})],
        17,
    ],
)
async def test_outputs_that_cannot_be_written_are_a_failure_of_the_handler(trail: Trail, outputs: Any) -> None:
    calls = Calls(lambda event: outputs)

    async with working(trail, handler_of(calls, retry=RetryPolicy(attempts=1))):
        await trail.records.create(note(), by=ANN)
        await until(trail, lambda state: state.dead == 1)

    assert len(calls.events) == 1
    assert (await trail.upkeep.stats(by=ANN)).breadcrumbs == 1


async def test_one_bad_output_keeps_the_good_ones_from_being_written(trail: Trail) -> None:
    calls = Calls(lambda event: [Draft(title="good", schema_name="out.v1", context={}), Draft(title="", context={})])

    async with working(trail, handler_of(calls, retry=RetryPolicy(attempts=1))):
        await trail.records.create(note(), by=ANN)
        await until(trail, lambda state: state.dead == 1)

    assert (await trail.records.list(Selector(schema_name="out.v1"), by=ANN)).items == ()


async def test_a_handler_that_cancels_itself_has_failed(trail: Trail) -> None:
    calls = Calls(fail_with(asyncio.CancelledError()))

    async with working(trail, handler_of(calls, retry=RetryPolicy(attempts=1))):
        await trail.records.create(note(), by=ANN)
        await until(trail, lambda state: state.dead == 1)

    assert len(calls.events) == 1


async def test_an_unregistered_handler_registers_again(trail: Trail) -> None:
    calls = Calls()

    async with working(trail, handler_of(calls)):
        await trail.records.create(note("1"), by=ANN)
        await calls.next()
        await settled(trail)
        await trail.deliveries.unregister("reader", by=ANN)
        await until(trail, lambda state: True)
        await trail.records.create(note("2"), by=ANN)
        await calls.next()

    assert [text_of(event) for event in calls.events] == ["1", "2"]


class Faulty:
    """The deliveries of a trail one of whose methods fails at first."""

    def __init__(self, deliveries: Any, method: str, failures: int) -> None:
        self._deliveries = deliveries
        self._method = method
        self.failures = failures

    def __getattr__(self, name: str) -> Any:
        return self._fail_first if name == self._method else getattr(self._deliveries, name)

    async def _fail_first(self, *args: Any, **options: Any) -> Any:
        if self.failures:
            self.failures -= 1
            raise StorageFull("no space left")
        return await getattr(self._deliveries, self._method)(*args, **options)


@pytest.mark.parametrize("method", ["register", "claim"])
async def test_a_failing_storage_is_waited_out_and_said(
    trail: Trail, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    monkeypatch.setattr(claims, "PAUSE_AFTER_FAILURE", 0.0)
    calls, faulty = Calls(), Faulty(trail.deliveries, method, 3)
    handler = handler_of(calls, start="beginning")
    monkeypatch.setattr(trail, "deliveries", faulty)
    running = asyncio.create_task((worker := Worker(trail, [handler], by=ANN, worker_id="w1")).run())

    await trail.records.create(note(), by=ANN)
    await calls.next()
    worker.stop()
    await running

    assert faulty.failures == 0
    assert caplog.text.count("reader: no space left") == 3


async def test_a_worker_that_waits_for_its_storage_can_be_stopped(
    trail: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trail, "deliveries", Faulty(trail.deliveries, "register", 1_000_000))
    worker = Worker(trail, [handler_of(Calls())], by=ANN, worker_id="w1")
    running = asyncio.create_task(worker.run())
    await asyncio.sleep(0)
    worker.stop()
    async with asyncio.timeout(5):
        await running


def test_a_reason_is_one_short_printable_line() -> None:
    assert describe(ValueError("a\nb\x00c")) == "ValueError: a b c"
    assert describe(KeyError()) == "KeyError"
    assert describe(InvalidInput("title", "is empty")) == "title: is empty"
    assert len(describe(ValueError("x" * 10_000_000))) == 300
    assert printable("\u202etxt\u2028 €", 10) == "txt €"
    assert printable("abcdef", 3) == "ab…"


# -- order, room and sharing --------------------------------------------------------------------------------


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
    async with working(trail, handler_of(calls), concurrency=4):
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
    async with working(trail, handler_of(calls), concurrency=3):
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

    async with working(trail, handler_of(stuck, name="stuck"), handler_of(quick, name="quick"), concurrency=2):
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
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
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
    begun = threading.Barrier(3)

    async def note_loop(event: Event, deps: Any) -> None:
        done.append((event.seq, threading.get_ident()))

    async def work_there() -> None:
        async with working(trail, handler_of(note_loop), worker_id=str(threading.get_ident()), concurrency=1):
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


# -- leases -------------------------------------------------------------------------------------------------


@pytest.mark.req("RCR-22")
@pytest.mark.req("RCR-28")
async def test_a_consumer_killed_before_it_acknowledged_gets_the_event_again(
    tmp_path: Path, clock: ManualClock
) -> None:
    handler = handler_of(calls := Calls(lambda event: [Draft(title="D", schema_name="d.v1", context={"text": "d"})]))
    trail = await open_trail(f"sqlite://{tmp_path}/killed.db", clock)
    await Worker(trail, [handler], by=ANN, worker_id="w0").register()
    await trail.records.create(note("accepted"), by=ANN)
    [claim] = await trail.deliveries.claim("reader", by=ANN, worker="killed", lease=LONG)
    await trail.close()

    trail = await open_trail(f"sqlite://{tmp_path}/killed.db", clock)
    try:
        async with working(trail, handler):
            await trail.records.create(note("next"), by=ANN)
            assert text_of(await calls.next()) == "next"
            clock.advance(seconds=31)
            await trail.records.create(Draft(title="Tick", schema_name="tick.v1", context={}), by=ANN)
            again = await calls.next()
            await settled(trail)

        assert again.seq == claim.event.seq
        assert await texts(trail, "d.v1") == ["d", "d"]
    finally:
        await trail.close()


@pytest.mark.req("RCR-28")
async def test_a_claim_is_renewed_while_its_handler_runs(trail: Trail, clock: ManualClock) -> None:
    gate = asyncio.Event()

    async def act(event: Event) -> None:
        await gate.wait()

    calls = Calls(act)

    async def left() -> float:
        await trail.deliveries.consumers(by=ANN)  # reads in another thread: the heartbeat gets its turn
        due = await trail.deliveries.due_in("reader", by=ANN)
        assert due is not None
        return due

    async with working(trail, handler_of(calls), lease=timedelta(seconds=0.06)):
        await trail.records.create(note(), by=ANN)
        await calls.next()
        for _ in range(4):
            clock.advance(seconds=0.05)
            async with asyncio.timeout(5):
                while await left() < 0.05:
                    pass
        assert await trail.deliveries.claim("reader", by=ANN, worker="other", lease=LONG) == []
        gate.set()
        await settled(trail)

    assert len(calls.events) == 1


@pytest.mark.req("RCR-28")
async def test_the_result_of_a_lost_claim_is_dropped(trail: Trail, clock: ManualClock) -> None:
    gate = asyncio.Event()

    async def act(event: Event) -> list[Draft]:
        await gate.wait()
        return [Draft(title="Out", schema_name="out.v1", context={"text": "too late"})]

    calls = Calls(act)
    async with working(trail, handler_of(calls), concurrency=1, lease=LONG):
        await trail.records.create(note(), by=ANN)
        await calls.next()
        clock.advance(seconds=31)
        [claim] = await trail.deliveries.claim("reader", by=ANN, worker="other", lease=LONG)
        gate.set()
        await trail.deliveries.finish(
            claim, [Draft(title="Out", schema_name="out.v1", context={"text": "in time"})], by=ANN
        )
        state = await settled(trail)

    assert await texts(trail, "out.v1") == ["in time"]
    assert (state.dead, len(calls.events)) == (0, 1)


@pytest.mark.req("RCR-28")
async def test_work_on_a_lost_claim_is_stopped_by_the_heartbeat(trail: Trail, clock: ManualClock) -> None:
    stopped = asyncio.Event()

    async def act(event: Event) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    calls = Calls(act)
    async with working(trail, handler_of(calls), concurrency=1, lease=timedelta(seconds=0.06)):
        await trail.records.create(note(), by=ANN)
        await calls.next()
        async with asyncio.timeout(5):
            taken: list[Claim] = []
            while not taken:
                clock.advance(seconds=1)
                taken = await trail.deliveries.claim("reader", by=ANN, worker="other", lease=LONG)
            await stopped.wait()
        await trail.deliveries.finish(taken[0], (), by=ANN)
        await settled(trail)

    assert len(calls.events) == 1


class SlowAnswer:
    """Deliveries whose `finish` has committed but not answered when the heartbeat comes by."""

    def __init__(self, deliveries: Any) -> None:
        self._deliveries = deliveries
        self.refused = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._deliveries, name)

    async def finish(self, claim: Claim, outputs: Sequence[Draft], *, by: Principal) -> list[Breadcrumb]:
        made: list[Breadcrumb] = await self._deliveries.finish(claim, outputs, by=by)
        await self.refused.wait()
        return made

    async def extend(self, claim: Claim, **options: Any) -> Any:
        try:
            return await self._deliveries.extend(claim, **options)
        except LeaseLost:
            self.refused.set()
            raise


async def test_a_heartbeat_that_comes_after_the_end_says_nothing(
    trail: Trail, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    calls, slow = Calls(), SlowAnswer(trail.deliveries)
    monkeypatch.setattr(trail, "deliveries", slow)

    async with working(trail, handler_of(calls), lease=timedelta(seconds=0.06)):
        await trail.records.create(note(), by=ANN)
        await calls.next()
        async with asyncio.timeout(5):
            await slow.refused.wait()
        await settled(trail)

    assert caplog.text == ""


@pytest.mark.req("RCR-22")
async def test_a_stopped_worker_gives_its_events_back_at_once(trail: Trail) -> None:
    first = Calls(lambda event: asyncio.Event().wait())
    second = Calls()

    async with working(trail, handler_of(first)):
        await trail.records.create(note(), by=ANN)
        event = await first.next()
    async with working(trail, handler_of(second), worker_id="w2"):
        again = await second.next()
        state = await settled(trail)

    assert again.seq == event.seq
    assert state.dead == 0


async def test_a_cancelled_worker_gives_its_events_back_too(trail: Trail) -> None:
    calls = Calls(lambda event: asyncio.Event().wait())
    worker = Worker(trail, [handler_of(calls)], by=ANN, worker_id="w1")
    await worker.register()
    running = asyncio.create_task(worker.run())
    await trail.records.create(note(), by=ANN)
    event = await calls.next()

    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    [claim] = await trail.deliveries.claim("reader", by=ANN, worker="w2", lease=LONG)

    assert running.cancelled()
    assert claim.event.seq == event.seq


async def test_a_worker_without_handlers_runs_until_it_is_stopped(trail: Trail) -> None:
    async with working(trail):
        await trail.records.create(note(), by=ANN)


async def test_an_event_wakes_the_worker_without_any_clock_moving(trail: Trail) -> None:
    calls = Calls()

    async with working(trail, handler_of(calls)):
        for number in range(20):
            written: Breadcrumb = await trail.records.create(note(str(number)), by=ANN)
            assert (await calls.next()).breadcrumb_id == written.id
