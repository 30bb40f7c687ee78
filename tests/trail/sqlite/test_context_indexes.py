"""Requests are found by the id in their context through an index, and questions for permission by their pattern; also
in a trail of an earlier version."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import Corrupted
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.sqlite.selector_sql import add_functions, build_where
from clew.trail.work.correlation import find_request

ANN = Principal(owner_id="acme", agent_id="ann")


@pytest.mark.req("RCR-29")
@pytest.mark.parametrize("spelling", ["request_id", "requestId"])
async def test_a_request_is_found_through_an_index(tmp_path: Path, spelling: str) -> None:
    file, clock = tmp_path / "trail.db", ManualClock()
    trail = await open_trail(f"sqlite://{file}", clock)
    draft = Draft(title="x", schema_name="tool.request.v1", context={"tool": "x", spelling: "r-9"})
    request = await trail.records.create(draft, by=ANN)
    await trail.close()
    make_old(file)

    trail = await open_trail(f"sqlite://{file}", clock)
    found = await find_request(trail, "r-9", by=ANN)
    await trail.close()

    assert found is not None
    assert found.id == request.id
    assert f"USING INDEX breadcrumbs_{spelling} (" in plan(file, ContextMatch(path=spelling, value="r-9"))


@pytest.mark.req("RCR-29")
async def test_a_question_for_permission_is_found_by_its_pattern_through_an_index(tmp_path: Path) -> None:
    file, clock = tmp_path / "trail.db", ManualClock()
    trail = await open_trail(f"sqlite://{file}", clock)
    draft = Draft(title="x", schema_name="permission.request.v1", context={"tool": "pay", "pattern": "pay 3"})
    question = await trail.records.create(draft, by=ANN)
    await trail.close()
    make_old(file)

    trail = await open_trail(f"sqlite://{file}", clock)
    same = (ContextMatch(path="tool", value="pay"), ContextMatch(path="pattern", value="pay 3"))
    found = await trail.records.list(Selector(schema_name="permission.request.v1", context_match=same), by=ANN)
    await trail.close()

    assert [each.id for each in found.items] == [question.id]
    shown = plan(file, *same)
    assert "USING INDEX breadcrumbs_pattern (" in shown


def make_old(file: Path, *statements: str) -> None:
    """Make a trail of the version before the indexes."""
    with apsw.Connection(str(file)) as old:
        for name in ("breadcrumbs_request_id", "breadcrumbs_requestId", "breadcrumbs_pattern"):
            old.execute(f"DROP INDEX IF EXISTS {name}")
        for name in ("turn", "group", "seat"):
            old.execute(f"DROP INDEX deliveries_{name}")
        for name in ("grp", "priority", "turn"):
            old.execute(f"ALTER TABLE deliveries DROP COLUMN {name}")
        old.execute("PRAGMA user_version=2")
        for each in statements:
            old.execute(each)
    old.close()


def plan(file: Path, *match: ContextMatch) -> str:
    """How SQLite finds records whose context matches."""
    where, values = build_where(Selector(schema_name="tool.request.v1", context_match=match), [1, 2], 0)
    connection = apsw.Connection(str(file))
    add_functions(connection)
    query = f"EXPLAIN QUERY PLAN SELECT b.rid FROM breadcrumbs b WHERE {where} ORDER BY b.rid LIMIT 1"
    steps = [str(row[-1]) for row in connection.execute(query, values)]
    connection.close()
    return "\n".join(steps)


async def test_a_damaged_record_of_an_earlier_version_is_refused_alone_and_can_be_deleted(tmp_path: Path) -> None:
    file, clock = tmp_path / "trail.db", ManualClock()
    trail = await open_trail(f"sqlite://{file}", clock)
    good = await trail.records.create(Draft(title="good", context={"a": 1}), by=ANN)
    bad = await trail.records.create(Draft(title="bad", context={"request_id": "r-9"}), by=ANN)
    await trail.close()
    make_old(file, "UPDATE breadcrumbs SET context = '{\"request' WHERE title = 'bad'")

    trail = await open_trail(f"sqlite://{file}", clock)
    assert (await trail.records.get(good.id, by=ANN)).context == {"a": 1}
    assert await find_request(trail, "r-9", by=ANN) is None
    with pytest.raises(Corrupted):
        await trail.records.get(bad.id, by=ANN)
    await trail.records.delete(bad.id, by=ANN)
    await trail.close()
