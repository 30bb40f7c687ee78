"""Hostile and mistaken input: every case ends in a clear 4xx, none in a 5xx."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import msgspec
import pytest

from tests.servers import PATIENCE, Served

JSON = {"Content-Type": "application/json"}


def note(**change: Any) -> bytes:
    return msgspec.json.encode({"title": "t", "context": {}} | change)


def error_of(response: httpx.Response, status: int) -> dict[str, Any]:
    assert response.status_code == status, (response.status_code, response.text[:300])
    error: dict[str, Any] = response.json()["error"]
    assert error["code"]
    assert error["message"]
    assert error["hint"]
    assert "`" not in error["message"]
    assert "Traceback" not in response.text
    return error


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nul",
        b"{'title': 1}",
        b'\xef\xbb\xbf{"title":"t","context":{}}',
        b'{"title":"a\xff","context":{}}',
        b'{"title":"\xed\xa0\x80","context":{}}',
        b'{"title":"a\x00b","context":{}}',
        b'{"title":"\\ud800","context":{}}',
        b'{"title":"t","context":{"a":"\\udc00\\ud800"}}',
        b'{"title":"t","context":{"a":NaN}}',
        b'{"title":"t","context":' + b'{"a":' * 200_000 + b"1" + b"}" * 200_001,
        b'{"title":"t","context":{"a":' + b"[" * 500_000 + b"]" * 500_000 + b"}}",
    ],
    ids=lambda body: repr(body[:40]),
)
async def test_a_body_that_is_not_json_is_400(http: httpx.AsyncClient, body: bytes) -> None:
    error = error_of(await http.post("/breadcrumbs", content=body, headers=JSON), 400)
    assert error["code"] == "malformed"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"[]", "body"),
        (b"{}", "title"),
        (note(title=7), "title"),
        (note(title=""), "title"),
        (note(title="a\x00b"), "title"),
        (note(context=[]), "context"),
        (note(tags=["ok", 7]), "tags[1]"),
        (note(tags="abc"), "tags"),
        (note(tags=["new\nline"]), "tags[0]"),
        (note(unknown=1), "unknown"),
        (note(ttl="tomorrow"), "ttl"),
        (note(ttl={"kind": "usage"}), "ttl.max_reads"),
        (note(ttl="2030-01-01T00:00:00"), "ttl.expires_at"),
        (note(ttl="9999-12-31T23:59:59-14:00"), "ttl.expires_at"),
        (note(ttl="0001-01-01T00:00:00+14:00"), "ttl.expires_at"),
        (note(ttl="10000-01-01T00:00:00Z"), "ttl"),
        (note(ttl={"kind": "usage", "max_reads": 2**63}), "ttl.max_reads"),
        (note(schema_name="no spaces please"), "schema_name"),
        (note(id="../../etc/passwd"), "id"),
        (note(embedding=["x"]), "embedding[0]"),
        (b'{"title":"t","context":{"n":1e999}}', "context[...]"),
        (b'{"title":"t","context":{"n":' + b"9" * 5_000 + b"}}", "context"),
        (
            note(context={"a": [[]] * 3, "deep": [[[[[[[[[[[[[[]]]]]]]]]]]]]]}, idempotency_key="a\nb"),
            "idempotency_key",
        ),
    ],
)
async def test_a_value_that_breaks_a_rule_is_422_and_named(http: httpx.AsyncClient, body: bytes, field: str) -> None:
    error = error_of(await http.post("/breadcrumbs", content=body, headers=JSON), 422)
    assert error["field"].startswith(field)


async def test_json_nested_deeper_than_the_limit_is_422(http: httpx.AsyncClient) -> None:
    body = b'{"title":"t","context":{"a":' + b"[" * 100 + b"]" * 100 + b"}}"
    assert "64 levels" in error_of(await http.post("/breadcrumbs", content=body, headers=JSON), 422)["message"]


async def test_a_hundred_thousand_tags_are_413(http: httpx.AsyncClient) -> None:
    body = note(tags=[f"t{number}" for number in range(100_000)])
    assert error_of(await http.post("/breadcrumbs", content=body, headers=JSON), 413)["field"] == "tags"


async def test_a_body_over_the_limit_is_413_and_the_connection_goes_on(http: httpx.AsyncClient) -> None:
    for _ in range(3):
        error = error_of(await http.post("/breadcrumbs", content=b"x" * 10_000_000, headers=JSON), 413)
        assert error["data"]["limit"] == 8_000_000
    assert (await http.get("/breadcrumbs")).status_code == 200


async def test_a_body_of_unannounced_length_is_413_once_it_is_over_the_limit(http: httpx.AsyncClient) -> None:
    async def endless() -> Any:
        for _ in range(200):
            yield b"x" * 100_000

    error_of(await http.post("/breadcrumbs", content=endless(), headers=JSON), 413)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "json", ""])
async def test_a_body_that_says_it_is_something_else_is_415(http: httpx.AsyncClient, kind: str) -> None:
    error_of(await http.post("/breadcrumbs", content=note(), headers={"Content-Type": kind}), 415)


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON; charset=utf-8"])
async def test_json_may_name_its_charset(http: httpx.AsyncClient, kind: str) -> None:
    assert (await http.post("/breadcrumbs", content=note(), headers={"Content-Type": kind})).status_code == 201


@pytest.mark.parametrize(
    "path", ["/nothing", "/breadcrumbs/", "/Breadcrumbs", "/breadcrumbs/a/b/c/d", "/%00", "/..%2f"]
)
async def test_a_path_that_is_not_there_is_404_as_json(http: httpx.AsyncClient, path: str) -> None:
    assert error_of(await http.get(path), 404)["code"] == "no_such_path"


@pytest.mark.parametrize(
    "id", ["x", "%00", "%ff", "%F0%9F%98%80", "'; DROP TABLE breadcrumbs; --", "a" * 5_000, "..%2F..", "ID"]
)
async def test_an_id_that_nobody_has_is_404(http: httpx.AsyncClient, id: str) -> None:
    for rest in ("", "/full", "/history", "/versions/1"):
        error_of(await http.get(f"/breadcrumbs/{id}{rest}"), 404)
    error_of(await http.delete(f"/breadcrumbs/{id}"), 404)


async def test_a_method_that_a_path_lacks_is_405_with_those_it_has(http: httpx.AsyncClient) -> None:
    for method, path, allowed in (
        ("PUT", "/breadcrumbs", "GET, HEAD, POST"),
        ("POST", "/breadcrumbs/abc", "DELETE, GET, HEAD, PATCH"),
        ("OPTIONS", "/edges", "DELETE, POST"),
        ("TRACE", "/health", "GET, HEAD"),
    ):
        response = await http.request(method, path)
        error_of(response, 405)
        assert response.headers["allow"] == allowed


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=-1", "limit"),
        ("limit=1001", "limit"),
        ("limit=99999999999999999999999999", "limit"),
        ("limit=ten", "limit"),
        ("limit=1&limit=2", "limit"),
        ("limt=3", "limt"),
        ("order=sideways", "order"),
        ("cursor=garbage", "cursor"),
        ("created_after=yesterday", "created_after"),
        ("created_after=2026-01-01T00:00:00", "created_after"),
        ("context_match=x", "context_match[0]"),
        ("context_match={}", "context_match[0].path"),
        ("context_match=" + "[" * 5_000, "context_match[0]"),
        ('context_match={"path":"a","op":"like"}', "context_match[0].op"),
        ('context_match={"path":"a..b"}', "context_match[0].path"),
        ("tag_prefix=", "tag_prefix"),
        ("path=" + "a" * 2_000, "path"),
    ],
)
async def test_a_query_that_breaks_a_rule_is_refused_and_named(http: httpx.AsyncClient, query: str, field: str) -> None:
    response = await http.get(f"/breadcrumbs?{query}")
    assert error_of(response, 413 if field == "path" else 422)["field"] == field


@pytest.mark.parametrize("query", ["tag=%ff", "tag=%ed%a0%80", "q=%00", "tag=a%00b"])
async def test_a_query_that_is_not_text_is_400(http: httpx.AsyncClient, query: str) -> None:
    path = "/breadcrumbs/search" if query.startswith("q") else "/breadcrumbs"
    error_of(await http.get(f"{path}?{query}"), 400)


async def test_thousands_of_parameters_are_refused(http: httpx.AsyncClient) -> None:
    error_of(await http.get("/breadcrumbs?" + "&".join(f"tag=t{number}" for number in range(5_000))), 413)
    error_of(await http.get("/breadcrumbs?" + "&".join(f"tag=t{number}" for number in range(500))), 413)


FTS = ['"', '""', "*", "a*", "NEAR", "NEAR(a b, 2)", "a AND", "AND OR NOT", "(((", "col:x", "^a", "a -b", "{a b}: c"]
FTS += [
    "'; DROP TABLE x",
    "\\",
    "%",
    "_",
    "a\u2028b",
    "😀",
    "\u202e",
    "a" * 20_000,
    "title : eagle",
    "- - -",
    "+",
    "\ufffd",
]


@pytest.mark.parametrize("text", FTS, ids=lambda text: repr(text[:20]))
async def test_query_syntax_in_search_text_is_plain_text(http: httpx.AsyncClient, text: str) -> None:
    await http.post("/breadcrumbs", json={"title": "The eagle AND the snail", "context": {"text": "NEAR the sea"}})
    for ranking in ("default", "text", "rcrt", "rrf"):
        response = await http.post("/breadcrumbs/search", json={"text": text, "ranking": ranking})
        assert response.status_code == 200, response.text


@pytest.mark.parametrize(
    "request_body",
    [
        {},
        {"text": "   "},
        {"text": "a" * 20_001},
        {"text": "a", "limit": 10**9},
        {"text": "a", "limit": -1},
        {"text": "a", "ranking": "best"},
        {"text": "a", "weights": {"colour": 1}},
        {"text": "a", "selector": {"any_tags": ["t"] * 1_000}},
        {"text": "a", "selector": {"context_match": [{"path": "a", "op": "gt", "value": None}]}},
        {"vector": []},
        {"vector": [1e300]},
        {"vector": [0.5] * 5_000},
        {"text": "a", "exclude": ["x"] * 1_001},
        {"text": "a", "surprise": True},
    ],
)
async def test_a_search_that_makes_no_sense_is_refused(http: httpx.AsyncClient, request_body: Any) -> None:
    response = await http.post("/breadcrumbs/search", json=request_body)
    assert response.status_code in (413, 422), response.text
    assert response.json()["error"]["code"] in ("invalid_input", "too_large", "embedder_mismatch")


@pytest.mark.parametrize("value", [b"a\xff", b"x" * 301, b""])
async def test_a_bad_idempotency_key_is_refused(http: httpx.AsyncClient, value: bytes) -> None:
    headers = {b"Idempotency-Key": value, b"Content-Type": b"application/json"}
    response = await http.post("/breadcrumbs", content=note(), headers=headers)
    assert response.status_code in (400, 422), response.text


async def exchange(server: Served, request: bytes) -> bytes:
    """The server's answer to raw bytes, until it closes the connection."""
    host, port = server.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        for start in range(0, len(request), 65_536):
            writer.write(request[start : start + 65_536])
            await writer.drain()
        return await asyncio.wait_for(reader.read(), PATIENCE)
    except ConnectionError:
        return b"closed"
    finally:
        writer.close()


async def test_headers_that_go_on_for_ever_end_the_connection(server: Served) -> None:
    for endless in (b"X-A: " + b"a" * 3_000_000, b"".join(b"X-%d: a\r\n" % number for number in range(100_000))):
        answer = await exchange(server, b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + endless)
        assert answer == b"closed" or answer.startswith(b"HTTP/1.1 431 ")


async def test_bytes_that_are_not_http_are_400(server: Served) -> None:
    assert (await exchange(server, b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
    assert (await exchange(server, b"GET /a b HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 400 ")


async def test_a_caller_that_leaves_in_the_middle_of_its_body_does_no_harm(server: Served) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    token = server.headers()["Authorization"].encode()
    head = b"POST /breadcrumbs HTTP/1.1\r\nHost: localhost\r\nAuthorization: " + token
    for _ in range(5):
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(head + b"\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
        await writer.drain()
        writer.close()
        await writer.wait_closed()
    async with server.client() as http:
        assert (await http.get("/health")).status_code == 200
