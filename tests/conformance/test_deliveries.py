"""`Deliveries`: each event is handled once per consumer, in order within a session, with any number of workers."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta

import pytest
from msgspec.structs import replace

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import AlreadyExists, InvalidInput, LeaseLost, NotFound
from clew.trail.model.breadcrumb import Change
from clew.trail.model.event import Claim, Consumer, RetryPolicy
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from tests.conformance.conftest import OpenAgain
from tests.conformance.records import (
    PATIENCE,
    claim,
    claim_one,
    draft,
    list_titles,
    make,
    make_all,
    register,
    session,
    succeeds,
    titles,
)

# -- consumers --------------------------------------------------------------------------------------------


async def test_a_new_consumer_begins_with_what_comes_next_or_with_the_oldest(trail: Trail, me: Principal) -> None:
    await make(trail, me, "before")
    await register(trail, me, "now")
    await register(trail, me, "all", start="beginning")
    await make(trail, me, "after")
    assert titles(await claim(trail, me, "now")) == ["after"]
    assert titles(await claim(trail, me, "all")) == ["before", "after"]


async def test_registering_again_changes_the_consumer_and_keeps_its_place(
    trail: Trail, open_again: OpenAgain, me: Principal
) -> None:
    first = await trail.deliveries.register(Consumer(name="c", start="beginning"), by=me)
    await make_all(trail, me, *"ab")
    for each in await claim(trail, me):
        await trail.deliveries.finish(each, [], by=me)
    policy = RetryPolicy(attempts=9)
    wanted = Consumer(name="c", start="beginning", selector=Selector(all_tags=["x"]), retry=policy)
    again = await open_again()
    state = await again.deliveries.register(wanted, by=me)
    assert (state.id, state.consumer, state.cursor) == (first.id, wanted, 2)
    await make(again, me, "c")
    await make(again, me, "d", tags=["x"])
    assert titles(await claim(again, me)) == ["d"]


async def test_consumers_are_listed_by_name_with_where_they_stand(trail: Trail, me: Principal) -> None:
    retry = RetryPolicy(attempts=1)
    for name in ("beta", "alpha"):
        await register(trail, me, name, retry=retry, start="beginning")
    await make_all(trail, me, *"abcd")
    held = await claim(trail, me, "alpha", limit=3)
    await trail.deliveries.fail(held[0], "broken", by=me)
    await trail.deliveries.release(held[1], by=me)
    alpha, beta = await trail.deliveries.consumers(by=me)
    assert (alpha.consumer.name, alpha.cursor) == ("alpha", 4)
    assert (alpha.pending, alpha.claimed, alpha.dead) == (2, 1, 1)
    assert (beta.consumer.name, beta.cursor, beta.pending, beta.claimed, beta.dead) == ("beta", 0, 0, 0, 0)


async def test_an_unregistered_consumer_is_forgotten_with_what_it_had_pending(trail: Trail, me: Principal) -> None:
    await register(trail, me, start="beginning")
    await make(trail, me, "a")
    held = await claim_one(trail, me, "c")
    await trail.deliveries.unregister("c", by=me)
    assert await trail.deliveries.consumers(by=me) == []
    for call in (
        trail.deliveries.unregister("c", by=me),
        trail.deliveries.claim("c", by=me, worker="w"),
        trail.deliveries.due_in("c", by=me),
    ):
        with pytest.raises(NotFound):
            await call
    with pytest.raises((NotFound, LeaseLost)):
        await trail.deliveries.finish(held, [draft("too late")], by=me)
    await register(trail, me)
    assert await claim(trail, me) == []
    assert await list_titles(trail, me) == ["a"]


@pytest.mark.parametrize(
    "consumer",
    [
        Consumer(name=""),
        Consumer(name=" c"),
        Consumer(name="c" * 201),
        Consumer(name="\x00"),
        Consumer(name="\ud83d"),
        Consumer(name="c", retry=RetryPolicy(attempts=0)),
        Consumer(name="c", retry=RetryPolicy(attempts=101)),
        Consumer(name="c", retry=RetryPolicy(backoff=-1)),
        Consumer(name="c", retry=RetryPolicy(backoff=float("nan"))),
        Consumer(name="c", retry=RetryPolicy(backoff_limit=float("inf"))),
        Consumer(name="c", retry=RetryPolicy(deadline=0)),
        Consumer(name="c", selector=Selector(tag_prefix="")),
    ],
)
async def test_a_consumer_that_makes_no_sense_is_refused(trail: Trail, me: Principal, consumer: Consumer) -> None:
    with pytest.raises(InvalidInput):
        await trail.deliveries.register(consumer, by=me)
    assert await trail.deliveries.consumers(by=me) == []


@pytest.mark.parametrize("name", ["a\x00b", "missing"], ids=["nul", "missing"])
async def test_a_name_that_no_consumer_has_is_not_found(trail: Trail, me: Principal, name: str) -> None:
    await register(trail, me)
    await make(trail, me, "a")
    held = replace(await claim_one(trail, me, "c"), consumer=name)
    deliveries = trail.deliveries
    for call in (
        deliveries.claim(name, by=me, worker="w"),
        deliveries.unregister(name, by=me),
        deliveries.due_in(name, by=me),
        deliveries.load(name, by=me),
        deliveries.extend(held, by=me, lease=timedelta(seconds=1)),
        deliveries.release(held, by=me),
        deliveries.finish(held, [], by=me),
        deliveries.fail(held, "broken", by=me),
    ):
        with pytest.raises(NotFound):
            await call
    assert await trail.dead_letters.list(by=me, consumer=name) == []


async def test_only_results_of_lost_claims_are_dropped_from_a_joint_write(trail: Trail, me: Principal) -> None:
    await register(trail, me)
    await make_all(trail, me, *"abc")
    held = await claim(trail, me, limit=3)
    lost = replace(held[1], token="another")
    answers = await asyncio.gather(
        *(trail.deliveries.finish(each, [draft(f"done {each.event.seq}")], by=me) for each in (held[0], lost, held[2])),
        return_exceptions=True,
    )
    assert [type(each) for each in answers] == [list, LeaseLost, list]
    assert await list_titles(trail, me) == ["a", "b", "c", "done 1", "done 3"]


async def test_consumers_of_two_owners_may_share_a_name(trail: Trail, me: Principal, stranger: Principal) -> None:
    await register(trail, me)
    await register(trail, stranger)
    await make(trail, me, "mine")
    await make(trail, stranger, "theirs")
    assert titles(await claim(trail, me)) == ["mine"]
    assert titles(await claim(trail, stranger)) == ["theirs"]
    await trail.deliveries.unregister("c", by=stranger)
    assert len(await trail.deliveries.consumers(by=me)) == 1


# -- claims -----------------------------------------------------------------------------------------------


async def test_a_claim_says_what_is_to_be_done_and_until_when(trail: Trail, me: Principal, clock: ManualClock) -> None:
    await register(trail, me)
    made = await make(trail, me, "a", tags=["x"])
    held = await claim_one(trail, me, "c", lease=timedelta(seconds=7))
    assert (held.consumer, held.attempt, held.lease_until) == ("c", 1, clock.now() + timedelta(seconds=7))
    assert (held.event.type, held.event.seq, held.event.breadcrumb) == ("breadcrumb.created", 1, made)


async def test_a_claimed_event_is_nobody_elses_and_a_finished_one_never_comes_back(
    trail: Trail, open_again: OpenAgain, me: Principal, clock: ManualClock
) -> None:
    other = await open_again()
    await register(trail, me)
    await make(trail, me, "a")
    held = await claim_one(trail, me, "c")
    assert await claim(other, me) == []
    await trail.deliveries.finish(held, [], by=me)
    clock.advance(days=1)
    assert await claim(other, me) == []
    assert await claim(trail, me) == []


@pytest.mark.req("RCR-28")
async def test_each_consumer_handles_each_event_for_itself(trail: Trail, me: Principal) -> None:
    for name in "xy":
        await register(trail, me, name)
    await make(trail, me, "a")
    first, second = await claim_one(trail, me, "x"), await claim_one(trail, me, "y")
    assert (first.event.seq, first.event.breadcrumb) == (second.event.seq, second.event.breadcrumb)
    assert first.key != second.key
    assert first.event.key == first.key


@pytest.mark.req("RCR-28")
@pytest.mark.req("O8")
async def test_ten_workers_on_two_open_trails_execute_a_thousand_events_once_each(
    trail: Trail, open_again: OpenAgain, me: Principal
) -> None:
    await register(trail, me)
    ids = await make_all(trail, me, *(f"Event {number}" for number in range(1_000)))
    executed: Counter[str] = Counter()
    other = await open_again()

    async def work(mine: Trail, worker: str) -> None:
        while held := await mine.deliveries.claim("c", by=me, worker=worker, limit=20):
            for each in held:
                executed[each.event.breadcrumb_id] += 1
            await asyncio.gather(*(mine.deliveries.finish(each, [], by=me) for each in held))

    async with asyncio.timeout(2 * PATIENCE):
        await asyncio.gather(*(work(trail if number % 2 else other, f"w{number}") for number in range(10)))
    assert executed == Counter(ids)
    (state,) = await trail.deliveries.consumers(by=me)
    assert (state.pending, state.claimed, state.dead, state.cursor) == (0, 0, 0, 1_000)


async def test_a_consumer_gets_only_what_its_selector_means(trail: Trail, me: Principal) -> None:
    wanted = Selector(schema_name="tool.request.v1", context_match=[ContextMatch(path="tool", value="grep")])
    await register(trail, me, selector=wanted)
    await make(trail, me, "a", schema_name="tool.request.v1", context={"tool": "grep"})
    await make(trail, me, "b", schema_name="tool.request.v1", context={"tool": "sed"})
    await make(trail, me, "c", context={"tool": "grep"})
    assert titles(await claim(trail, me)) == ["a"]


async def test_a_consumer_far_behind_finds_the_one_event_it_wants(trail: Trail, me: Principal) -> None:
    await register(trail, me, selector=Selector(all_tags=["rare"]))
    await make_all(trail, me, *(f"Noise {number}" for number in range(1_700)))
    await make(trail, me, "needle", tags=["rare"])
    assert titles(await claim(trail, me, limit=1)) == ["needle"]


async def test_a_claim_of_something_that_is_gone_shows_no_breadcrumb(trail: Trail, me: Principal) -> None:
    await register(trail, me)
    made = await make(trail, me, "a")
    await trail.records.delete(made.id, by=me)
    (first,) = await claim(trail, me)
    assert (first.event.type, first.event.breadcrumb) == ("breadcrumb.created", None)
    await trail.deliveries.finish(first, [], by=me)
    assert [each.event.type for each in await claim(trail, me)] == ["breadcrumb.deleted"]


@pytest.mark.parametrize("limit", [0, -1, 1_001])
async def test_an_absurd_limit_is_refused(trail: Trail, me: Principal, limit: int) -> None:
    await register(trail, me)
    with pytest.raises(InvalidInput):
        await trail.deliveries.claim("c", by=me, worker="w", limit=limit)


# -- waiting ----------------------------------------------------------------------------------------------


@pytest.mark.req("O8")
@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "elsewhere"])
async def test_a_claim_that_waits_gets_the_event_that_is_written(
    trail: Trail, open_again: OpenAgain, me: Principal, elsewhere: bool
) -> None:
    writer = await open_again() if elsewhere else trail
    await register(trail, me)
    waiting = [asyncio.ensure_future(wait_for_one(trail, me)) for _ in range(2)]
    await asyncio.sleep(0)
    made = await make(writer, me, "a")
    async with asyncio.timeout(PATIENCE):
        done, (other,) = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert [held.event.breadcrumb for task in done for held in task.result()] == [made]
    other.cancel()
    await asyncio.gather(other, return_exceptions=True)
    (state,) = await trail.deliveries.consumers(by=me)
    assert (state.pending, state.claimed) == (0, 1)


async def wait_for_one(trail: Trail, by: Principal, wait: float = 10 * PATIENCE) -> list[Claim]:
    return await trail.deliveries.claim("c", by=by, worker="w", wait=wait)


async def test_a_claim_that_waits_in_vain_comes_back_empty(trail: Trail, me: Principal) -> None:
    await register(trail, me, selector=Selector(all_tags=["x"]))
    waiting = asyncio.ensure_future(wait_for_one(trail, me, 0.2))
    await make(trail, me, "not meant")
    async with asyncio.timeout(PATIENCE):
        assert await waiting == []
    assert await wait_for_one(trail, me, 0.0) == []  # the write may have come after the wait was over
    (state,) = await trail.deliveries.consumers(by=me)
    assert (state.pending, state.claimed, state.cursor) == (0, 0, 1)


async def test_a_claim_that_waits_gets_what_a_changed_selector_wants(trail: Trail, me: Principal) -> None:
    await register(trail, me, selector=Selector(all_tags=["x"]))
    waiting = asyncio.ensure_future(wait_for_one(trail, me, PATIENCE))
    await make(trail, me, "passed by")
    await register(trail, me, selector=Selector(all_tags=["y"]))
    await make(trail, me, "meant", tags=("y",))
    async with asyncio.timeout(PATIENCE):
        [claim] = await waiting
    assert claim.event.breadcrumb is not None
    assert claim.event.breadcrumb.title == "meant"


async def test_a_worker_cannot_change_an_event_for_others(trail: Trail, me: Principal) -> None:
    await register(trail, me)
    waiting = asyncio.ensure_future(wait_for_one(trail, me, PATIENCE))
    made = await make(trail, me, "shared")
    async with asyncio.timeout(PATIENCE):
        [claim] = await waiting
    assert claim.event.breadcrumb == await trail.records.get(made.id, by=me)
    claim.event.breadcrumb.context["changed"] = True
    assert "changed" not in made.context
    assert "changed" not in (await trail.records.get(made.id, by=me)).context


@pytest.mark.req("SYL-116")
@pytest.mark.parametrize("end", ["finish", "fail", "release"])
async def test_a_claim_that_waits_gets_what_another_worker_lets_go(trail: Trail, me: Principal, end: str) -> None:
    await register(trail, me)
    await session(trail, me, "A", "A1", "A2")
    held = await claim_one(trail, me, "c")
    waiting = asyncio.ensure_future(wait_for_one(trail, me))
    await asyncio.sleep(0)
    match end:
        case "finish":
            await trail.deliveries.finish(held, [], by=me)
        case "fail":
            await trail.deliveries.fail(held, "no", by=me, retry=False)
        case _:
            await trail.deliveries.release(held, by=me)
    async with asyncio.timeout(PATIENCE):
        assert titles(await waiting) == ["A1" if end == "release" else "A2"]


async def test_a_claim_that_waits_for_an_unregistered_consumer_is_reported(trail: Trail, me: Principal) -> None:
    await register(trail, me)
    waiting = asyncio.ensure_future(wait_for_one(trail, me))
    await asyncio.sleep(0)
    await trail.deliveries.unregister("c", by=me)
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(NotFound):
            await waiting


async def test_a_refused_write_beside_a_good_one_does_not_keep_its_event_from_who_waits(
    trail: Trail, me: Principal
) -> None:
    taken = await make(trail, me, "before")
    await register(trail, me)
    for number in range(20):
        waiting = asyncio.ensure_future(wait_for_one(trail, me))
        await asyncio.sleep(0)
        calls = [make(trail, me, "bad", id=taken.id), make(trail, me, str(number)), make(trail, me, "", id="x")]
        await asyncio.gather(*(succeeds(call, AlreadyExists, InvalidInput) for call in calls))
        async with asyncio.timeout(PATIENCE):
            (held,) = await waiting
        assert titles([held]) == [str(number)]
        await trail.deliveries.finish(held, [], by=me)


@pytest.mark.req("RCR-22")
async def test_a_claim_that_is_cancelled_holds_nothing(trail: Trail, me: Principal) -> None:
    """At every stage: before it reads, while it waits, while it is committed."""
    await register(trail, me)
    for delay in range(40):
        waiting = asyncio.ensure_future(wait_for_one(trail, me))
        writing = asyncio.ensure_future(make(trail, me, str(delay)))
        for _ in range(delay):
            await asyncio.sleep(0 if delay % 2 else 0.0002)
        waiting.cancel()
        (got,) = await asyncio.gather(waiting, return_exceptions=True)
        await writing
        held = got if isinstance(got, list) else await claim(trail, me)
        assert [(titles([each]), each.attempt) for each in held] == [([str(delay)], 1)]
        await trail.deliveries.finish(held[0], [], by=me)


# -- order ------------------------------------------------------------------------------------------------


@pytest.mark.req("SYL-116")
@pytest.mark.req("O8")
async def test_events_of_a_session_come_in_order_and_sessions_do_not_wait_for_each_other(
    trail: Trail, me: Principal
) -> None:
    await register(trail, me)
    await session(trail, me, "A", "A1", "A2", "A3")
    await session(trail, me, "B", "B1", "B2")
    held = await claim(trail, me)
    assert titles(held) == ["A1", "B1"]
    await trail.deliveries.finish(held[1], [], by=me)
    assert titles(await claim(trail, me)) == ["B2"]
    await trail.deliveries.finish(held[0], [], by=me)
    assert titles(await claim(trail, me)) == ["A2"]


@pytest.mark.req("SYL-116")
async def test_a_claim_comes_back_empty_while_every_session_is_busy(trail: Trail, me: Principal) -> None:
    await register(trail, me)
    await session(trail, me, "A", "A1", "A2")
    await claim_one(trail, me, "c")
    async with asyncio.timeout(PATIENCE):
        assert await trail.deliveries.claim("c", by=me, worker="other") == []


@pytest.mark.req("SYL-116")
async def test_a_session_that_waits_for_a_retry_keeps_its_order_and_delays_nobody(
    trail: Trail, me: Principal, clock: ManualClock
) -> None:
    await register(trail, me, retry=RetryPolicy(attempts=5, backoff=60.0))
    await session(trail, me, "A", "A1", "A2")
    await trail.deliveries.fail(await claim_one(trail, me, "c"), "slow", by=me)
    await session(trail, me, "B", "B1", "B2")
    assert titles(await claim(trail, me)) == ["B1"]
    clock.advance(seconds=90)
    assert "A1" in titles(await claim(trail, me))


@pytest.mark.req("SYL-116")
async def test_a_long_session_is_handled_in_order_by_any_worker(trail: Trail, me: Principal) -> None:
    await register(trail, me)
    await session(trail, me, "A", *(str(number) for number in range(600)))
    handled: list[str] = []

    async def work(worker: str) -> None:
        while len(handled) < 600:
            for held in await trail.deliveries.claim("c", by=me, worker=worker, limit=5, wait=0.05):
                handled.extend(titles([held]))
                await trail.deliveries.finish(held, [], by=me)

    async with asyncio.timeout(2 * PATIENCE):
        await asyncio.gather(*(work(f"w{number}") for number in range(3)))
    assert handled == [str(number) for number in range(600)]


async def test_versions_of_a_breadcrumb_without_a_session_come_in_order(trail: Trail, me: Principal) -> None:
    await register(trail, me)
    made = await make(trail, me, "a1")
    await trail.records.update(made.id, Change(title="a2"), expect=1, by=me)
    await make(trail, me, "b1")
    held = await claim(trail, me)
    assert titles(held) == ["a1", "b1"]
    await trail.deliveries.finish(held[0], [], by=me)
    assert titles(await claim(trail, me)) == ["a2"]


async def test_a_dead_letter_lets_the_rest_of_its_session_go_on(trail: Trail, me: Principal) -> None:
    await register(trail, me)
    await session(trail, me, "A", "A1", "A2")
    assert await trail.deliveries.fail(await claim_one(trail, me, "c"), "no", by=me, retry=False)
    assert titles(await claim(trail, me)) == ["A2"]


# -- correlation ------------------------------------------------------------------------------------------


@pytest.mark.req("RCR-29")
async def test_a_response_that_arrives_after_a_restart_finds_its_request(
    trail: Trail, open_again: OpenAgain, me: Principal
) -> None:
    request = {"tool": "grep", "request_id": "r-1", "requestedBy": "ann"}
    await register(trail, me, "ann", selector=Selector(schema_name="tool.response.v1"))
    await make(trail, me, "Request", schema_name="tool.request.v1", context=request)
    await trail.close()
    again = await open_again()
    response = {"request_id": "r-1", "status": "ok"}
    await make(again, me, "Response", schema_name="tool.response.v1", context=response)
    (held,) = await claim(again, me, "ann")
    assert held.event.breadcrumb is not None
    answered = held.event.breadcrumb.context["request_id"]
    same = ContextMatch(path="request_id", value=answered)
    assert await list_titles(again, me, schema_name="tool.request.v1", context_match=[same]) == ["Request"]
