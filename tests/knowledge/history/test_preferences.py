"""Preferences of the user, with their confidence."""

from __future__ import annotations

import asyncio

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import InvalidInput
from clew.knowledge.history.lessons import UserPreferences
from clew.trail.store import Trail


@pytest.fixture
def preferences(trail: Trail, me: Principal, clock: ManualClock) -> UserPreferences:
    return UserPreferences(trail, me, clock, "s1")


@pytest.mark.req("SYL-106")
async def test_confidence_follows_what_is_accepted_and_rejected(
    preferences: UserPreferences, clock: ManualClock
) -> None:
    async def learn(response: str, value: str = "early return") -> float:
        clock.advance(minutes=1)
        told = await preferences.learn("error_handling", value, response)  # type: ignore[arg-type]  # they are such
        return told.implicit["error_handling"].confidence

    rising = [await learn("accepted") for _ in range(6)]
    assert rising == [0.6, 0.7, 0.8, 0.9, 1.0, 1.0]
    falling = [await learn("rejected") for _ in range(6)]
    assert falling == [0.8, 0.6, 0.4, 0.2, 0.0, 0.0]
    assert (await preferences.get_preferences()).effective("error_handling") is None

    inferred = (await preferences.get_preferences("error_handling")).implicit["error_handling"]
    assert (inferred.evidence, inferred.observed_at) == (("accepted: early return",) * 6, clock.now())
    assert await learn("rejected", "exceptions") == 0.0
    assert await learn("accepted", "exceptions") == 0.6


@pytest.mark.req("SYL-106")
async def test_rejecting_what_was_never_accepted_teaches_nothing(preferences: UserPreferences) -> None:
    assert (await preferences.learn("naming", "short", "rejected")).implicit == {}


@pytest.mark.req("SYL-106", "O17")
async def test_override_wins_over_explicit_over_implicit(
    preferences: UserPreferences, trail: Trail, me: Principal, clock: ManualClock
) -> None:
    await preferences.learn("style", "spaces", "accepted")
    assert (await preferences.get_preferences()).effective("style") == "spaces"
    await preferences.set_preference("style", "tabs")
    assert (await preferences.get_preferences()).effective("style") == "tabs"
    await preferences.set_preference("style", "none at all", for_session=True)

    told = await preferences.get_preferences()
    assert told.effective("style") == "none at all"
    assert (told.explicit, told.session_overrides) == ({"style": "tabs"}, {"style": "none at all"})
    assert told.implicit["style"].value == "spaces"
    other = await UserPreferences(trail, me, clock, "s2").get_preferences()
    assert (other.effective("style"), other.session_overrides) == ("tabs", {})


@pytest.mark.req("SYL-106")
async def test_one_category_can_be_asked_for(preferences: UserPreferences) -> None:
    await preferences.set_preference("testing", "few and whole")
    await preferences.set_preference("testing", "many and small")
    await preferences.set_preference("framework", "none")
    assert (await preferences.get_preferences("testing")).explicit == {"testing": "many and small"}
    assert len((await preferences.get_preferences("all")).explicit) == 2
    assert (await preferences.get_preferences("colour")).effective("colour") is None


async def test_answers_at_the_same_time_are_all_learned(preferences: UserPreferences) -> None:
    await asyncio.gather(*(preferences.learn("style", "spaces", "accepted") for _ in range(4)))
    assert (await preferences.get_preferences()).implicit["style"].confidence == 0.9


async def test_owners_do_not_share_preferences(
    preferences: UserPreferences, trail: Trail, stranger: Principal, clock: ManualClock
) -> None:
    await preferences.set_preference("style", "tabs")
    assert (await UserPreferences(trail, stranger, clock, "s1").get_preferences()).explicit == {}


async def test_empty_preferences_are_refused(preferences: UserPreferences, trail: Trail, me: Principal) -> None:
    for category, value in (("", "x"), ("x", " ")):
        with pytest.raises(InvalidInput):
            await preferences.set_preference(category, value)
    with pytest.raises(InvalidInput, match="needs a session"):
        await UserPreferences(trail, me, ManualClock()).set_preference("x", "y", for_session=True)
