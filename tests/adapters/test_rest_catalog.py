"""The catalog over REST: a real server over the workspace of a folder."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from clew.access import ROLES, Principal
from clew.adapters.rest import Keys, build_app, open_keys, run_server
from clew.app import App, open_app
from clew.cli import main
from clew.config import read_config
from tests.consent import trust_all
from tests.servers import PATIENCE, give_key

CODE = '''
from clew.catalog.domain import Domain
from clew.tools import GuidedContent, guide, tool


@tool()
async def analyst(text: str = "") -> GuidedContent:
    """Look into payments of the warehouse."""
    return GuidedContent(content=f"looked {text}", guidance=[guide("warehouse://tools/hidden/query", "run it")])


@tool(searchable=False)
async def query(sql: str = "") -> str:
    """Run a query."""
    return "ran"


@tool(scopes=("finance",))
async def payroll() -> str:
    """Show what people are paid."""
    return "much"


warehouse = Domain(name="warehouse", description="Payments.", tools=(analyst, query, payroll))
'''


class Site:
    """A running server, and clients of it."""

    def __init__(self, url: str, app: App, keys: Keys) -> None:
        self.url, self.app, self._keys = url, app, keys

    def client(self, owner: str = "local", roles: frozenset[str] = ROLES, **more: Any) -> httpx.AsyncClient:
        principal = Principal(owner_id=owner, **{"agent_id": "cli", **more}, roles=roles)
        headers = {"Authorization": f"Bearer {self._keys.issue(principal).token}"}
        return httpx.AsyncClient(verify=False, base_url=self.url, headers=headers, timeout=PATIENCE)


@asynccontextmanager
async def serve(folder: Path) -> AsyncIterator[Site]:
    async with open_app(read_config(folder, {"CLEW_EMBEDDER": "hash"})) as app:
        keys = open_keys(folder, app.clock)
        door = build_app(app.trail, keys, app.hygiene, config=app.config, clock=app.clock, workspace=app.workspace)
        stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()
        running = asyncio.create_task(
            run_server(door, "127.0.0.1", 0, ready=lambda *at: address.set_result(at), stop=stop)
        )
        try:
            yield Site("http://{}:{}".format(*await asyncio.wait_for(address, PATIENCE)), app, keys)
        finally:
            stop.set()
            await asyncio.wait_for(running, PATIENCE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / ".clew"
    give_key(place)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "page.md").write_text(f"# Kettle\n\nThe kettle of {name}.\n")
    (tmp_path / "rest_warehouse.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(tmp_path))
    tables = [f"[sources.{name}]\nkind = 'local'\nroot = '{name}'\n" for name in ("one", "two")]
    head = "[catalog]\nrepository = false\ndomains = ['rest_warehouse:warehouse']\n"
    (place / "config.toml").write_text(head + "".join(tables))
    trust_all(place)
    return place


@pytest.fixture
async def site(folder: Path) -> AsyncIterator[Site]:
    async with serve(folder) as served:
        yield served


def routes(answer: httpx.Response, kind: str) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [entry["route"] for section in answer.json()["sections"] for entry in section.get(kind, ())]


async def test_pending_domains_are_listed_for_curators_of_the_server_and_not_for_agents(folder: Path) -> None:
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"notes": {"command": "no-such-program"}}}))
    settings = (folder / "config.toml").read_text()
    (folder / "config.toml").write_text(f"{settings}[sources.far]\nkind = 'qase'\nproject = 'A'\ntoken = 'HOME'\n")
    async with serve(folder) as site:
        async with site.client() as http:
            listed = {each["name"]: each["description"] for each in (await http.get("/domains")).json()["items"]}
        assert list(listed) == ["warehouse", "one", "two", "far", "notes"]
        assert listed["far"] == listed["notes"] == "not trusted yet: run `clew trust`"
        for caller in ({"roles": frozenset({"subscriber"})}, {"owner": "other"}):
            async with site.client(**caller) as http:
                seen = [each["name"] for each in (await http.get("/domains")).json()["items"]]
            assert not {"far", "notes"} & set(seen)


@pytest.mark.req("ERN-12")
@pytest.mark.req("ERN-08")
async def test_a_malformed_entry_of_a_get_leaves_the_others_alone(site: Site) -> None:
    tool = {"route": "warehouse://tools/analyst", "params": {"text": "x"}}
    async with site.client() as http:
        got = (await http.post("/get", json={"routes": [{"rout": "x"}, tool, {**tool, "params": 5}]})).json()
        assert [each["success"] for each in got["results"]] == [False, True, False]
        assert (await http.post("/ask", json={"query": "payments", "perDomain": 2})).status_code == 200
        both = await http.post("/ask", json={"query": "payments", "perDomain": 2, "per_domain": 3})
        assert both.status_code == 422
        assert "perDomain: is another spelling of per_domain" in both.text


@pytest.mark.req("ERN-24")
async def test_it_asks_gets_and_refreshes(site: Site, tmp_path: Path) -> None:
    async with site.client() as http:
        assert [each["name"] for each in (await http.get("/domains")).json()["items"]] == ["warehouse", "one", "two"]
        states = (await http.get("/sources")).json()["items"]
        assert [(each["domain"], each["is_fresh"]) for each in states] == [("one", False), ("two", False)]
        done = (await http.post("/sources/refresh", json={})).json()["items"]
        assert [each["outcome"] for each in done] == ["refreshed", "refreshed"]

        asked = await http.post("/ask", json={"query": "the kettle of two", "domain": "two"})
        assert routes(asked, "resources")[0].startswith("two://resources/page.md")
        items = [{"route": "two://resources/page.md"}, {"route": "warehouse://tools/analyst", "params": {"text": "x"}}]
        got = (await http.post("/get", json={"routes": items, "handle": asked.json()["handle"]})).json()
        assert got["summary"] == {"total": 2, "success": 2, "failed": 0}
        assert got["results"][1]["data"]["guidance"][0]["route"] == "warehouse://tools/hidden/query"

        (tmp_path / "one" / "page.md").write_text("# Kettle\n\nAnother.\n")
        (tmp_path / "two" / "page.md").write_text("# Kettle\n\nAnother.\n")
        (only,) = (await http.post("/sources/refresh", json={"source": states[0]["source_id"]})).json()["items"]
        assert (only["domain"], only["changed"]) == ("one", 1)
        body = (await http.post("/get", json={"routes": [{"route": "two://resources/page.md"}]})).json()
        assert "The kettle of two" in body["results"][0]["data"]["content"]


@pytest.mark.req("ERN-24")
async def test_a_source_that_fails_is_in_the_report_and_keeps_its_documents(site: Site, tmp_path: Path) -> None:
    async with site.client() as http:
        await http.post("/sources/refresh", json={})
        (tmp_path / "one").rename(tmp_path / "away")
        failed, fine = (await http.post("/sources/refresh", json={})).json()["items"]
        assert (failed["outcome"], fine["outcome"]) == ("failed", "refreshed")
        assert "there is no such folder" in failed["error"]
        got = (await http.post("/get", json={"routes": [{"route": "one://resources/page.md"}]})).json()
        assert got["summary"]["success"] == 1
        assert (await http.get("/sources")).json()["items"][0]["error"]


@pytest.mark.parametrize(
    ("roles", "allowed"),
    [
        ({"curator"}, {"ask", "get", "why", "domains", "sources", "refresh"}),
        ({"subscriber"}, {"ask", "get", "why", "domains"}),
        ({"emitter"}, set()),
    ],
)
async def test_roles_decide_who_may_do_what(site: Site, roles: set[str], allowed: set[str]) -> None:
    async with site.client(roles=frozenset(roles)) as http:
        answers = {
            "ask": await http.post("/ask", json={"query": "payments"}),
            "get": await http.post("/get", json={"routes": [{"route": "warehouse://tools/analyst"}]}),
            "why": await http.get("/why", params={"route": "warehouse://tools/analyst"}),
            "domains": await http.get("/domains"),
            "sources": await http.get("/sources"),
            "refresh": await http.post("/sources/refresh", json={}),
        }
    assert {name: each.status_code for name, each in answers.items()} == {
        name: 200 if name in allowed else 403 for name in answers
    }


async def test_other_owners_see_nothing_and_refresh_nothing(site: Site) -> None:
    async with site.client() as mine:
        await mine.post("/sources/refresh", json={})
        handle = (await mine.post("/ask", json={"query": "kettle"})).json()["handle"]
    async with site.client("eve") as http:
        asked = await http.post("/ask", json={"query": "the kettle of one"})
        assert (routes(asked, "tools"), routes(asked, "resources")) == ([], [])
        assert (await http.get("/domains")).json() == {"items": []}
        items = [{"route": "one://resources/page.md"}, {"route": "warehouse://tools/analyst"}]
        got = (await http.post("/get", json={"routes": items})).json()
        assert [each["error"]["code"] for each in got["results"]] == ["NOT_FOUND", "NOT_FOUND"]
        why = (await http.get("/why", params={"route": "warehouse://tools/analyst"})).json()
        assert why["is_visible"] is False
        for answer in (await http.get("/sources"), await http.post("/sources/refresh", json={})):
            assert answer.status_code == 403
            assert "local:" not in answer.text
        taken = await http.post("/ask", json={"query": "kettle", "handle": handle})
        assert taken.status_code == 403


async def test_scopes_of_the_token_decide_what_is_shown(site: Site) -> None:
    async with site.client() as http, site.client(scopes=frozenset({"finance"})) as payer:
        asked = [await each.post("/ask", json={"query": "what people are paid"}) for each in (http, payer)]
        assert ["warehouse://tools/payroll" in routes(each, "tools") for each in asked] == [False, True]
        body = {"routes": [{"route": "warehouse://tools/payroll"}]}
        codes = [(await each.post("/get", json=body)).json()["results"][0] for each in (http, payer)]
        assert (codes[0]["error"]["code"], codes[1]["success"]) == ("ACCESS_DENIED", True)


@pytest.mark.req("BEY-12")
@pytest.mark.req("O18")
async def test_the_command_and_the_api_give_the_same_answer_to_why(
    site: Site, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEW_EMBEDDER", "hash")
    async with site.client() as http:
        await http.post("/sources/refresh", json={})
        asked = (await http.post("/ask", json={"query": "the kettle of one"})).json()
        await http.post("/get", json={"routes": [{"route": "warehouse://tools/analyst"}], "handle": asked["handle"]})
        for route in (
            "warehouse://tools/analyst",
            "warehouse://tools/hidden/query",
            "warehouse://tools/payroll",
            "warehouse://tools/nothing",
            "one://resources/page.md",
            "one://resources/nothing",
        ):
            for handle in (None, asked["handle"]):
                query = {"route": route} | ({"handle": handle} if handle else {})
                by_api = (await http.get("/why", params=query)).json()
                more = ["--handle", handle] if handle else []
                capsys.readouterr()
                code = await asyncio.to_thread(main, ["why", route, *more, "--json", "--folder", str(folder)])
                assert code == 0
                assert json.loads(capsys.readouterr().out) == by_api


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/ask", {}, 422),
        ("POST", "/ask", {"query": ""}, 422),
        ("POST", "/ask", {"query": "x" * 4_001}, 413),
        ("POST", "/ask", {"query": "x", "domain": "warehuose"}, 404),
        ("POST", "/ask", {"query": "x", "handle": "clew-nope"}, 403),
        ("POST", "/ask", {"query": "x", "surplus": 1}, 422),
        ("POST", "/get", {"routes": []}, 422),
        ("POST", "/get", {"routes": [{"route": "x"}] * 51}, 413),
        ("POST", "/get", {"routes": {"params": {}}}, 422),
        ("POST", "/sources/refresh", {"source": "nowhere"}, 404),
        ("GET", "/why", None, 422),
        ("GET", "/why?route=nonsense", None, 422),
        ("GET", "/ask", None, 405),
    ],
)
async def test_each_failure_has_its_status(site: Site, method: str, path: str, body: Any, status: int) -> None:
    async with site.client() as http:
        answer = await http.request(method, path, json=body)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["message"]


async def test_every_route_needs_a_token(site: Site) -> None:
    async with httpx.AsyncClient(verify=False, base_url=site.url, timeout=PATIENCE) as http:
        assert (await http.post("/ask", json={"query": "x"})).status_code == 401
        assert (await http.get("/sources")).status_code == 401


@pytest.mark.req("ERN-25")
async def test_many_first_requests_build_one_workspace(site: Site) -> None:
    async with site.client() as http:
        asked = await asyncio.gather(*(http.post("/ask", json={"query": f"payments {n}"}) for n in range(20)))
    assert {each.status_code for each in asked} == {200}
    workspace = await site.app.workspace()
    assert len(workspace.catalog.registry.all_domains()) == 3


async def test_a_shared_catalog_is_open_to_other_owners_within_their_scopes(folder: Path) -> None:
    settings = (folder / "config.toml").read_text()
    (folder / "config.toml").write_text(settings.replace("[catalog]\n", "[catalog]\nshared = true\n"))
    async with serve(folder) as site, site.client() as mine, site.client("eve", agent_id="eve") as http:
        await mine.post("/sources/refresh", json={})
        asked = await http.post("/ask", json={"query": "the kettle of one", "domain": "one"})
        assert routes(asked, "resources")[0].startswith("one://resources/page.md")
        items = [{"route": "one://resources/page.md"}, {"route": "warehouse://tools/payroll"}]
        got = (await http.post("/get", json={"routes": items})).json()
        assert [each["success"] for each in got["results"]] == [True, False]
        assert (await http.post("/sources/refresh", json={})).status_code == 403
