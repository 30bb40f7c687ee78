"""Updates by expected version."""

from __future__ import annotations

import asyncio

import httpx
import pytest


async def make(http: httpx.AsyncClient, version: int = 1) -> str:
    created = await http.post("/breadcrumbs", json={"title": "v1", "context": {"n": 1}})
    path: str = created.headers["location"]
    for number in range(1, version):
        done = await http.patch(path, json={"context": {"n": number}}, headers={"If-Match": f'"{number}"'})
        assert done.headers["etag"] == f'"{number + 1}"'
    return path


@pytest.mark.req("RCR-04")
async def test_one_of_two_writers_on_version_5_gets_412_and_succeeds_after_merging(http: httpx.AsyncClient) -> None:
    path = await make(http, version=5)
    headers = {"If-Match": '"5"'}
    answers = await asyncio.gather(
        http.patch(path, json={"context": {"a": 1}}, headers=headers),
        http.patch(path, json={"context": {"b": 1}}, headers=headers),
    )
    assert sorted(each.status_code for each in answers) == [200, 412]
    lost = next(each for each in answers if each.status_code == 412)
    assert lost.json()["error"]["code"] == "conflict"
    assert lost.json()["error"]["data"] == {"id": path.rsplit("/", 1)[1], "expected": 5, "actual": 6}
    now = await http.get(f"{path}/full")
    merged = await http.patch(
        path, json={"context": now.json()["context"] | {"merged": True}}, headers={"If-Match": now.headers["etag"]}
    )
    assert (merged.status_code, merged.json()["version"]) == (200, 7)
    assert len(merged.json()["context"]) == 2


@pytest.mark.req("RCR-04")
async def test_an_update_without_the_version_it_was_made_from_is_428(http: httpx.AsyncClient) -> None:
    path = await make(http)
    refused = await http.patch(path, json={"title": "x"})
    assert refused.status_code == 428
    assert "If-Match" in refused.json()["error"]["hint"]


@pytest.mark.parametrize("given", ["1", "*", 'W/"1"', '"1", "2"', '"one"', '"-1"', '"' + "9" * 40 + '"', ""])
async def test_an_if_match_that_is_not_one_quoted_version_is_400(http: httpx.AsyncClient, given: str) -> None:
    path = await make(http)
    refused = await http.patch(path, json={"title": "x"}, headers={"If-Match": given})
    assert refused.status_code == 400, refused.text
    assert (await http.delete(path, headers={"If-Match": given})).status_code == 400


async def test_a_delete_may_name_the_version_and_then_checks_it(http: httpx.AsyncClient) -> None:
    path = await make(http, version=2)
    assert (await http.delete(path, headers={"If-Match": '"1"'})).status_code == 412
    assert (await http.delete(path, headers={"If-Match": '"2"'})).status_code == 204
    assert (await http.get(path)).status_code == 404
    assert (await http.delete(path)).status_code == 404


async def test_fields_that_are_not_given_stay_and_null_clears(http: httpx.AsyncClient) -> None:
    draft = {"title": "t", "context": {"a": 1}, "tags": ["x"], "schema_name": "note.v1"}
    path = (await http.post("/breadcrumbs", json=draft)).headers["location"]
    changed = (await http.patch(path, json={"schema_name": None}, headers={"If-Match": '"1"'})).json()
    assert {name: changed[name] for name in draft} == draft | {"schema_name": None}


@pytest.mark.req("RCR-05")
async def test_every_kept_version_is_readable_and_listed(http: httpx.AsyncClient) -> None:
    path = await make(http, version=4)
    assert (await http.get(f"{path}/versions/2")).json()["context"] == {"n": 1}
    history = (await http.get(f"{path}/history")).json()["items"]
    assert [each["version"] for each in history] == [1, 2, 3, 4]
    for absent in ("0", "5", "-1", "x", "9" * 5_000, "²"):
        assert (await http.get(f"{path}/versions/{absent}")).status_code == 404
