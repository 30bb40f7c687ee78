"""The explanation why a skill is or is not loaded is the same from the command and from REST."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from clew.cli import main
from tests.adapters.test_rest_catalog import serve
from tests.catalog.skills.northline import LOAD, write_project
from tests.consent import trust_all
from tests.servers import give_key


@pytest.mark.req("BEY-12")
async def test_the_command_and_the_api_say_the_same_of_skills_and_toolsets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEW_EMBEDDER", "hash")
    folder = write_project(tmp_path / "project")
    give_key(folder)
    trust_all(folder)
    async with serve(folder) as site, site.client() as http:
        body = {"routes": [{"route": LOAD, "params": {"skill": "refunding"}}]}
        handle = (await http.post("/get", json=body)).json()["handle"]
        seen = {}
        for kind, name in (("skill", "refunding"), ("skill", "cancelling"), ("toolset", "money"), ("skill", "no-such")):
            by_api = (await http.get(f"/why/{kind}/{name}", params={"handle": handle})).json()
            query = {"route": f"{kind}:{name}", "handle": handle}
            assert (await http.get("/why", params=query)).json() == by_api
            capsys.readouterr()
            arguments = ["why", kind, name, "--handle", handle, "--json", "--folder", str(folder)]
            assert await asyncio.to_thread(main, arguments) == 0
            assert json.loads(capsys.readouterr().out) == by_api
            seen[name] = by_api["is_visible"]
        assert seen == {"refunding": True, "cancelling": False, "money": True, "no-such": False}
        assert (await http.get("/why/planet/mars")).status_code == 422
    async with serve(folder) as site, site.client("eve") as http:
        assert (await http.get("/why/skill/refunding")).json()["reasons"] == ["This folder defines no skills."]
