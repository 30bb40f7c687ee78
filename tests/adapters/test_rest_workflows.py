"""Workflows over REST: a definition whose steps cannot be ordered is refused when it is written."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from clew.access import Principal
from clew.trail.bootstrap import bootstrap
from tests.servers import serve

ADA = Principal(owner_id="ada", agent_id="runner")


@pytest.fixture
async def http(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with serve(tmp_path) as served:
        await bootstrap(served.trail, ADA)
        async with served.client("ada") as client:
            yield client


def definition(*steps: dict[str, Any]) -> dict[str, Any]:
    context = {"workflow_id": "w", "trigger": {"schema_name": "note.v1"}, "steps": [{"tool": "t"} | s for s in steps]}
    return {"title": "A workflow", "schema_name": "workflow.def.v1", "context": context}


@pytest.mark.req("RCR-47")
@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([{"id": "a", "depends_on": ["b"]}, {"id": "b", "depends_on": ["a"]}], "circular dependency: a → b → a"),
        ([{"id": "a", "depends_on": ["b"]}, {"id": "b"}], "circular dependency: a → b → a"),
        ([{"id": "a", "depends_on": ["a"]}], "circular dependency: a → a"),
        ([{"id": "a", "depends_on": ["z"]}], "a depends on z, which does not exist"),
    ],
    ids=["named", "by place", "itself", "unknown"],
)
async def test_steps_that_wait_for_each_other_are_refused(
    http: httpx.AsyncClient, steps: list[dict[str, Any]], reason: str
) -> None:
    refused = await http.post("/breadcrumbs", json=definition(*steps))
    assert (refused.status_code, reason in refused.json()["error"]["message"]) == (422, True), refused.text
    written = await http.post("/breadcrumbs", json=definition({"id": "a"}, {"id": "b"}))
    assert written.status_code == 201, written.text
    changed = await http.patch(
        f"/breadcrumbs/{written.json()['id']}",
        json={"context": definition(*steps)["context"]},
        headers={"If-Match": '"1"'},
    )
    assert (changed.status_code, reason in changed.json()["error"]["message"]) == (422, True), changed.text
