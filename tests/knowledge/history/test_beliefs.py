"""The belief ledger: the facts that were valid at a moment, as known at another."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import AccessDenied, InvalidInput, NotFound
from clew.knowledge.history.beliefs import Belief, BeliefFact, BeliefLedger, BeliefStanding, relate, settle
from clew.knowledge.history.entries import Category
from clew.knowledge.history.journal import Chronicle
from clew.trail.store import Trail

JAN, FEB, MAR = (datetime(2024, month, 1, tzinfo=UTC) for month in (1, 2, 3))


@pytest.fixture
def ledger(trail: Trail, me: Principal, clock: ManualClock) -> BeliefLedger:
    return BeliefLedger(trail, me, clock)


def fact(value: str, **more: object) -> BeliefFact:
    told = {"subject": "shop", "attribute": "timeout", "value": value, "source": "docs", **more}
    return BeliefFact(**told)  # type: ignore[arg-type]  # each test gives the fields that it needs


def values(standing: list[BeliefStanding]) -> list[str]:
    return [each.belief.fact.value for each in standing]


@pytest.mark.req("BEY-05")
async def test_both_times_are_asked_for_apart(ledger: BeliefLedger, clock: ManualClock) -> None:
    await ledger.add(fact("10 s", valid_from=JAN))
    known_first = clock.now()
    clock.advance(days=1)
    await ledger.add(fact("20 s", valid_from=MAR))

    async def asked(valid: datetime, recorded: datetime | None = None) -> list[str]:
        return values(await ledger.as_of(valid, recorded, subject="Shop", attribute="Timeout"))

    assert await asked(FEB) == ["10 s"]
    assert await asked(MAR) == ["20 s"]
    assert await asked(MAR, known_first) == ["10 s"]
    assert await asked(JAN - timedelta(days=1)) == []
    assert await asked(MAR, known_first - timedelta(seconds=1)) == []
    [first, second] = await ledger.history("shop")
    assert (first.valid_to, first.retired_by, second.valid_to) == (MAR, second.belief.id, None)


@pytest.mark.req("BEY-05")
async def test_sources_that_disagree_stay_open_and_visible(ledger: BeliefLedger) -> None:
    docs = await ledger.add(fact("10 s", valid_from=JAN))
    code = await ledger.add(fact("20 s", source="code", valid_from=FEB))

    standing = await ledger.as_of(MAR)
    assert values(standing) == ["10 s", "20 s"]
    assert [each.disagrees_with for each in standing] == [(code.id,), (docs.id,)]
    assert [each.retired_by for each in standing] == [None, None]


@pytest.mark.req("BEY-05")
async def test_only_explicit_evidence_retires(ledger: BeliefLedger) -> None:
    old = await ledger.add(fact("10 s", trust=10))
    await ledger.add(fact("20 s", source="code", trust=100))
    assert all(each.disagrees_with for each in await ledger.as_of())
    await ledger.add(fact("30 s", source="mail", supersedes=(old.id,), valid_from=FEB))
    assert values(await ledger.as_of(MAR)) == ["20 s", "30 s"]
    assert values(await ledger.as_of(JAN)) == ["10 s", "20 s"]
    with pytest.raises(NotFound):
        await ledger.add(fact("40 s", supersedes=("00000000-0000-0000-0000-000000000000",)))


@pytest.mark.req("BEY-05")
@pytest.mark.parametrize(
    ("one", "other", "relation"),
    [
        (fact("1e1"), fact("10.0", source="code"), "same"),
        (fact("10 s", version="1.0"), fact("20 s", version="1.1"), "superseded"),
        (fact("10 s", version="1.10"), fact("20 s", version="1.9"), "supersedes"),
        (fact("10 s", version="2.0rc1"), fact("20 s", version="2.0"), "superseded"),
        (fact("10 s", version="2.0", valid_from=JAN), fact("20 s", version="1.9.9", valid_from=MAR), "supersedes"),
        (fact("10 s", version="2.0"), fact("20 s", version="2.0.0"), "contradicts"),
        (fact("10 s", version="main"), fact("20 s", version="next"), "contradicts"),
        (fact("10 s", valid_from=JAN), fact("20 s", valid_from=FEB), "superseded"),
        (fact("10 s", valid_from=JAN), fact("20 s", valid_from=FEB, source="code"), "contradicts"),
        (fact("10 s", valid_from=JAN, valid_to=FEB), fact("20 s", valid_from=FEB, source="code"), "unrelated"),
        (fact("10 s"), fact("20 s", condition="on Windows"), "unrelated"),
        (fact("10 s"), fact("20 s", subject="shop.cart"), "unrelated"),
        (fact("10 s"), fact("20 s", attribute="read timeout"), "unrelated"),
        (fact("3.8", many=True), fact("3.9", many=True), "unrelated"),
        (fact("3.8", many=True), fact("3.8", many=True, holds=False, source="code"), "contradicts"),
        (fact("3.8", many=True, version="1"), fact("3.8", many=True, holds=False, version="2"), "superseded"),
    ],
)
def test_how_two_facts_stand_to_each_other(one: BeliefFact, other: BeliefFact, relation: str) -> None:
    first, second = (Belief(id=id, fact=told, recorded_at=JAN) for id, told in (("a", one), ("b", other)))
    mirrored = {"supersedes": "superseded", "superseded": "supersedes"}
    assert relate(first, second) == relation
    assert relate(second, first) == mirrored.get(relation, relation)


FACTS = st.builds(
    BeliefFact,
    subject=st.just("shop"),
    attribute=st.just("timeout"),
    value=st.sampled_from(["1", "2", "3"]),
    holds=st.booleans(),
    source=st.sampled_from(["docs", "code"]),
    version=st.sampled_from(["", "1.0", "1.1", "2.0rc1", "main"]),
    valid_from=st.sampled_from([None, JAN, FEB, MAR]),
)


@pytest.mark.req("BEY-05")
@given(st.lists(FACTS, max_size=6), st.randoms())
def test_the_order_of_recording_decides_nothing(facts: list[BeliefFact], chance: object) -> None:
    beliefs = [Belief(id=str(at), fact=each, recorded_at=JAN) for at, each in enumerate(facts)]
    shuffled = beliefs[:]
    chance.shuffle(shuffled)  # type: ignore[attr-defined]  # it is a Random
    settled = {each.belief.id: (each.valid_to, each.retired_by) for each in settle(beliefs)}
    assert {each.belief.id: (each.valid_to, each.retired_by) for each in settle(shuffled)} == settled
    assert len(settled) == len(facts)


@pytest.mark.req("BEY-05")
async def test_facts_do_not_change_free_text(
    ledger: BeliefLedger, trail: Trail, me: Principal, clock: ManualClock
) -> None:
    chronicle = Chronicle(trail, me, "s1", clock)
    note = await chronicle.store("The timeout of the shop is 10 s, and I like it", Category.USER_VOICE)
    old = await ledger.add(fact("10 s", version="1.0"))
    await ledger.add(fact("20 s", version="2.0"))
    await ledger.retract(old.id, "it was never so")
    assert await chronicle.query() == [note]


@pytest.mark.req("BEY-05")
async def test_a_retraction_leaves_the_past_answerable(ledger: BeliefLedger, clock: ManualClock) -> None:
    wrong = await ledger.add(fact("10 s"))
    clock.advance(days=1)
    before = clock.now()
    clock.advance(days=1)
    await ledger.retract(wrong.id, "a typing mistake")
    assert await ledger.as_of() == []
    assert values(await ledger.as_of(recorded_by=before)) == ["10 s"]
    clock.advance(days=1)
    again = await ledger.add(fact("10 s"))
    assert again.id != wrong.id
    assert values(await ledger.as_of()) == ["10 s"]
    with pytest.raises(InvalidInput):
        await ledger.retract(again.id, " ")


@pytest.mark.req("BEY-05")
async def test_nothing_shows_through_from_out_of_sight(trail: Trail, stranger: Principal, clock: ManualClock) -> None:
    insider = Principal(owner_id="acme", agent_id="ann", scopes=frozenset({"hidden"}))
    outsider = Principal(owner_id="acme", agent_id="bob", roles=frozenset({"emitter", "subscriber"}))
    inside, outside = (BeliefLedger(trail, who, clock) for who in (insider, outsider))
    public = await inside.add(fact("10 s", version="1"))
    hidden = await inside.add(fact("20 s", version="2"), scopes=["hidden"])
    await inside.add(fact("30 s", source="code"), scopes=["hidden"])

    assert values(await inside.as_of()) == ["20 s", "30 s"]
    assert all(each.disagrees_with for each in await inside.as_of())
    assert values(await outside.as_of()) == ["10 s"]
    assert [(each.retired_by, each.disagrees_with) for each in await outside.history("shop")] == [(None, ())]
    with pytest.raises(NotFound):
        await outside.retract(hidden.id, "no")
    with pytest.raises(NotFound):
        await outside.add(fact("40 s", supersedes=(hidden.id,)))
    with pytest.raises(AccessDenied):
        await outside.add(fact("50 s"), scopes=["hidden"])

    theirs = BeliefLedger(trail, stranger, clock)
    await theirs.add(fact("60 s", version="9"))
    assert values(await theirs.as_of()) == ["60 s"]
    assert values(await outside.as_of()) == ["10 s"]
    with pytest.raises(NotFound):
        await theirs.retract(public.id, "no")


async def test_the_same_fact_from_the_same_place_is_recorded_once(ledger: BeliefLedger, clock: ManualClock) -> None:
    first = await ledger.add(fact("10 s", cite="docs/a.md:3"))
    clock.advance(days=1)
    assert await ledger.add(fact("10 s", cite="docs/a.md:3")) == first
    assert (await ledger.add(fact("10 s", cite="docs/a.md:4"))).id != first.id


@pytest.mark.parametrize(
    "wrong",
    [
        fact("x", subject=" "),
        fact(""),
        fact("x", source=" "),
        fact("x", trust=101),
        fact("x", valid_from=datetime(2024, 1, 1)),  # that is what is tried
        fact("x", valid_from=FEB, valid_to=JAN),
        fact("x" * 30_000),
    ],
)
async def test_a_fact_that_cannot_be_is_refused(ledger: BeliefLedger, wrong: BeliefFact) -> None:
    with pytest.raises(InvalidInput):
        await ledger.add(wrong)


async def test_keys_are_masked_wherever_a_fact_has_them(ledger: BeliefLedger) -> None:
    key = "ghp_" + "a1" * 18
    told = await ledger.add(fact("x", source=f"https://bob:{key}@host/", cite=key, condition=key, version=key))
    assert key not in str(told)


@pytest.mark.parametrize("field", ["condition", "cite"])
async def test_provenance_is_bounded(ledger: BeliefLedger, field: str) -> None:
    with pytest.raises(InvalidInput, match="over 2,000 characters"):
        await ledger.add(fact("x", **{field: "y" * 2_001}))


async def test_a_moment_without_a_time_zone_is_refused(ledger: BeliefLedger) -> None:
    await ledger.add(fact("10 s"))
    with pytest.raises(InvalidInput, match="as_of: must carry a time zone"):
        await ledger.as_of(datetime(2024, 1, 1))
    with pytest.raises(InvalidInput, match="recorded_by: must carry a time zone"):
        await ledger.as_of(None, datetime(2024, 1, 1))
