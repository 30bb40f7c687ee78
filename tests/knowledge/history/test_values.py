"""Equal values in different spellings, and the order of versions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.knowledge.git.log import version_key
from clew.knowledge.history.beliefs import normal_name, normal_value


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1e-4", "0.0001"),
        ("1", "1.0"),
        ("10_000", "10,000"),
        (".5", "0.50"),
        ("'auto'", '"auto"'),
        ("``auto``", "auto"),
        ("True", "true"),
        ("None", "null"),
        ("(0, 1)", "(0,1)"),
        ("['a', 'b']", '["a","b"]'),
    ],
)
def test_values_that_are_the_same(one: str, other: str) -> None:
    assert normal_value(one) == normal_value(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1e-4", "1e-3"),
        ("'1'", "'l'"),
        ("auto", "Auto_"),
        ("None", "0"),
        ("False", "0"),
        ("(0, 1)", "(1, 0)"),
        ("3.8", "3.10"),
        (">=3.8", "3.8"),
    ],
)
def test_values_that_are_not(one: str, other: str) -> None:
    assert normal_value(one) != normal_value(other)


@pytest.mark.parametrize(
    "written", [">=3.8", "3.8+", "3.8 or newer", "3.8 and newer", "at least 3.8", "v3.8.0", ">= 3.8, <4"]
)
def test_a_minimum_is_its_lower_bound(written: str) -> None:
    assert normal_value(written, "minimum version") == normal_value("3.8", "Minimum version")
    assert normal_value(written, "minimum version") != normal_value("3.9", "minimum version")


def test_a_version_is_no_number() -> None:
    assert normal_value("3.10", "supported versions") != normal_value("3.1", "supported versions")
    assert normal_value("3.8.0", "version of Python") == normal_value("v3.8", "version of Python")
    assert normal_value("3.10", "ratio") == normal_value("3.1", "ratio")


def test_names_are_compared_without_their_marks() -> None:
    assert normal_name(" `max_retries` ") == normal_name("Max-Retries")
    assert normal_name("Default of `tol`.") == normal_name("default of tol")


def test_names_of_code_and_single_letters_keep_their_case() -> None:
    assert normal_name("cluster.DBSCAN") != normal_name("cluster.dbscan")
    assert normal_name("default of C") != normal_name("default of c")


def test_versions_stand_in_order() -> None:
    written = [
        "0.9",
        "1.0.dev1",
        "1.0a1",
        "1.0b2",
        "1.0-rc.1",
        "1.0",
        "1.0.post1",
        "1.0.1",
        "1.9",
        "1.10",
        "v2",
        "2022.3.0",
    ]
    keys = [version_key(each) for each in written]
    assert None not in keys
    assert keys == sorted(keys)  # type: ignore[type-var]  # none is None
    assert version_key("3.8") == version_key("3.8.0") == version_key("v3.8")


@pytest.mark.parametrize("written", ["", "main", "8.x", "1..2", "v", "1." * 5_000 + "1"])
def test_text_without_a_version_has_none(written: str) -> None:
    assert version_key(written) is None


@given(st.text(max_size=300), st.sampled_from(["", "minimum version"]))
def test_any_text_has_a_normal_form(text: str, attribute: str) -> None:
    assert isinstance(normal_value(text, attribute), str)
    assert normal_name(f"  {text}  ") == normal_name(text)
