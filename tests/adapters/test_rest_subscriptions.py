"""Subscriptions, refused webhook addresses, and retried dead letters."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from clew.access import ROLES, Principal
from clew.config import Config, WebhookConfig
from tests.servers import serve

ADA = Principal(owner_id="ada", agent_id="tester")


@pytest.mark.req("RCR-24")
@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/x",
        "http://169.254.169.254/latest/meta-data",
        "http://10.0.0.1/",
        "http://[::1]/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "not a url",
        "",
    ],
)
async def test_a_webhook_to_an_address_that_is_not_allowed_is_refused(http: httpx.AsyncClient, url: str) -> None:
    await http.put("/secrets/hook", json={"value": "v"})
    refused = await http.post("/subscriptions", json={"name": "w", "webhook": {"url": url, "secret": "hook"}})
    assert refused.status_code == 422, refused.text
    assert refused.json()["error"]["code"] in ("delivery_refused", "invalid_input")
    assert (await http.get("/subscriptions")).json() == {"items": []}


@pytest.mark.req("RCR-24")
async def test_the_retry_of_a_webhook_is_honoured_or_refused(tmp_path: Path) -> None:
    config = Config(webhooks=WebhookConfig(allow=("127.0.0.0/8",)))
    async with serve(tmp_path, config=config) as served, served.client() as http:
        await http.put("/secrets/hook", json={"value": "v"})
        body = {"name": "w", "webhook": {"url": "http://127.0.0.1:9/", "secret": "hook"}}
        plain = await http.post("/subscriptions", json=body)
        given = await http.post("/subscriptions", json=body | {"retry": {"attempts": 2, "backoff": 30}})
        refused = await http.post("/subscriptions", json=body | {"retry": {"attempts": 101}})
        flood = await http.post("/subscriptions", json=body | {"retry": {"attempts": 100, "backoff_limit": 0}})
    assert plain.json()["consumer"]["retry"]["attempts"] == 8
    assert (given.json()["consumer"]["retry"]["attempts"], given.json()["consumer"]["retry"]["backoff"]) == (2, 30)
    assert (refused.status_code, flood.status_code) == (422, 422)
    assert refused.json()["error"]["field"] == flood.json()["error"]["field"] == "retry"


@pytest.mark.req("RCR-23")
async def test_a_subscription_is_created_changed_listed_and_forgotten(http: httpx.AsyncClient) -> None:
    first = await http.post("/subscriptions", json={"name": "s", "selector": {"any_tags": ["a"]}})
    again = await http.post("/subscriptions", json={"name": "s", "selector": {"any_tags": ["b"]}})
    assert (first.status_code, again.status_code) == (201, 201)
    [listed] = (await http.get("/subscriptions")).json()["items"]
    assert listed["id"] == first.json()["id"]
    assert listed["consumer"]["selector"] == {"any_tags": ["b"]}
    assert (await http.delete("/subscriptions/s")).status_code == 204
    assert (await http.delete("/subscriptions/s")).status_code == 404


@pytest.mark.req("RCR-24")
@pytest.mark.req("RCR-03")
async def test_a_dead_letter_is_listed_and_retrying_it_makes_it_pending_again(tmp_path: Path) -> None:
    async with serve(tmp_path) as served, served.client() as http:
        once = {"attempts": 1, "backoff": 0.0}
        await http.post("/subscriptions", json={"name": "s", "retry": once, "selector": {"any_tags": ["a"]}})
        created = await http.post("/breadcrumbs", json={"title": "t", "context": {}, "tags": ["a"]})
        [claim] = await served.trail.deliveries.claim("s", by=ADA, worker="w")
        assert await served.trail.deliveries.fail(claim, "no such luck", by=ADA)

        [letter] = (await http.get("/dlq", params={"subscription": "s"})).json()["items"]
        assert letter["reason"] == "no such luck"
        assert letter["event"]["breadcrumb_id"] == created.json()["id"]
        assert (await http.get("/dlq", params={"subscription": "other"})).json()["items"] == []

        assert (await http.post(f"/dlq/{letter['id']}/retry")).status_code == 202
        assert (await http.get("/dlq")).json()["items"] == []
        [claim] = await served.trail.deliveries.claim("s", by=ADA, worker="w")
        assert await served.trail.deliveries.fail(claim, "again", by=ADA)

        [letter] = (await http.get("/dlq")).json()["items"]
        assert (await http.delete(f"/dlq/{letter['id']}")).status_code == 204
        assert (await http.post(f"/dlq/{letter['id']}/retry")).status_code == 404


@pytest.mark.req("RCR-19")
@pytest.mark.parametrize("name", ["models-runner", "tools-runner", "tools-runner/permissions", "agent/x", "context/x"])
async def test_nobody_deletes_or_redefines_the_consumers_of_the_runtime(tmp_path: Path, name: str) -> None:
    async with serve(tmp_path) as served:
        for roles in (frozenset({"subscriber"}), ROLES):
            async with served.client("ada", roles) as client:
                deleted = await client.delete(f"/subscriptions/{name}")
                changed = await client.post("/subscriptions", json={"name": name, "selector": {"schema_name": "x"}})
            assert [deleted.status_code, changed.status_code] == [403, 403]
            assert "Clew's own" in deleted.json()["error"]["message"]
