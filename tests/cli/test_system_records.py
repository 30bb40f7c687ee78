"""Clew's own records stay out of lists of the user's records."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from clew.access import OWN_SCHEMAS
from clew.app import App
from clew.cli.trail.system_records import steps_of
from clew.trail.bootstrap import read_pieces
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.flow import shipped_flow
from tests.cli.conftest import Clew

MANY = 2_500


@pytest.fixture
def crowded(
    clew: Clew, put: Callable[..., str], in_trail: Callable[[Callable[[App], Awaitable[Any]]], Any]
) -> tuple[str, str]:
    """A note below thousands of records of the catalog, and one on top."""

    async def crowd(app: App) -> None:
        for start in range(0, MANY, 500):
            await app.trail.records.create_many([record(at) for at in range(start, start + 500)], by=app.me)

    def record(number: int) -> Draft:
        schema = sorted(OWN_SCHEMAS)[number % len(OWN_SCHEMAS)]
        return Draft(title=f"kettle {number}", schema_name=schema, context={"kettle": number}, embed="never")

    below = put("a kettle of mine")
    in_trail(crowd)
    return below, put("another kettle of mine")


def test_listings_and_searches_leave_the_catalog_out_however_much_of_it_there_is(
    clew: Clew, crowded: tuple[str, str]
) -> None:
    below, above = crowded
    assert [row[0] for row in clew("trail", "ls").rows] == [above, below]
    assert [row[0] for row in clew("trail", "ls", "--oldest").rows] == [below, above]
    page = clew("trail", "ls", "--limit", "1", "--json").json
    assert [each["id"] for each in page["items"]] == [above]
    rest = clew("trail", "ls", "--limit", "1", "--cursor", page["cursor"], "--json").json
    assert [each["id"] for each in rest["items"]] == [below]
    found = {row[0] for row in clew("trail", "search", "kettle").rows}
    assert found == {below, above}


def test_system_and_schema_show_the_catalog(clew: Clew, crowded: tuple[str, str]) -> None:
    shown = clew("trail", "ls", "--system", "--limit", "50", "--json").json["items"]
    assert {each["schema_name"] for each in shown} - {None} <= {*OWN_SCHEMAS}
    assert len(shown) == 50
    tools = clew("trail", "ls", "--schema", "tool.v1", "--limit", "50", "--json").json["items"]
    assert {each["schema_name"] for each in tools} == {"tool.v1"}
    assert clew("trail", "search", "kettle", "--schema", "resource.v1").lines
    assert {row[2] for row in clew("trail", "search", "kettle", "--system").rows} & {*OWN_SCHEMAS}


def test_every_schema_of_a_real_catalog_is_left_out(clew: Clew, folder: Path, put: Callable[..., str]) -> None:
    (folder.parent / "kettle.md").write_text("# Kettle\n\nAll about kettles.\n")
    clew("ask", "kettle")
    mine = put("a kettle of mine")
    assert [row[0] for row in clew("trail", "ls").rows] == [mine]
    assert [row[0] for row in clew("trail", "search", "kettle").rows] == [mine]


def test_the_steps_of_runs_are_left_out_and_what_was_said_is_not(
    clew: Clew, put: Callable[..., str], in_trail: Callable[[Callable[[App], Awaitable[Any]]], Any]
) -> None:
    flow = shipped_flow(read_pieces())
    written: dict[str, dict[str, Any]] = {
        flow.request: {"tool": "kettle", "input": {}, "requestId": "r"},
        flow.response: {"tool": "kettle", "status": "success", "request_id": "r", "output": "kettle"},
        flow.delta: {"request_id": "r", "index": 0, "text": "kettle"},
        flow.snapshot: {"tools": []},
    }

    async def run(app: App) -> None:
        await app.bootstrap()
        drafts = [
            Draft(title="kettle", schema_name=name, context=context, embed="never") for name, context in written.items()
        ]
        await app.trail.records.create_many(drafts, by=app.me)

    said = [
        put(f"kettle {name}", "--schema", name, context={"message": "kettle"}) for name in (flow.message, "note.v1")
    ]
    in_trail(run)
    listed, found = clew("trail", "ls"), clew("trail", "search", "kettle")
    assert {row[0] for row in listed.rows} == {*said}
    assert {row[0] for row in found.rows} == {*said}
    assert "--system" in listed.err
    assert "--system" in found.err
    everything = clew("trail", "ls", "--system", "--limit", "200", "--json").json["items"]
    assert {*written} <= {each["schema_name"] for each in everything}
    assert clew("trail", "ls", "--schema", flow.delta).lines
    kept = {flow.message, flow.answer, flow.stopped, flow.agent, flow.workflow_result}
    assert {*written} < {*steps_of(flow)}
    assert not kept & {*steps_of(flow)}
