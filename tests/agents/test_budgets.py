from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.access import Principal
from clew.agents.budgets.budget import AgentBudget, Amount, BudgetLimits, read_limits
from clew.agents.budgets.budget_tree import Budgets
from clew.agents.runs.stop_records import stop_for_budget, stopped_draft
from clew.clock import ManualClock, SystemClock
from clew.errors import BudgetExceeded, InvalidInput, NotFound
from clew.trail import open_trail
from clew.trail.bootstrap import bootstrap, read_pieces
from clew.trail.model.flow import Flow, shipped_flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

ME = Principal(owner_id="acme", agent_id="ann")
FLOW = shipped_flow(read_pieces())


@pytest.fixture
def budgets(trail: Trail, flow: Flow, clock: ManualClock) -> Budgets:
    return Budgets(trail, flow, clock)


def tokens(count: int) -> Amount:
    return Amount(tokens=count, calls=1)


@pytest.mark.req("BEY-09")
async def test_reservations_and_settlements_add_up_within_the_limit(budgets: Budgets) -> None:
    await budgets.open("run", BudgetLimits(tokens=100), by=ME)
    first = await budgets.reserve("run", "a", tokens(60), by=ME)
    with pytest.raises(BudgetExceeded, match="has no tokens left") as refused:
        await budgets.reserve("run", "b", tokens(60), by=ME)
    await budgets.settle(first, tokens(30), by=ME)
    await budgets.reserve("run", "b", tokens(60), by=ME)

    assert (refused.value.budget, refused.value.limit) == ("run", "tokens")
    assert "60 of 100" in refused.value.hint
    assert await budgets.remaining("run", by=ME) == BudgetLimits(tokens=10)


@pytest.mark.req("BEY-09")
async def test_a_call_may_take_what_is_left_where_that_is_enough(budgets: Budgets) -> None:
    await budgets.open("run", BudgetLimits(tokens=100), by=ME)

    most = await budgets.reserve("run", "a", tokens(500), by=ME, least=tokens(50))

    assert most.amount.tokens == 100
    with pytest.raises(BudgetExceeded):
        await budgets.reserve("run", "b", tokens(500), by=ME, least=tokens(1))


@pytest.mark.req("BEY-09")
async def test_the_same_key_reserves_once_and_is_settled_once(budgets: Budgets) -> None:
    await budgets.open("run", BudgetLimits(tokens=100), by=ME)
    first = await budgets.reserve("run", "a", tokens(60), by=ME)
    again = await budgets.reserve("run", "a", tokens(90), by=ME)
    await budgets.settle(first, tokens(50), by=ME)
    await budgets.settle(again, tokens(50), by=ME)

    assert again == first
    assert (await budgets.get("run", by=ME)).spent == tokens(50)


@pytest.mark.req("BEY-09")
async def test_a_child_gets_no_more_than_its_parent_has_and_gives_back_what_it_did_not_use(budgets: Budgets) -> None:
    await budgets.open("parent", BudgetLimits(tokens=100, money=1.0, calls=10, children=3), by=ME)
    with pytest.raises(BudgetExceeded, match="no tokens left"):
        await budgets.lend("parent", "greedy", BudgetLimits(tokens=101), by=ME)
    child = await budgets.lend("parent", "child", BudgetLimits(tokens=70, money=0.5, calls=5, children=0), by=ME)
    assert child.limits == BudgetLimits(tokens=70, money=0.5, calls=5, children=0)
    assert await budgets.remaining("parent", by=ME) == BudgetLimits(tokens=30, money=0.5, calls=5, children=2)

    spent = await budgets.reserve("child", "a", tokens(40), by=ME)
    await budgets.settle(spent, Amount(tokens=25, money=0.1, calls=1), by=ME)
    with pytest.raises(BudgetExceeded):
        await budgets.lend("child", "grandchild", BudgetLimits(tokens=1), by=ME)
    await budgets.close("child", by=ME)
    await budgets.close("child", by=ME)

    assert await budgets.remaining("parent", by=ME) == BudgetLimits(tokens=75, money=0.9, calls=9, children=2)


async def test_a_child_that_asks_for_nothing_special_gets_what_is_left_and_shares_the_deadline(
    budgets: Budgets, clock: ManualClock
) -> None:
    await budgets.open("parent", BudgetLimits(tokens=100, seconds=60, children=2), by=ME)
    clock.advance(seconds=20)
    child = await budgets.lend("parent", "child", BudgetLimits(seconds=500), by=ME)

    assert child.limits == BudgetLimits(tokens=100, seconds=40, children=1)
    clock.advance(seconds=40)
    with pytest.raises(BudgetExceeded, match="no seconds left"):
        await budgets.reserve("child", "a", Amount(calls=1), by=ME)
    with pytest.raises(BudgetExceeded, match="no seconds left"):
        await budgets.reserve("parent", "a", Amount(calls=1), by=ME)


async def test_the_same_child_is_lent_to_once_also_when_it_was_closed(budgets: Budgets) -> None:
    await budgets.open("parent", BudgetLimits(tokens=100, children=5), by=ME)
    for _ in range(3):
        await budgets.lend("parent", "child", BudgetLimits(tokens=40), by=ME)
    await budgets.close("child", by=ME)
    ended = await budgets.lend("parent", "child", BudgetLimits(tokens=40), by=ME)

    assert ended.is_closed
    assert await budgets.remaining("parent", by=ME) == BudgetLimits(tokens=100, children=4)
    with pytest.raises(BudgetExceeded, match="child is closed"):
        await budgets.reserve("child", "a", Amount(calls=1), by=ME)


async def test_closing_a_parent_closes_its_children_and_counts_what_was_never_settled(budgets: Budgets) -> None:
    await budgets.open("root", BudgetLimits(tokens=100), by=ME)
    await budgets.lend("root", "child", BudgetLimits(tokens=60), by=ME)
    await budgets.lend("child", "grandchild", BudgetLimits(tokens=30), by=ME)
    await budgets.reserve("grandchild", "lost", tokens(20), by=ME)
    done = await budgets.reserve("child", "done", tokens(10), by=ME)
    await budgets.settle(done, tokens(5), by=ME)

    ended = await budgets.close("root", by=ME)

    assert ended.spent.tokens == 25
    assert (await budgets.get("grandchild", by=ME)).is_closed


async def test_after_a_crash_between_lending_and_making_the_child_nothing_is_lost(
    trail: Trail, budgets: Budgets
) -> None:
    await budgets.open("root", BudgetLimits(tokens=100, children=2), by=ME)
    await budgets.lend("root", "child", BudgetLimits(tokens=60), by=ME)
    [page] = [await trail.records.list(Selector(schema_name=FLOW.budget, all_tags=("budget:child",)), by=ME)]
    await trail.records.delete(page.items[0].id, by=ME)

    again = await budgets.lend("root", "child", BudgetLimits(tokens=60), by=ME)
    assert again.limits.tokens == 60
    assert await budgets.remaining("root", by=ME) == BudgetLimits(tokens=40, children=0)

    await trail.records.delete(page.items[0].id, by=ME)
    ended = await budgets.close("root", by=ME)
    assert (ended.lent, ended.spent.tokens) == ({}, 0)


async def test_a_root_can_be_extended_and_a_child_cannot(budgets: Budgets) -> None:
    await budgets.open("root", BudgetLimits(tokens=10), by=ME)
    with pytest.raises(BudgetExceeded):
        await budgets.reserve("root", "a", tokens(20), by=ME)
    await budgets.extend("root", BudgetLimits(tokens=30), by=ME)
    await budgets.reserve("root", "a", tokens(20), by=ME)
    await budgets.lend("root", "child", BudgetLimits(tokens=5), by=ME)

    with pytest.raises(InvalidInput, match="got its amount from root"):
        await budgets.extend("child", BudgetLimits(tokens=500), by=ME)


async def test_opening_again_counts_the_newest_limits_and_owners_have_budgets_of_their_own(
    budgets: Budgets, stranger: Principal
) -> None:
    await budgets.open("run", BudgetLimits(tokens=10), by=ME, session="s1")
    await budgets.settle(await budgets.reserve("run", "a", tokens(10), by=ME), tokens(10), by=ME)
    again = await budgets.open("run", BudgetLimits(tokens=999), by=ME)

    assert again.limits == BudgetLimits(tokens=999)
    assert (await budgets.remaining("run", by=ME)).tokens == 989
    with pytest.raises(NotFound):
        await budgets.get("run", by=stranger)
    with pytest.raises(NotFound):
        await budgets.reserve("none", "a", tokens(1), by=ME)
    with pytest.raises(NotFound):
        await budgets.lend("none", "child", BudgetLimits(), by=ME)


@pytest.mark.req("BEY-09")
async def test_many_reservers_at_once_never_spend_more_than_the_limit(budgets: Budgets) -> None:
    await budgets.open("run", BudgetLimits(tokens=1_000, calls=100), by=ME)

    async def call(number: int) -> int:
        size = 5 + number % 40
        try:
            held = await budgets.reserve("run", f"call {number}", tokens(size), by=ME)
        except BudgetExceeded:
            return 0
        await budgets.settle(held, tokens(size), by=ME)
        return size

    spent = sum(await asyncio.gather(*(call(number) for number in range(120))))

    left = await budgets.remaining("run", by=ME)
    assert left.tokens is not None
    assert spent == 1_000 - left.tokens
    assert spent <= 1_000
    assert left.tokens < 45


calls = st.lists(
    st.tuples(st.sampled_from(("root", "a", "b", "a1")), st.integers(0, 60), st.integers(0, 120), st.booleans()),
    max_size=25,
)


@pytest.mark.req("BEY-09")
@settings(max_examples=20)
@given(calls=calls, lent=st.tuples(st.integers(0, 100), st.integers(0, 100), st.integers(0, 100)))
def test_the_root_of_any_tree_is_overspent_by_at_most_one_call(
    calls: list[tuple[str, int, int, bool]], lent: tuple[int, int, int]
) -> None:
    """Calls in flight side by side, some never settled; at most one of them takes more than it reserved."""

    async def live() -> None:
        trail = await open_trail("sqlite://:memory:", ManualClock())
        budgets = Budgets(trail, FLOW, ManualClock())
        await budgets.open("root", BudgetLimits(tokens=200), by=ME)
        for child, parent, limit in zip(("a", "b", "a1"), ("root", "root", "a"), lent, strict=True):
            try:
                await budgets.lend(parent, child, BudgetLimits(tokens=limit), by=ME)
            except (BudgetExceeded, NotFound):
                continue
        excess = 0

        async def call(number: int, name: str, most: int, taken: int, settles: bool) -> None:
            nonlocal excess
            try:
                held = await budgets.reserve(name, str(number), tokens(most), by=ME)
            except (BudgetExceeded, NotFound):
                return
            if settles:
                over = taken - most if taken > most and excess == 0 else 0
                excess = excess or max(over, 0)
                await budgets.settle(held, tokens(min(taken, most) + over), by=ME)

        await asyncio.gather(*(call(number, *each) for number, each in enumerate(calls)))
        ended = await budgets.close("root", by=ME)
        await trail.close()
        assert ended.spent.tokens <= 200 + excess
        assert ended.lent == ended.reserved == {}

    asyncio.run(live())


def _spend(address: str, worker: int) -> None:
    async def live() -> None:
        trail = await open_trail(address, SystemClock())
        budgets = Budgets(trail, FLOW, SystemClock())
        for number in range(40):
            try:
                held = await budgets.reserve("shared", f"{worker}/{number}", tokens(7), by=ME)
            except BudgetExceeded:
                break
            await budgets.settle(held, tokens(7), by=ME)
        await trail.close()

    asyncio.run(live())


@pytest.mark.req("BEY-09")
async def test_processes_that_share_a_budget_stay_within_it_together(tmp_path: Path) -> None:
    address = f"sqlite://{tmp_path}/shared.db"
    trail = await open_trail(address, SystemClock())
    await bootstrap(trail, ME)
    budgets = Budgets(trail, FLOW, SystemClock())
    await budgets.open("shared", BudgetLimits(tokens=300), by=ME)
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_spend, args=(address, each)) for each in range(3)]
    for each in workers:
        each.start()
    for each in workers:
        await asyncio.to_thread(each.join, 60)
    spent = (await budgets.get("shared", by=ME)).spent
    await trail.close()

    assert [each.exitcode for each in workers] == [0, 0, 0]
    assert (spent.tokens, spent.calls) == (294, 42)


def _die_in_a_call(address: str) -> None:
    async def live() -> None:
        trail = await open_trail(address, SystemClock())
        await Budgets(trail, FLOW, SystemClock()).reserve("run", "call", tokens(80), by=ME)
        os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(live())


@pytest.mark.req("BEY-09")
async def test_a_process_that_was_killed_in_the_middle_of_a_call_leaves_a_reservation_that_its_key_finds_again(
    tmp_path: Path,
) -> None:
    address = f"sqlite://{tmp_path}/dead.db"
    trail = await open_trail(address, SystemClock())
    await bootstrap(trail, ME)
    budgets = Budgets(trail, FLOW, SystemClock())
    await budgets.open("run", BudgetLimits(tokens=100), by=ME)
    victim = multiprocessing.get_context("spawn").Process(target=_die_in_a_call, args=(address,))
    victim.start()
    await asyncio.to_thread(victim.join, 60)

    with pytest.raises(BudgetExceeded):
        await budgets.reserve("run", "another", tokens(80), by=ME)
    again = await budgets.reserve("run", "call", tokens(90), by=ME)
    await budgets.settle(again, tokens(20), by=ME)
    left = await budgets.remaining("run", by=ME)
    await trail.close()

    assert victim.exitcode == -signal.SIGKILL
    assert (again.amount, left) == (tokens(80), BudgetLimits(tokens=80))


@pytest.mark.req("BEY-09")
async def test_stopping_leaves_a_breadcrumb_that_says_why_and_how_to_go_on(
    trail: Trail, budgets: Budgets, flow: Flow
) -> None:
    await budgets.open("run", BudgetLimits(money=0.5), by=ME)
    with pytest.raises(BudgetExceeded) as refused:
        await budgets.reserve("run", "a", Amount(money=0.75), by=ME)

    draft = stopped_draft(flow, stop_for_budget(refused.value), agent="assistant", tags=("session:s1", "run:x"))
    found = await trail.records.create(draft, by=ME)

    assert found.schema_name == flow.stopped
    assert (found.context["why"], found.session) == ("budget", "s1")
    assert "money" in found.context["detail"]
    assert "higher limit of money" in found.context["how_to_go_on"]


async def test_sums_of_money_leave_no_dust(budgets: Budgets) -> None:
    await budgets.open("run", BudgetLimits(money=0.3), by=ME)
    for key in ("a", "b", "c"):
        held = await budgets.reserve("run", key, Amount(money=0.1), by=ME)
        await budgets.settle(held, Amount(money=0.1), by=ME)

    assert (await budgets.remaining("run", by=ME)).money == 0


@pytest.mark.parametrize("wrong", [{"tokens": -1}, {"money": "much"}, {"wishes": 3}, {"seconds": float("nan")}])
def test_limits_that_are_none_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        read_limits(wrong)


def test_a_budget_without_limits_has_no_end(clock: ManualClock) -> None:
    budget = AgentBudget(name="free", started_at=clock.now() - timedelta(days=400))

    assert budget.left(clock.now()) == BudgetLimits() == read_limits(None)
    with pytest.raises(InvalidInput):
        Amount(tokens=-1)
