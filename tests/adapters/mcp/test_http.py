"""MCP over HTTP: tokens, sessions, hosts, limits, and the same behaviour on both eras through a real server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from clew.access import Principal
from clew.adapters.mcp.http import MAX_SESSIONS_EACH, PATH, build_mcp_app
from clew.adapters.rest import Metrics, open_keys, run_server
from clew.adapters.rest.app import RestApp
from clew.adapters.rest.dispatch import Dispatcher
from clew.catalog.catalog import Catalog
from clew.clock import SystemClock
from clew.config import ServerConfig
from tests.adapters.mcp.catalogs import ERAS, ME, Door, Gate, serve_catalog
from tests.servers import PATIENCE, give_key

NEW = "2026-07-28"
OTHER = Principal(owner_id="other", agent_id="eve")
INVESTIGATE = {"route": "fraud://tools/investigate", "params": {"user_id": 7}}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture
async def door(tmp_path: Path, catalog: Catalog) -> AsyncIterator[Door]:
    async with serve_catalog(tmp_path, catalog, max_body=100_000) as served:
        yield served


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(verify=False, timeout=PATIENCE) as client:
        yield client


def initialize() -> dict[str, Any]:
    about = {"name": "test", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}


def modern(method: str, **params: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """The body and the headers of a request of the stateless era."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": NEW,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    headers = {**ACCEPT, "MCP-Protocol-Version": NEW, "Mcp-Method": method}
    return body, {**headers, "Mcp-Name": params["name"]} if "name" in params else headers


async def open_session(http: httpx.AsyncClient, door: Door, by: Principal = ME) -> dict[str, str]:
    """The headers of a session of the handshake era."""
    headers = {**ACCEPT, **door.headers(by)}
    answer = await http.post(door.url, json=initialize(), headers=headers)
    assert answer.status_code == 200, answer.text
    session = {**headers, "Mcp-Session-Id": answer.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert (await http.post(door.url, json=ready, headers=session)).status_code == 202
    return session


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_lists_asks_gets_and_reads(door: Door, era: str) -> None:
    told: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    async with door.client(era) as client:
        assert [each.name for each in (await client.list_tools()).tools] == ["ask", "get"]
        asked = await client.call_tool("ask", {"query": "is this user a fraud?"})
        assert asked.structured_content is not None
        arguments = {"routes": [INVESTIGATE] * 3, "handle": asked.structured_content["handle"]}
        done = await client.call_tool("get", arguments, progress_callback=hear)
        assert done.structured_content is not None
        assert done.structured_content["summary"] == {"total": 3, "success": 3, "failed": 0}
        assert (await client.read_resource("fraud://resources/handbook")).contents
    assert told == [1, 2, 3]


@pytest.mark.parametrize("era", ERAS)
async def test_a_cancelled_call_ends_the_work(door: Door, gate: Gate, era: str) -> None:
    async with door.client(era) as client:
        call = asyncio.create_task(client.call_tool("get", {"routes": [{"route": "fraud://tools/wait"}]}))
        await asyncio.wait_for(gate.entered.wait(), PATIENCE)
        call.cancel()
        assert await asyncio.wait_for(gate.cancelled.wait(), PATIENCE)


@pytest.mark.req("BEY-01")
@pytest.mark.req("ERN-07")
async def test_a_thousand_listings_are_the_same_bytes_on_both_eras(door: Door, http: httpx.AsyncClient) -> None:
    body, headers = modern("tools/list")
    new, old = {**headers, **door.headers()}, await open_session(http, door)
    before = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    seen: dict[str, set[bytes]] = {"old": set(), "new": set()}
    for _ in range(500):
        of_new = await http.post(door.url, json=body, headers=new)
        of_old = await http.post(door.url, json=before, headers=old)
        seen["new"].add(of_new.content)
        seen["old"].add(of_old.content)
    assert {era: len(found) for era, found in seen.items()} == {"old": 1, "new": 1}
    assert json.dumps(of_new.json()["result"]["tools"]) == json.dumps(_sse_result(of_old)["tools"])


def _sse_result(answer: httpx.Response) -> dict[str, Any]:
    data = next(line for line in answer.text.splitlines() if line.startswith("data: {"))
    result: dict[str, Any] = json.loads(data.removeprefix("data: "))["result"]
    return result


@pytest.mark.parametrize(
    ("given", "challenge"),
    [
        ({}, "Bearer"),
        ({"Authorization": "Basic YTpi"}, "Bearer"),
        ({"Authorization": "Bearer"}, 'Bearer error="invalid_token"'),
        ({"Authorization": "Bearer nonsense"}, 'Bearer error="invalid_token"'),
        ({"Authorization": "Bearer ÿÿ.ÿ.ÿ".encode("latin-1")}, 'Bearer error="invalid_token"'),
    ],
)
async def test_without_a_token_nothing_is_answered(
    door: Door, http: httpx.AsyncClient, given: dict[str, Any], challenge: str
) -> None:
    body, headers = modern("tools/list")
    for method, json_body, extra in (("POST", body, headers), ("POST", initialize(), ACCEPT), ("GET", None, ACCEPT)):
        answer = await http.request(method, door.url, json=json_body, headers={**extra, **given})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == challenge
        assert answer.json()["error"]["code"] == "not_authenticated"
        assert "tools" not in answer.text


async def test_a_token_says_whose_catalog_it_is(door: Door) -> None:
    for era in ERAS:
        async with door.client(era, OTHER) as client:
            asked = await client.call_tool("ask", {"query": "is this user a fraud?"})
            assert asked.structured_content is not None
            assert asked.structured_content["sections"] == []


@pytest.mark.parametrize(
    "thief",
    [
        OTHER,
        Principal(owner_id="acme", agent_id="bob"),
        Principal(owner_id="acme", agent_id="ann", scopes=frozenset({"more"})),
    ],
)
async def test_a_stolen_session_is_of_no_use(door: Door, http: httpx.AsyncClient, thief: Principal) -> None:
    session = await open_session(http, door)
    stolen = {**session, **door.headers(thief)}
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    for method, body in (("POST", listing), ("GET", None), ("DELETE", None)):
        assert (await http.request(method, door.url, json=body, headers=stolen)).status_code == 404
    assert (await http.post(door.url, json=listing, headers=session)).status_code == 200


async def test_a_session_goes_on_with_a_fresh_token_of_its_principal(door: Door, http: httpx.AsyncClient) -> None:
    session = await open_session(http, door)
    again = {**session, **door.headers(Principal(owner_id="acme", agent_id="ann"))}
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert (await http.post(door.url, json=listing, headers=again)).status_code == 200


async def test_one_principal_cannot_take_the_sessions_of_all_others(door: Door, http: httpx.AsyncClient) -> None:
    headers = {**ACCEPT, **door.headers()}
    answers = [await http.post(door.url, json=initialize(), headers=headers) for _ in range(MAX_SESSIONS_EACH + 2)]
    assert [each.status_code for each in answers] == [200] * MAX_SESSIONS_EACH + [429] * 2
    refused = answers[-1].json()["error"]
    assert (refused["code"], refused["message"]) == (
        "too_many_sessions",
        f"you have {MAX_SESSIONS_EACH} open sessions, which is the limit",
    )
    await open_session(http, door, OTHER)
    body, modern_headers = modern("tools/list")
    assert (await http.post(door.url, json=body, headers={**modern_headers, **door.headers()})).status_code == 200
    session = {**headers, "Mcp-Session-Id": answers[0].headers["mcp-session-id"]}
    assert (await http.delete(door.url, headers=session)).status_code == 200
    await open_session(http, door)


async def test_sessions_that_are_opened_at_once_are_counted_too(door: Door, http: httpx.AsyncClient) -> None:
    headers = {**ACCEPT, **door.headers()}
    opening = (http.post(door.url, json=initialize(), headers=headers) for _ in range(MAX_SESSIONS_EACH + 10))
    answers = await asyncio.gather(*opening)
    assert sorted(each.status_code for each in answers) == [200] * MAX_SESSIONS_EACH + [429] * 10


async def test_an_ended_session_is_gone(door: Door, http: httpx.AsyncClient) -> None:
    session = await open_session(http, door)
    assert (await http.delete(door.url, headers=session)).status_code == 200
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert (await http.post(door.url, json=listing, headers=session)).status_code == 404


@pytest.mark.parametrize(
    ("extra", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "localhost.evil.example:80"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "localhost"}, 200),
        ({"Origin": "http://localhost:3000"}, 200),
    ],
)
async def test_only_pages_of_this_machine_reach_it(
    door: Door, http: httpx.AsyncClient, extra: dict[str, str], status: int
) -> None:
    body, headers = modern("tools/list")
    answer = await http.post(door.url, json=body, headers={**headers, **door.headers(), **extra})
    assert answer.status_code == status


async def test_hosts_and_origins_can_be_configured(tmp_path: Path, catalog: Catalog, http: httpx.AsyncClient) -> None:
    body, headers = modern("tools/list")
    names = {"hosts": ["clew.example"], "origins": ["https://clew.example"]}
    async with serve_catalog(tmp_path, catalog, **names) as door:
        given = {**headers, **door.headers()}
        proxied = {**given, "Host": "clew.example", "Origin": "https://clew.example"}
        assert (await http.post(door.url, json=body, headers=proxied)).status_code == 200
        assert (await http.post(door.url, json=body, headers=given)).status_code == 421


async def test_a_body_over_the_limit_is_refused(door: Door, http: httpx.AsyncClient) -> None:
    body, headers = modern("tools/call", name="ask", arguments={"query": "x" * 200_000})
    answer = await http.post(door.url, json=body, headers={**headers, **door.headers()})
    assert answer.status_code == 413


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"jsonrpc":"2.0"}', b"\xff\xfe", b"[" * 50_000])
async def test_nonsense_is_refused_as_such(door: Door, http: httpx.AsyncClient, body: bytes) -> None:
    _, headers = modern("tools/list")
    for extra in (headers, ACCEPT):
        given = {"Content-Type": "application/json", **extra, **door.headers()}
        answer = await http.post(door.url, content=body, headers=given)
        assert 400 <= answer.status_code < 500
        assert "Traceback" not in answer.text


async def test_callers_at_the_same_time_get_their_own_answers(door: Door, http: httpx.AsyncClient) -> None:
    async def ask(number: int) -> bool:
        route = {"route": "fraud://tools/investigate", "params": {"user_id": number}}
        body, headers = modern("tools/call", name="get", arguments={"routes": [route]})
        answer = await http.post(door.url, json=body, headers={**headers, **door.headers()})
        return f"User {number} has" in answer.json()["result"]["content"][0]["text"]

    assert all(await asyncio.gather(*(ask(number) for number in range(50))))


async def test_it_is_mounted_behind_the_door_of_rest_and_ends_with_its_server(
    tmp_path: Path, catalog: Catalog, http: httpx.AsyncClient
) -> None:
    """An open stream of a session does not delay the end of the server. Answers that stream have a
    request id of their own each."""
    give_key(tmp_path)
    clock = SystemClock()
    keys, metrics = open_keys(tmp_path, clock), Metrics()
    mcp = build_mcp_app(catalog, keys)
    app = RestApp(Dispatcher({PATH: mcp}), asyncio.Event(), metrics=metrics, clock=clock, server=ServerConfig())
    stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()
    async with mcp.running(app.closing):
        server = asyncio.create_task(
            run_server(app, "127.0.0.1", 0, ready=lambda *at: address.set_result(at), stop=stop)
        )
        door = Door("http://{}:{}{}".format(*await asyncio.wait_for(address, PATIENCE), PATH), keys)
        session = await open_session(http, door)
        ids = []
        for _ in range(3):
            meta = {"progressToken": 1}
            body, headers = modern("tools/call", name="get", arguments={"routes": [INVESTIGATE]})
            body["params"]["_meta"] |= meta
            answer = await http.post(door.url, json=body, headers={**headers, **door.headers()})
            assert answer.headers["content-type"] == "text/event-stream"
            ids += answer.headers.get_list("x-request-id")
        assert len(ids) == len(set(ids)) == 3
        async with http.stream("GET", door.url, headers=session) as stream:
            assert stream.status_code == 200
            stop.set()
            async with asyncio.timeout(PATIENCE):
                assert [line async for line in stream.aiter_lines() if line.startswith("data: {")] == []
        await asyncio.wait_for(server, PATIENCE)
    assert b'path="/mcp"' in metrics.render()
