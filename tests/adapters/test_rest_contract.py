"""Every operation of the route table, over real HTTP, compared with the published document."""

from __future__ import annotations

import re
from typing import Any

import httpx
import jsonschema_rs
import pytest

from clew.adapters.rest.app import OPERATIONS
from tests.servers import Served

NOTE = {"title": "Moon landing", "context": {"text": "the eagle has landed"}, "tags": ["space", "session:s1"]}


class Contract:
    """Sends requests and checks each answer against the document of the server."""

    def __init__(self, http: httpx.AsyncClient, document: dict[str, Any]) -> None:
        self.http = http
        self.document = document
        self.seen: set[tuple[str, str]] = set()

    async def call(self, method: str, path: str, status: int, /, at: str = "", **request: Any) -> httpx.Response:
        response = await self.http.request(method, at or path, **request)
        assert response.status_code == status, response.text
        self.check(method, path, response)
        self.seen.add((method, path))
        return response

    def check(self, method: str, path: str, response: httpx.Response) -> None:
        responses = self.document["paths"][path][method.lower()]["responses"]
        content = responses[str(response.status_code)].get("content", {})
        kind = response.headers.get("content-type", "").split(";")[0]
        assert kind in content or (not content and not response.content)
        if kind == "application/json":
            schema = content[kind]["schema"] | {"components": self.document["components"]}
            jsonschema_rs.validator_for(schema).validate(response.json())


@pytest.fixture
async def contract(http: httpx.AsyncClient) -> Contract:
    return Contract(http, (await http.get("/openapi.json")).json())


async def use_breadcrumbs(contract: Contract) -> list[str]:
    """Test all operations on breadcrumbs, and return the ids of two that remain."""
    call = contract.call
    first = (await call("POST", "/breadcrumbs", 201, json=NOTE)).json()
    one = f"/breadcrumbs/{first['id']}"
    batch = {"items": [{"title": "Two", "context": {}}, {"title": "Three", "context": {}}]}
    left = (await call("POST", "/breadcrumbs/batch", 201, json=batch)).json()["items"]
    await call("GET", "/breadcrumbs", 200, params={"tag": "space"})
    await call("GET", "/breadcrumbs/search", 200, params={"q": "eagle"})
    await call("POST", "/breadcrumbs/search", 200, json={"text": "eagle", "limit": 3})
    await call("GET", "/breadcrumbs/{id}", 200, at=one)
    await call("GET", "/breadcrumbs/{id}/full", 200, at=f"{one}/full", params={"vector": "true"})
    await call("PATCH", "/breadcrumbs/{id}", 200, at=one, json={"title": "Mars"}, headers={"If-Match": '"1"'})
    await call("GET", "/breadcrumbs/{id}/history", 200, at=f"{one}/history")
    await call("GET", "/breadcrumbs/{id}/versions/{n}", 200, at=f"{one}/versions/1")
    await call("DELETE", "/breadcrumbs/{id}", 204, at=one)
    return [each["id"] for each in left]


async def use_edges(contract: Contract, source: str, target: str) -> None:
    call = contract.call
    edge = {"source": source, "target": target, "type": "depends_on"}
    await call("POST", "/edges", 201, json={"edges": [edge]})
    await call("GET", "/breadcrumbs/{id}/edges", 200, at=f"/breadcrumbs/{source}/edges")
    await call("POST", "/edges/walk", 200, json={"starts": [source]})
    await call("POST", "/edges/paths", 200, json={"starts": [source]})
    await call("DELETE", "/edges", 204, params=edge)


async def use_events(contract: Contract) -> None:
    call = contract.call
    await call("GET", "/events", 200, params={"limit": 2})
    await call("GET", "/events/stream", 401, headers={"Authorization": ""})
    await call("POST", "/subscriptions", 201, json={"name": "a/b", "selector": {"any_tags": ["space"]}})
    await call("GET", "/subscriptions", 200)
    await call("DELETE", "/subscriptions/{name}", 204, at="/subscriptions/a%2Fb")
    await call("GET", "/dlq", 200)
    await call("POST", "/dlq/{id}/retry", 404, at="/dlq/nothing/retry")
    await call("DELETE", "/dlq/{id}", 404, at="/dlq/nothing")


async def use_catalog(contract: Contract, operator: dict[str, str]) -> None:
    call = contract.call
    await call("POST", "/ask", 200, json={"query": "anything"}, headers=operator)
    await call("POST", "/get", 200, json={"routes": [{"route": "docs://resources/nothing"}]}, headers=operator)
    await call("GET", "/why", 200, params={"route": "docs://tools/nothing"}, headers=operator)
    await call("GET", "/why/{kind}/{name}", 200, at="/why/skill/nothing", headers=operator)
    await call("GET", "/domains", 200, headers=operator)
    await call("GET", "/sources", 200, headers=operator)
    await call("POST", "/sources/refresh", 200, json={}, headers=operator)


async def use_agents(contract: Contract, operator: dict[str, str], id: str) -> None:
    call, answer = contract.call, {"answer": "deny"}
    await call("POST", "/route", 200, json={"message": "/session list"}, headers=operator)
    await call("POST", "/chat", 404, json={"message": "hello", "agent": "nobody"}, headers=operator)
    await call("GET", "/sessions", 200, headers=operator)
    await call("GET", "/sessions/{session}", 404, at="/sessions/nothing", headers=operator)
    await call("POST", "/sessions/{session}/cancel", 404, at="/sessions/nothing/cancel", headers=operator)
    begun = await call("POST", "/sessions", 201, json={"name": "work"}, headers=operator)
    session = f"/sessions/{begun.json()['id']}"
    for action, status in (("focus", 200), ("suspend", 200), ("suspend", 409), ("resume", 200), ("close", 200)):
        await call("POST", f"/sessions/{{session}}/{action}", status, at=f"{session}/{action}", headers=operator)
    await call("POST", "/permissions/{request_id}", 404, at="/permissions/nothing", json=answer, headers=operator)
    await call("GET", "/why/context/{id}", 404, at=f"/why/context/{id}0", headers=operator)
    await call("GET", "/why/context/{id}/{item}", 404, at=f"/why/context/{id}/x", headers=operator)
    await call("GET", "/usage", 200, headers=operator)
    await call("GET", "/agents", 200, headers=operator)
    await call("GET", "/workers", 200, headers=operator)


NOBODY = "nothing-of-this-name"
TEAM_BODIES: dict[str, dict[str, Any]] = {
    "/plans": {"request": "add a function"},
    "/plans/{session}/modify": {"text": "smaller"},
    "/plans/{session}/answer": {"text": "yes"},
    "/plans/{session}/interrupt": {"kind": "halt"},
    "/tasks/{session}/{task}": {"action": "query", "text": "how far?"},
    "/tasks/{session}/{task}/choice": {"choice": "retry"},
    "/sessions/{session}/context": {"task": "limits"},
    "/entries/{entry}/unpromote": {"reason": "wrong"},
}


async def use_team(contract: Contract, operator: dict[str, str]) -> None:
    """The team and the details of sessions. There is no such session, and the server has no team."""
    groups = ("/plans", "/tasks", "/messages", "/sessions", "/entries")
    for each in OPERATIONS:
        if (each.method, each.path) in contract.seen or not each.path.startswith(groups):
            continue
        at, body = re.sub(r"\{\w+\}", NOBODY, each.path), TEAM_BODIES.get(each.path)
        status = 200 if at == "/sessions/close" else 404
        await contract.call(each.method, each.path, status, at=at, json=body, headers=operator)


async def use_upkeep(contract: Contract, operator: dict[str, str], credential: str) -> None:
    """Hygiene, secrets, tokens, and the public routes of a server."""
    call = contract.call
    await call("POST", "/hygiene/run", 200, headers=operator)
    await call("GET", "/hygiene/stats", 200, headers=operator)
    await call("PUT", "/secrets/{name}", 204, at="/secrets/hook", json={"value": "s3cr3t"})
    await call("GET", "/secrets", 200)
    await call("DELETE", "/secrets/{name}", 204, at="/secrets/hook")
    asked = {"owner_id": "ada", "agent_id": "a1", "roles": ["subscriber"]}
    await call("POST", "/auth/token", 200, json=asked, headers={"X-Clew-Credential": credential})
    await call("POST", "/auth/stream-token", 200)
    for path in ("/", "/health", "/ready", "/metrics", "/openapi.json", "/docs"):
        await call("GET", path, 200)


@pytest.mark.req("RCR-03")
async def test_every_operation_answers_as_the_document_says(contract: Contract, server: Served) -> None:
    operator = server.headers("local")
    second, third = await use_breadcrumbs(contract)
    await use_edges(contract, second, third)
    await use_events(contract)
    await use_catalog(contract, operator)
    await use_agents(contract, operator, third)
    await use_team(contract, operator)
    await use_upkeep(contract, operator, server.credential)
    assert contract.seen == {(each.method, each.path) for each in OPERATIONS}


async def test_a_created_breadcrumb_is_found_at_its_location_with_its_version_as_etag(http: httpx.AsyncClient) -> None:
    created = await http.post("/breadcrumbs", json=NOTE)
    found = await http.get(created.headers["location"])
    assert created.headers["etag"] == found.headers["etag"] == '"1"'
    assert found.json()["context"] == NOTE["context"]


async def test_the_full_breadcrumb_keeps_every_field_that_was_given(http: httpx.AsyncClient) -> None:
    given = NOTE | {
        "schema_name": "note.v1",
        "scopes": ["team"],
        "llm_hints": {"include": ["text"]},
        "entities": {"people": ["Neil"]},
        "ttl": {"kind": "usage", "max_reads": 5},
        "context": {"text": "héllo ☃ \u2028 line", "n": 2**60, "deep": {"list": [1, None, True]}},
    }
    created = (await http.post("/breadcrumbs", json=given)).json()
    async with httpx.AsyncClient(verify=False, base_url=http.base_url, headers=http.headers) as same:
        listed = (await same.get("/breadcrumbs")).json()["items"]
    assert listed == []  # the caller lacks the scope that it gave
    assert {name: created[name] for name in given if name not in ("ttl", "tags")} == {
        name: value for name, value in given.items() if name not in ("ttl", "tags")
    }


@pytest.mark.req("RCR-06")
async def test_a_repeated_idempotency_key_answers_with_the_first_breadcrumb(http: httpx.AsyncClient) -> None:
    headers = {"Idempotency-Key": "once"}
    first = await http.post("/breadcrumbs", json=NOTE, headers=headers)
    again = await http.post("/breadcrumbs", json=NOTE, headers=headers)
    assert (again.status_code, again.json()["id"]) == (201, first.json()["id"])
    assert len((await http.get("/breadcrumbs")).json()["items"]) == 1


@pytest.mark.req("RCR-10")
async def test_a_ttl_may_be_a_time_alone(http: httpx.AsyncClient) -> None:
    created = await http.post("/breadcrumbs", json=NOTE | {"ttl": "2999-01-01T00:00:00+02:00"})
    assert created.json()["ttl"] == {"kind": "datetime", "expires_at": "2998-12-31T22:00:00Z"}
    changed = await http.patch(
        created.headers["location"], json={"ttl": "2999-01-02T00:00:00Z"}, headers={"If-Match": '"1"'}
    )
    assert changed.json()["ttl"]["expires_at"] == "2999-01-02T00:00:00Z"


async def test_listing_goes_on_from_the_cursor_in_either_order(http: httpx.AsyncClient) -> None:
    for number in range(5):
        await http.post("/breadcrumbs", json={"title": f"n{number}", "context": {}})

    async def titles(order: str) -> list[str]:
        found: list[str] = []
        params = {"limit": "2", "order": order}
        while True:
            page = (await http.get("/breadcrumbs", params=params)).json()
            found += [each["title"] for each in page["items"]]
            if page["cursor"] is None:
                return found
            params["cursor"] = page["cursor"]

    assert await titles("oldest") == ["n0", "n1", "n2", "n3", "n4"]
    assert await titles("newest") == ["n4", "n3", "n2", "n1", "n0"]


async def test_every_filter_of_a_listing_narrows_it(http: httpx.AsyncClient) -> None:
    tags = ["red", "session:s9"]
    wanted = {"title": "w", "context": {"path": "src/a.py", "n": 7}, "tags": tags, "schema_name": "file.v1"}
    await http.post("/breadcrumbs", json=wanted)
    await http.post("/breadcrumbs", json={"title": "other", "context": {}, "tags": ["blue"]})
    filters: list[dict[str, Any]] = [
        {"tag": "red"},
        {"all_tags": ["red", "session:s9"]},
        {"any_tags": ["red", "green"]},
        {"tag_prefix": "session:"},
        {"schema_name": ["file.v1", "none.v1"]},
        {"session": "s9"},
        {"path": "src/*.py"},
        {"context_match": '{"path": "n", "op": "gt", "value": 6}'},
        {"tag": "red", "created_after": "2020-01-01T00:00:00Z", "created_before": "2999-01-01T00:00:00Z"},
    ]
    for params in filters:
        items = (await http.get("/breadcrumbs", params=params)).json()["items"]
        assert [each["title"] for each in items] == ["w"], params
    assert (await http.get("/breadcrumbs", params={"tag": "red", "any_tags": "blue"})).json()["items"] == []


async def test_a_batch_with_one_bad_breadcrumb_writes_none(http: httpx.AsyncClient) -> None:
    batch = {"items": [NOTE, {"title": " ", "context": {}}]}
    refused = await http.post("/breadcrumbs/batch", json=batch)
    assert refused.status_code == 422
    assert (await http.get("/breadcrumbs")).json()["items"] == []


async def test_head_answers_as_get_without_a_body(http: httpx.AsyncClient) -> None:
    got, headed = await http.get("/health"), await http.head("/health")
    assert (headed.status_code, headed.content) == (200, b"")
    assert headed.headers["content-length"] == got.headers["content-length"]


@pytest.mark.req("RCR-12")
async def test_hygiene_run_by_hand_is_counted(server: Served) -> None:
    async with server.client("local") as http:
        before = (await http.get("/hygiene/stats")).json()
        assert set((await http.post("/hygiene/run")).json()) == {"breadcrumbs", "agents", "subscriptions"}
        after = (await http.get("/hygiene/stats")).json()
    assert after["runs_completed"] == before["runs_completed"] + 1
    assert set(after) == {
        "runs_completed",
        "total_breadcrumbs_purged",
        "last_run_duration_ms",
        "hygiene_enabled",
    }


@pytest.mark.req("RCR-19")
async def test_hygiene_counts_over_all_owners_so_only_the_servers_owner_may_see_it(http: httpx.AsyncClient) -> None:
    assert (await http.get("/hygiene/stats")).status_code == 403
    assert (await http.post("/hygiene/run")).status_code == 403


async def test_a_secret_can_be_written_and_named_but_not_read(http: httpx.AsyncClient) -> None:
    assert (await http.put("/secrets/api", json={"value": "hunter2-value"})).status_code == 204
    assert (await http.get("/secrets")).json() == {"items": ["api"]}
    assert (await http.get("/secrets/api")).status_code == 405
    refused = await http.put("/secrets/api", json={"value": ["hunter2-value"]})
    assert refused.status_code == 422
    assert "hunter2" not in refused.text


@pytest.mark.req("RCR-29")
async def test_a_request_keeps_its_id_when_that_is_well_formed(http: httpx.AsyncClient) -> None:
    kept = await http.get("/health", headers={"X-Request-Id": "job-42.a"})
    assert kept.headers["x-request-id"] == "job-42.a"
    replaced = await http.get("/health", headers={"X-Request-Id": "a b<script>"})
    assert "script" not in replaced.headers["x-request-id"]
    another = await http.get("/health", headers={"X-Request-Id": "a" * 129})
    assert replaced.headers["x-request-id"] != another.headers["x-request-id"]
    assert len(another.headers["x-request-id"]) < 60
