"""Owners cannot see each other's records, through any operation."""

from __future__ import annotations

import httpx
import pytest

from tests.servers import Served


async def one(http: httpx.AsyncClient, title: str, **more: object) -> str:
    created = await http.post("/breadcrumbs", json={"title": title, "context": {"text": title}} | more)
    assert created.status_code == 201, created.text
    id: str = created.json()["id"]
    return id


@pytest.mark.req("RCR-19")
async def test_another_owners_breadcrumb_does_not_exist(server: Served, owner: str) -> None:
    async with server.client(owner) as mine, server.client(f"{owner}-eve") as eve:
        id, other = await one(mine, "private zebra"), await one(mine, "zebra two")
        hers = await one(eve, "hers")
        await mine.post("/edges", json={"edges": [{"source": id, "target": other, "type": "related_to"}]})
        for path in ("", "/full", "/history", "/versions/1"):
            assert (await eve.get(f"/breadcrumbs/{id}{path}")).status_code == 404
        match = {"If-Match": '"1"'}
        assert (await eve.patch(f"/breadcrumbs/{id}", json={"title": "x"}, headers=match)).status_code == 404
        assert (await eve.delete(f"/breadcrumbs/{id}")).status_code == 404
        edge = {"source": hers, "target": id, "type": "related_to"}
        assert (await eve.post("/edges", json={"edges": [edge]})).status_code == 404
        assert [each["id"] for each in (await eve.get("/breadcrumbs")).json()["items"]] == [hers]
        hits = (await eve.post("/breadcrumbs/search", json={"text": "zebra"})).json()["hits"]
        assert id not in [each["breadcrumb"]["id"] for each in hits]
        events = (await eve.get("/events", params={"limit": 1000})).json()["items"]
        assert {each["breadcrumb_id"] for each in events} == {hers}
        walked = await eve.post("/edges/walk", json={"starts": [id]})
        assert walked.status_code == 404
        assert other not in walked.text


@pytest.mark.req("RCR-19")
async def test_absent_and_foreign_give_the_same_answer(server: Served, owner: str) -> None:
    async with server.client(owner) as mine, server.client(f"{owner}-eve") as eve:
        id = await one(mine, "private")
        foreign = (await eve.get(f"/breadcrumbs/{id}")).json()["error"]
        await mine.delete(f"/breadcrumbs/{id}")
        absent = (await eve.get(f"/breadcrumbs/{id}")).json()["error"]
    assert foreign == absent


async def test_a_breadcrumb_that_needs_a_scope_is_absent_without_it(server: Served, owner: str) -> None:
    insider = server.client(owner, scopes=frozenset({"hr", "eu"}))
    async with insider, server.client(owner, scopes=frozenset({"hr"})) as outsider:
        id = await one(insider, "salaries", scopes=["hr", "eu"])
        assert (await insider.get(f"/breadcrumbs/{id}")).status_code == 200
        assert (await outsider.get(f"/breadcrumbs/{id}")).status_code == 404


async def test_secrets_subscriptions_and_dead_letters_belong_to_their_owner(server: Served, owner: str) -> None:
    async with server.client(owner) as mine, server.client(f"{owner}-eve") as eve:
        await mine.put("/secrets/api", json={"value": "v"})
        await mine.post("/subscriptions", json={"name": "s"})
        assert (await eve.get("/secrets")).json() == {"items": []}
        assert (await eve.get("/subscriptions")).json() == {"items": []}
        assert (await eve.get("/dlq")).json() == {"items": []}
        assert (await eve.delete("/secrets/api")).status_code == 404
        assert (await eve.delete("/subscriptions/s")).status_code == 404
        assert (await mine.get("/secrets")).json() == {"items": ["api"]}
