"""Patterns are compiled when they are first used, and every one of the program is valid."""

from __future__ import annotations

import importlib
import pkgutil
import re
from typing import Any

import pytest

import clew
from clew.lazy_pattern import _LazyPattern, lazy_pattern


def test_a_pattern_is_compiled_by_its_first_use_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compile = re.compile

    def count(pattern: str, flags: int = 0) -> re.Pattern[str]:
        compiled.append(pattern)
        return compile(pattern, flags)

    monkeypatch.setattr(re, "compile", count)
    pattern = lazy_pattern("(?P<first>a+)b", re.IGNORECASE)
    assert pattern.pattern == "(?P<first>a+)b"
    assert compiled == []
    found = pattern.search("xAAb")
    assert found is not None
    assert found["first"] == "AA"
    assert pattern.sub("-", "ab aab") == "- -"
    assert pattern.fullmatch("AB") is not None
    assert compiled == ["(?P<first>a+)b"]


def test_a_wrong_pattern_fails_at_its_first_use() -> None:
    pattern = lazy_pattern("(")
    with pytest.raises(re.error):
        pattern.search("x")


def _patterns(value: Any) -> list[_LazyPattern]:
    if isinstance(value, _LazyPattern):
        return [value]
    if isinstance(value, (tuple, list, set, frozenset)):
        return [each for inner in value for each in _patterns(inner)]
    return [each for inner in value.values() for each in _patterns(inner)] if isinstance(value, dict) else []


def test_every_pattern_of_the_program_can_be_compiled() -> None:
    names = [each.name for each in pkgutil.walk_packages(clew.__path__, "clew.") if not each.name.endswith("__main__")]
    found = [each for name in names for each in _patterns(dict(vars(importlib.import_module(name))))]
    assert len(found) > 300
    for each in found:
        assert each.groups >= 0
