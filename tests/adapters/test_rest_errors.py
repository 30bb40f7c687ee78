"""Errors as a caller reads them: in plain words, with the place of the value and the next step."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from clew.access import Principal
from clew.adapters.rest.advice import advise
from clew.adapters.rest.app import OPERATIONS
from clew.adapters.rest.openapi import statuses_of
from clew.errors import ClewError
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Draft
from tests.servers import Served

UNKNOWN = "0198c0de-0000-7000-8000-00000000ffff"
NOTE = {"title": "t", "context": {}}


def error_of(response: httpx.Response, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    error: dict[str, Any] = response.json()["error"]
    return error


@pytest.mark.parametrize(
    ("body", "field", "message", "hint"),
    [
        ({"context": {}}, "title", "title: is missing", "It must be text"),
        (NOTE | {"title": 7}, "title", "title: must be text, not a whole number", "/docs"),
        (NOTE | {"tags": ["a", None]}, "tags[1]", "tags[1]: must be text, not null", "/docs"),
        (NOTE | {"tgas": []}, "tgas", "tgas: is not a field here", "Did you mean tags?"),
        (NOTE | {"embed": "alwys"}, "embed", "embed: 'alwys' is not one of the choices", "auto, never"),
        (NOTE | {"ttl": "soon"}, "ttl", "ttl: is not a time", "2026-01-01T00:00:00Z"),
        (NOTE | {"ttl": 7}, "ttl", "ttl: must be a time, an object or null, not a whole number", "2026-01-01"),
        (
            NOTE | {"ttl": {"kind": "usage", "max_reads": 1.5}},
            "ttl.max_reads",
            "ttl.max_reads: must be a whole number or null, not a fraction",
            "/docs",
        ),
    ],
)
async def test_a_value_is_named_by_its_place_in_plain_words(
    http: httpx.AsyncClient, body: Any, field: str, message: str, hint: str
) -> None:
    error = error_of(await http.post("/breadcrumbs", json=body), 422)
    assert (error["field"], error["message"]) == (field, message)
    assert hint in error["hint"]


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/edges", {"edges": [{"source": "a", "type": "calls"}]}, "edges[0].target: is missing"),
        ("/edges", {"edges": {}}, "edges: must be a list, not an object"),
        ("/edges/walk", {"starts": [], "depth": 99}, "depth: must be at most 32"),
        ("/edges/paths", {"starts": [], "max_cost": -1}, "max_cost: must be at least 0"),
        ("/edges/walk", {"starts": ["x"] * 1_001}, "starts: must have at most 1,000 entries"),
        ("/breadcrumbs/batch", {"items": [NOTE, 7]}, "items[1]: must be an object, not a whole number"),
    ],
)
async def test_a_value_deep_in_a_body_is_named_by_its_path(
    http: httpx.AsyncClient, path: str, body: Any, message: str
) -> None:
    error = error_of(await http.post(path, json=body), 422)
    assert error["message"] == message
    assert error["hint"]


@pytest.mark.parametrize(
    ("query", "message", "hint"),
    [
        ("limit=ten", "limit: must be a whole number", "/docs"),
        ("limit=2000", "limit: must be at most 1,000", "/docs"),
        ("limt=5", "limt: is not a parameter here", "Did you mean limit?"),
        ("order=newer", "order: 'newer' is not one of the choices", "Did you mean newest?"),
        ("created_after=now", "created_after: is not a time", "2026-01-01T00:00:00Z"),
        ('context_match={"pth":"a"}', "context_match[0].pth: is not a field here", "Did you mean path?"),
        ('context_match={"path":"a","op":"equal"}', "context_match[0].op: 'equal' is not one of the choices", "eq"),
    ],
)
async def test_a_parameter_is_explained(http: httpx.AsyncClient, query: str, message: str, hint: str) -> None:
    error = error_of(await http.get(f"/breadcrumbs?{query}"), 422)
    assert error["message"] == message
    assert hint in error["hint"]


@pytest.mark.parametrize(
    ("method", "path", "body", "hint"),
    [
        ("GET", f"/breadcrumbs/{UNKNOWN}", None, "GET /breadcrumbs lists"),
        ("GET", f"/breadcrumbs/{UNKNOWN}/full", None, "GET /breadcrumbs lists"),
        ("GET", f"/breadcrumbs/{UNKNOWN}/versions/x", None, "/history"),
        ("DELETE", f"/edges?source={UNKNOWN}&target=x&type=calls", None, "GET /breadcrumbs lists"),
        ("POST", "/edges/walk", {"starts": [UNKNOWN]}, "GET /breadcrumbs lists"),
        ("DELETE", "/subscriptions/nobody", None, "GET /subscriptions"),
        ("POST", "/dlq/nothing/retry", None, "GET /dlq"),
        ("DELETE", "/secrets/none", None, "GET /secrets"),
    ],
)
async def test_a_not_found_error_says_where_to_look(
    http: httpx.AsyncClient, method: str, path: str, body: Any, hint: str
) -> None:
    error = error_of(await http.request(method, path, json=body), 404)
    assert error["code"] == "not_found"
    assert hint in error["hint"]


async def test_a_conflict_names_the_present_version_and_how_to_go_on(http: httpx.AsyncClient) -> None:
    id = (await http.post("/breadcrumbs", json=NOTE)).json()["id"]
    for version in (1, 2):
        headers = {"If-Match": f'"{version}"'}
        assert (await http.patch(f"/breadcrumbs/{id}", json={"title": "u"}, headers=headers)).status_code == 200
    error = error_of(await http.patch(f"/breadcrumbs/{id}", json={"title": "v"}, headers={"If-Match": '"1"'}), 412)
    assert error["data"] == {"id": id, "expected": 1, "actual": 3}
    assert f"/breadcrumbs/{id}/full" in error["hint"]
    assert 'If-Match: "3"' in error["hint"]


async def test_an_already_exists_error_says_how_to_replace_it(http: httpx.AsyncClient) -> None:
    one, two = [(await http.post("/breadcrumbs", json=NOTE)).json()["id"] for _ in range(2)]
    edges = {"edges": [{"source": one, "target": two, "type": "depends_on"}]}
    assert (await http.post("/edges", json=edges)).status_code == 201
    assert '"replace": true' in error_of(await http.post("/edges", json=edges), 409)["hint"]
    assert "PATCH" in error_of(await http.post("/breadcrumbs", json=NOTE | {"id": one}), 409)["hint"]
    back = {"edges": [{"source": two, "target": one, "type": "depends_on"}]}
    error = error_of(await http.post("/edges", json=back), 409)
    assert error["code"] == "cycle_refused"
    assert error["hint"]


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("/breadcrumb", "/breadcrumbs"),
        ("/breadcrumbs/", "/breadcrumbs"),
        (f"/breadcrumb/{UNKNOWN}", "/breadcrumbs/{id}"),
        (f"/breadcrumbs/{UNKNOWN}/histroy", "/breadcrumbs/{id}/history"),
        ("/event/stream", "/events/stream"),
        ("/healthz", "/health"),
        ("/openapi.yaml", "/openapi.json"),
    ],
)
async def test_an_unknown_path_names_the_nearest(http: httpx.AsyncClient, path: str, nearest: str) -> None:
    error = error_of(await http.get(path), 404)
    assert error["code"] == "no_such_path"
    assert error["hint"].startswith(f"Did you mean {nearest}? ")


async def test_a_path_like_no_other_is_sent_to_the_list_of_paths(http: httpx.AsyncClient) -> None:
    error = error_of(await http.get("/wp-admin/setup.php" + "/x" * 5_000), 404)
    assert error["hint"].startswith("GET /openapi.json")


async def test_a_method_that_a_path_lacks_says_which_it_has(http: httpx.AsyncClient) -> None:
    error = error_of(await http.put("/breadcrumbs", json=NOTE), 405)
    assert error["code"] == "method_not_allowed"
    assert error["hint"] == "This path takes GET, HEAD, POST"


def every_class(root: type[ClewError] = ClewError) -> list[type[ClewError]]:
    return [root, *(each for child in root.__subclasses__() for each in every_class(child))]


@pytest.mark.parametrize("kind", every_class(), ids=lambda kind: kind.__name__)
def test_no_error_leaves_without_a_next_step(kind: type[ClewError]) -> None:
    error = kind.__new__(kind)
    ClewError.__init__(error, "it is so")
    vars(error).update(id="x", actual=1, kind="something new")
    assert advise(error)


def test_common_answers_are_documented_in_one_place() -> None:
    for operation in OPERATIONS:
        found = statuses_of(operation)
        assert {422, 500, 503} <= set(found)
        assert (507 in found) == operation.writes
        assert (404 in found) or "{" not in operation.path


async def test_a_tag_that_places_tools_is_refused(http: httpx.AsyncClient) -> None:
    tagged = {"title": "t", "context": {}, "tags": ["worker-place:shop"]}
    answers = [
        await http.post("/breadcrumbs", json=tagged),
        await http.post("/breadcrumbs/batch", json={"items": [tagged]}),
    ]
    made = (await http.post("/breadcrumbs", json={"title": "t", "context": {}, "tags": ["place:shop"]})).json()
    answers.append(
        await http.patch(f"/breadcrumbs/{made['id']}", json={"tags": tagged["tags"]}, headers={"If-Match": '"1"'})
    )
    assert [each.status_code for each in answers] == [422] * 3
    assert all("worker-place: is set by Clew only" in each.json()["error"]["message"] for each in answers)


async def test_an_update_may_send_back_the_place_that_clew_has_set(
    server: Served, http: httpx.AsyncClient, owner: str
) -> None:
    trail = await open_trail(f"sqlite://{server.folder}/trail.db")
    try:
        draft = Draft(title="t", context={}, tags=["worker-place:shop"])
        made = await trail.records.create(draft, by=Principal(owner_id=owner, agent_id="clew"))
    finally:
        await trail.close()
    tags, path = ["worker-place:shop", "topic:new"], f"/breadcrumbs/{made.id}"
    kept = await http.patch(path, json={"tags": tags}, headers={"If-Match": '"1"'})
    assert (kept.status_code, kept.json().get("tags")) == (200, tags)
    other = await http.patch(path, json={"tags": ["worker-place:other"]}, headers={"If-Match": '"2"'})
    assert other.status_code == 422
