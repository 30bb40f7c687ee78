"""Values that were used last."""

from __future__ import annotations

import pytest

from clew.skills.lru_cache import LruCache


@pytest.mark.req("CAR-30")
def test_the_least_recently_used_value_is_evicted_first() -> None:
    kept: LruCache[str, int] = LruCache(2)
    kept.keep("a", 1)
    kept.keep("b", 2)
    assert kept.find("a") == 1
    kept.keep("c", 3)
    assert (kept.find("a"), kept.find("b"), kept.find("c"), len(kept)) == (1, None, 3, 2)
    kept.keep("a", 4)
    kept.keep("d", 5)
    assert (kept.find("a"), kept.find("c"), kept.made) == (4, None, 5)
    kept.clear()
    assert (len(kept), kept.find("a")) == (0, None)


def test_a_value_is_made_once_and_again_after_a_failure() -> None:
    kept: LruCache[str, str] = LruCache(2)
    made = iter(("first", "second"))
    assert kept.find_or_make("a", lambda: next(made)) == "first"
    assert kept.find_or_make("a", lambda: next(made)) == "first"

    def fail() -> str:
        raise ValueError

    with pytest.raises(ValueError):
        kept.find_or_make("b", fail)
    assert len(kept) == 1
    assert kept.find_or_make("b", lambda: next(made)) == "second"


def test_values_with_a_weight_are_kept_up_to_the_limit() -> None:
    kept: LruCache[str, str] = LruCache(10, len)
    kept.keep("a", "xxxx")
    kept.keep("b", "yyyy")
    kept.find("a")
    kept.keep("c", "zzzz")
    assert (kept.find("a"), kept.find("b"), kept.find("c")) == ("xxxx", None, "zzzz")
    assert (len(kept), kept.weight) == (2, 8)
    kept.keep("a", "x")
    assert kept.weight == 5
    kept.keep("d", "w" * 11)
    kept.drop("nothing")
    assert (kept.find("d"), len(kept), kept.weight) == (None, 2, 5)
