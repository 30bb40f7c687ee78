"""Selectors as SQL: values are bound, indexes are used."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest

from clew.clock import ManualClock
from clew.trail.model.selector import EVERYTHING, ContextMatch, Selector
from clew.trail.sqlite.engine import Engine
from clew.trail.sqlite.selector_sql import add_functions, build_where

HOSTILE = "x') OR 1=1 --"


@pytest.fixture
def connection(tmp_path: Path, clock: ManualClock) -> Iterator[apsw.Connection]:
    engine = Engine(tmp_path / "trail.db", clock, on_connect=add_functions)
    yield engine.reader()
    engine.close()


def plan(connection: apsw.Connection, selector: Selector, audiences: tuple[int, ...] = (1, 2)) -> str:
    where, values = build_where(selector, audiences, 0)
    rows = connection.execute(f"EXPLAIN QUERY PLAN SELECT b.rid FROM breadcrumbs b WHERE {where}", values)
    return "\n".join(row[3] for row in rows)


@pytest.mark.req("RCR-09")
@pytest.mark.parametrize(
    "selector",
    [
        Selector(tag_prefix="session:"),
        Selector(all_tags=["session:s1"]),
        Selector(any_tags=["a", "b"]),
        Selector(session="s1"),
    ],
)
def test_tags_are_looked_up_in_their_index(connection: apsw.Connection, selector: Selector) -> None:
    steps = plan(connection, selector)
    assert "SEARCH tags USING PRIMARY KEY (audience=? AND tag" in steps
    assert "SCAN tags" not in steps
    assert "SCAN b" not in steps


def test_schemas_are_looked_up_in_their_index(connection: apsw.Connection) -> None:
    steps = plan(connection, Selector(schema_name="note.v1"))
    assert "breadcrumbs_schema" in steps
    assert "SCAN" not in steps


@pytest.mark.parametrize(
    "selector",
    [
        Selector(schema_name=HOSTILE),
        Selector(schema_names=[HOSTILE]),
        Selector(any_tags=[HOSTILE]),
        Selector(all_tags=[HOSTILE]),
        Selector(tag_prefix=HOSTILE),
        Selector(session=HOSTILE),
        Selector(path=HOSTILE),
        Selector(context_match=[ContextMatch(path="a')--", value=HOSTILE)]),
        Selector(context_match=[ContextMatch(path="a", op="in", value=[HOSTILE])]),
    ],
)
def test_no_text_of_a_caller_is_in_the_sql(connection: apsw.Connection, selector: Selector) -> None:
    where, values = build_where(selector, (1,), 0)
    assert "--" not in where
    assert any("--" in str(value) for value in values.values())
    assert connection.execute(f"SELECT count(*) FROM breadcrumbs b WHERE {where}", values).get == 0


def test_without_audiences_nothing_matches(connection: apsw.Connection) -> None:
    where, values = build_where(EVERYTHING, (), 0)
    assert "IN (NULL)" in where
    assert connection.execute(f"SELECT count(*) FROM breadcrumbs b WHERE {where}", values).get == 0


def test_as_many_terms_as_a_selector_may_have_can_be_bound(connection: apsw.Connection) -> None:
    many = [f"t{number}" for number in range(200)]
    matches = [ContextMatch(path=f"k{number}", value=number) for number in range(200)]
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    selector = Selector(
        schema_names=many,
        any_tags=many,
        all_tags=many[:50],
        tag_prefix="t",
        session="s",
        created_after=moment,
        created_before=moment,
        path="**",
        context_match=matches,
    )
    where, values = build_where(selector, tuple(range(1, 500)), 0)
    assert connection.execute(f"SELECT count(*) FROM breadcrumbs b WHERE {where}", values).get == 0


def test_the_functions_that_sql_lacks(connection: apsw.Connection) -> None:
    def ask(sql: str, *values: object) -> object:
        return connection.execute(f"SELECT {sql}", values).get

    assert ask("clew_path(?, ?)", "src/*.py", "src/a.py") == 1
    assert ask("clew_path(?, ?)", "src/*.py", "a.py") == 0
    assert ask("clew_path(?, NULL)", "**") == 0
    assert ask("clew_match(?, ?)", '{"path":"a.b","op":"gt","value":1}', '{"a":{"b":2}}') == 1
    assert ask("clew_match(?, ?)", '{"path":"a.b","op":"gt","value":2}', '{"a":{"b":2}}') == 0
