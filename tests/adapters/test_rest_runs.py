"""Routes of runs over REST: which owner sees them, and the answers before the first run."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from clew.access import Principal
from clew.trail.model.breadcrumb import Draft
from tests.conversations import AGENT, define
from tests.servers import Served, serve


@pytest.mark.req("SYL-117")
async def test_usage_is_that_of_the_caller_alone(tmp_path: Path) -> None:
    async with serve(tmp_path) as served:
        for owner, tokens in (("ada", 10), ("bob", 70)):
            by = Principal(owner_id=owner, agent_id="runner")
            await define(served.trail, by)
            record = {"agent_id": AGENT, "layer": "model", "model": "m", "input_tokens": tokens, "output_tokens": 1}
            more = {"baseline_tokens": 2 * tokens + 2, "cost": 0.5}
            draft = Draft(title="u", schema_name="usage.v1", context=record | more, tags=(f"agent:{AGENT}",))
            await served.trail.records.create(draft, by=by)
        async with served.client("ada") as http:
            report = (await http.get("/usage")).json()
            agents = {each["agent_id"]: each for each in (await http.get("/agents")).json()["items"]}
    assert (report["total"]["input_tokens"], report["total"]["cost"]) == (10, 0.5)
    assert (report["total"]["savings"], report["total"]["saved_tokens"]) == (0.5, 11)
    assert agents[AGENT]["calls"] == 0


async def test_the_routes_of_runs_are_empty_before_the_setup(server: Served, http: httpx.AsyncClient) -> None:
    assert (await http.get("/agents")).json() == {"items": []}
    assert (await http.get("/usage")).json()["total"]["calls"] == 0
    written = (await http.post("/breadcrumbs", json={"title": "x", "context": {}})).json()
    assert (await http.get(f"/why/context/{written['id']}")).status_code == 404
    assert (await http.get("/why/context/none")).status_code == 404
    fake = {"title": "x", "schema_name": "agent.context.v1", "context": {"consumer_id": "x"}}
    faked = (await http.post("/breadcrumbs", json=fake)).json()
    assert (await http.get(f"/why/context/{faked['id']}")).status_code == 422


async def test_callers_without_the_right_to_read_see_nothing(server: Served, owner: str) -> None:
    async with server.client(owner, frozenset({"emitter"})) as http:
        for path in ("/agents", "/usage", "/why/context/x"):
            assert (await http.get(path)).status_code == 403
