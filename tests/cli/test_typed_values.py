"""Values as people type them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from clew.cli.arguments.values import parse_ttl, set_value
from clew.cli.options import FilterOptions, split_assignment
from clew.errors import InvalidInput
from clew.trail.model.breadcrumb import check_ttl

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.req("RCR-10")
@pytest.mark.parametrize(
    ("text", "kind", "after", "reads"),
    [
        ("never", "never", None, None),
        ("90s", "datetime", timedelta(seconds=90), None),
        ("5m", "datetime", timedelta(minutes=5), None),
        ("2h", "datetime", timedelta(hours=2), None),
        ("7d", "datetime", timedelta(days=7), None),
        ("3w", "datetime", timedelta(weeks=3), None),
        ("2026-01-02T00:00:00Z", "datetime", timedelta(days=1), None),
        ("reads:3", "usage", None, 3),
        ("1h,reads:2", "hybrid", timedelta(hours=1), 2),
        ("reads:2, 1h", "hybrid", timedelta(hours=1), 2),
    ],
)
def test_an_end_is_a_period_a_time_reads_or_both(
    text: str, kind: str, after: timedelta | None, reads: int | None
) -> None:
    ttl = check_ttl(parse_ttl(text, NOW))
    assert (ttl.kind, ttl.max_reads) == (kind, reads)
    assert ttl.expires_at == (NOW + after if after is not None else None)


@pytest.mark.parametrize(
    "text", ["", "soon", "5", "m5", "999999999w", "reads:", "reads:x", "-5m", "5m,later", "0000-01-01"]
)
def test_an_end_that_is_none_is_refused_with_examples(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"--ttl.*For example 5m"):
        parse_ttl(text, NOW)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a=1", 1),
        ("a=true", True),
        ('a="1"', "1"),
        ("a=x y", "x y"),
        ("a=", ""),
        ("a=b=c", "b=c"),
        ("a=[1]", [1]),
        ("a=01", "01"),
    ],
)
def test_an_assignment_is_json_where_it_can_be_and_text_otherwise(text: str, value: Any) -> None:
    assert split_assignment(text, "--set") == ("a", value)


@pytest.mark.parametrize("text", ["a", "=1", ""])
def test_text_without_an_assignment_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="--set"):
        split_assignment(text, "--set")


def test_a_value_is_set_deep_inside_and_objects_are_made_on_the_way() -> None:
    context: dict[str, Any] = {"a": {"b": 1}, "kept": True}
    set_value(context, "a.c.d", 5)
    assert context == {"a": {"b": 1, "c": {"d": 5}}, "kept": True}


@pytest.mark.parametrize("path", ["text.inner", "list.0", "a..b", ".a", "a."])
def test_a_path_through_something_else_than_objects_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput, match="--set"):
        set_value({"text": "x", "list": [1], "a": {}}, path, 1)


def test_a_time_without_a_zone_means_local_time() -> None:
    selector = FilterOptions(since="2026-01-31T12:00:00", until="2026-02-02T12:00:00Z").selector(NOW)
    assert selector.created_after == datetime(2026, 1, 31, 12).astimezone()
    assert selector.created_before == datetime(2026, 2, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "ago"),
    [
        ("90s", timedelta(seconds=90)),
        ("30m", timedelta(minutes=30)),
        ("1h", timedelta(hours=1)),
        ("2d", timedelta(days=2)),
        ("1w", timedelta(weeks=1)),
        ("0m", timedelta()),
    ],
)
def test_a_period_is_so_long_before_now(text: str, ago: timedelta) -> None:
    assert FilterOptions(since=text).selector(NOW).created_after == NOW - ago
    assert FilterOptions(until=text).selector(NOW).created_before == NOW - ago


@pytest.mark.parametrize(
    "text", ["yesterday", "2026-13-01", "9999999-01-01", "", "1", "h", "-1h", "1 h", "1y", "9999w9"]
)
def test_a_time_that_is_none_names_its_option_and_shows_how_to_write_one(text: str) -> None:
    for option, which in (("--since", FilterOptions(since=text)), ("--until", FilterOptions(until=text))):
        with pytest.raises(
            InvalidInput, match=r"is neither a period nor a time\. For example 30m, 1h, 2d or 1w"
        ) as told:
            which.selector(NOW)
        assert told.value.field == option


def test_a_period_that_reaches_before_the_first_year_is_refused() -> None:
    with pytest.raises(InvalidInput, match="--since: '999999999w' is neither"):
        FilterOptions(since="999999999w").selector(NOW)


@pytest.mark.parametrize(("since", "until"), [("1h", "2h"), ("1h", "1h"), ("2026-01-02T00:00:00Z", "2026-01-01")])
def test_a_beginning_that_is_not_before_the_end_is_refused(since: str, until: str) -> None:
    with pytest.raises(InvalidInput, match=r"--since.*is not before --until"):
        FilterOptions(since=since, until=until).selector(NOW)
