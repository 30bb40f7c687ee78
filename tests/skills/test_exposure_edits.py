"""Edits of exposure sets: pure functions from items to items, and the history of ended items."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from clew.access import Principal
from clew.errors import HandleRefused, TooLarge
from clew.skills.exposure import (
    MAX_ENDED,
    MAX_HANDLE,
    MAX_ITEMS,
    Exposed,
    Exposure,
    adding,
    apply,
    at_time,
    check_handle,
    is_named,
    mint_handle,
    remove_all,
    without,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def exposed(item: str, **more: object) -> Exposed:
    return Exposed(item=item, via="load", why="", since=NOW, **more)  # type: ignore[arg-type]


def holding(*items: Exposed | str) -> Exposure:
    made = [exposed(each) if isinstance(each, str) else each for each in items]
    return Exposure(handle="h", items={each.item: each for each in made}, version=1)


def test_an_edit_that_changes_nothing_gives_the_very_set() -> None:
    held = holding("a", "b")
    assert apply(held, dict, NOW) is held
    assert apply(held, adding([exposed("a")]), NOW) is held
    assert apply(held, without("c"), NOW) is held
    assert at_time(held, NOW + timedelta(days=9)) is held


def test_adding_keeps_the_order_and_what_is_there() -> None:
    edit = adding([exposed("b", tokens=9), exposed("c"), exposed("d")])
    after = edit({"a": exposed("a"), "b": exposed("b")})
    assert list(after) == ["a", "b", "c", "d"]
    assert after["b"].tokens == 0


def test_an_item_that_is_replaced_has_ended_and_begun_anew() -> None:
    held = holding("skill:a", "skill:b")
    new = exposed("skill:a", tokens=5)
    after = apply(held, lambda items: {**items, "skill:a": new}, NOW, ended_by="ann", reason="whatever")
    assert after.items["skill:a"] == new
    assert [(each.item, each.reason, each.ended_by) for each in after.ended] == [("skill:a", "replaced", "ann")]


def test_several_endings_are_in_the_order_of_the_items() -> None:
    after = apply(holding("skill:c", "skill:a", "skill:b"), remove_all, NOW, ended_by="x", reason="reset")
    assert [each.item for each in after.ended] == ["skill:c", "skill:a", "skill:b"]
    assert {each.until for each in after.ended} == {NOW}
    more = apply(msgspec.structs.replace(after, items={"z": exposed("z")}), remove_all, NOW, reason="again")
    assert [each.reason for each in more.ended] == ["reset", "reset", "reset", "again"]


def test_expiry_counts_from_the_very_moment() -> None:
    held = holding(exposed("skill:a", until=NOW), exposed("skill:b", until=NOW + timedelta(microseconds=1)))
    assert list(at_time(held, NOW - timedelta(microseconds=1)).items) == ["skill:a", "skill:b"]
    after = at_time(held, NOW)
    assert list(after.items) == ["skill:b"]
    (ended,) = after.ended
    assert (ended.item, ended.until, ended.ended_by, ended.reason) == ("skill:a", NOW, "clock", "it expired")


def test_an_edit_does_not_see_what_has_expired() -> None:
    seen: list[str] = []
    held = holding(exposed("skill:a", until=NOW), "skill:b")
    after = apply(held, lambda items: seen.extend(items) or items, NOW, ended_by="ann", reason="r")
    assert seen == ["skill:b"]
    assert [each.reason for each in after.ended] == ["it expired"]


def test_the_memory_of_endings_is_bounded_and_routes_do_not_crowd_out_skills() -> None:
    held = holding(*(f"skill:{at}" for at in range(MAX_ENDED + 5)))
    after = apply(held, remove_all, NOW, reason="reset")
    assert [each.item for each in after.ended] == [f"skill:{at}" for at in range(5, MAX_ENDED + 5)]
    routes = msgspec.structs.replace(after, items=holding(*(f"x://tools/{at}" for at in range(MAX_ENDED + 5))).items)
    last = apply(routes, remove_all, NOW, reason="reset")
    assert len(last.ended) == 2 * MAX_ENDED
    assert last.ended[:MAX_ENDED] == after.ended
    assert last.ended[MAX_ENDED].item == "x://tools/5"


def test_a_set_holds_so_many_items_and_no_more() -> None:
    full = adding(exposed(f"skill:{at}") for at in range(MAX_ITEMS))
    assert len(apply(Exposure(handle="h"), full, NOW).items) == MAX_ITEMS
    held = apply(Exposure(handle="h"), full, NOW)
    with pytest.raises(TooLarge, match=r"^items.*2,001 skills and toolsets in one set"):
        apply(held, adding([exposed("toolset:more")]), NOW)
    with pytest.raises(TooLarge):
        apply(held, adding([exposed("toolset:a"), exposed("x://tools/b")]), NOW)
    assert list(apply(held, adding([exposed("x://tools/b")]), NOW).items) == list(held.items), "a route has no room"


@pytest.mark.parametrize("item", ["skill:a", "toolset:b", "agent:c", "skill:", "skill:a//b", "skill:a:b"])
def test_skills_toolsets_and_agents_have_names(item: str) -> None:
    assert is_named(item)


@pytest.mark.parametrize(
    "item", ["skill://tools/x", "agent://resources/x", "docs://tools/skill:a", "skills:a", "skill"]
)
def test_routes_are_not_named(item: str) -> None:
    assert not is_named(item)


def test_a_handle_of_the_longest_length_is_one() -> None:
    me = Principal(owner_id="acme")
    assert check_handle("x" * MAX_HANDLE, me) == "x" * MAX_HANDLE
    assert check_handle(None, me) is None
    for wrong in ("x" * (MAX_HANDLE + 1), "\ud800", "session:None", "session:"):
        with pytest.raises(HandleRefused):
            check_handle(wrong, me)
    talking = Principal(owner_id="acme", session="s")
    assert check_handle(None, talking) == check_handle("session:s", talking) == "session:s"
    assert check_handle("clew-x", talking) == "clew-x"
    assert mint_handle().startswith("clew-")


def test_the_older_shape_of_an_item_is_read() -> None:
    old = {"item": "a", "via": "ask", "why": "w", "since": "2026-01-01T00:00:00Z", "tokens": 3}
    found = msgspec.convert(old, Exposed, strict=False)
    assert (found.by, found.until, found.tokens) == ("", None, 3)
    assert set(msgspec.to_builtins(exposed("a"))) == {"item", "via", "why", "since"}, "what is not said takes no room"
