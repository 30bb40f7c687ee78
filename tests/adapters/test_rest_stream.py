"""Live events: order, resuming, pings, filtering, and every way in which a stream ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from clew.adapters.rest import sse
from clew.clock import ManualClock
from tests.servers import PATIENCE, Served, serve


class Reader:
    """Reads messages of a stream, each as its fields."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.aiter_raw()
        self._rest = b""

    async def block(self) -> bytes | None:
        while b"\n\n" not in self._rest:
            try:
                self._rest += await asyncio.wait_for(anext(self._lines), PATIENCE)
            except StopAsyncIteration:
                return None
        block, self._rest = self._rest.split(b"\n\n", 1)
        return block

    async def message(self) -> dict[str, Any]:
        """The next message, a ping included."""
        block = await self.block()
        assert block is not None, "the stream has ended"
        fields = dict(line.split(": ", 1) for line in block.decode().split("\n"))
        return fields | {"data": json.loads(fields["data"])}

    async def end(self) -> bytes | None:
        """The last block of the stream."""
        last = None
        while (block := await self.block()) is not None:
            last = block
        return last

    async def event(self) -> dict[str, Any]:
        """The next message that is not a ping."""
        while (message := await self.message())["event"] == "ping":
            pass
        return message


@asynccontextmanager
async def follow(http: httpx.AsyncClient, **request: Any) -> AsyncIterator[Reader]:
    """An open stream, past the ping that it begins with."""
    async with http.stream("GET", "/events/stream", **request) as response:
        assert response.status_code == 200, await response.aread()
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["x-accel-buffering"] == "no"
        reader = Reader(response)
        assert (await reader.message())["event"] == "ping"
        yield reader


async def create(http: httpx.AsyncClient, title: str, **more: Any) -> dict[str, Any]:
    response = await http.post("/breadcrumbs", json={"title": title, "context": {"title": title}} | more)
    created: dict[str, Any] = response.json()
    return created


@pytest.mark.req("RCR-20")
async def test_a_change_is_streamed_at_once_with_the_whole_payload(
    http: httpx.AsyncClient, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "PING_SECONDS", 10 * PATIENCE)  # the write wakes the stream, and no clock does
    async with follow(http) as reader:
        created = await create(http, "Héllo\u2028", tags=["a"], schema_name="note.v1")
        message = await reader.message()
        assert message["event"] == "breadcrumb.created"
        assert message["data"] == {
            "type": "breadcrumb.created",
            "breadcrumb_id": created["id"],
            "owner_id": owner,
            "version": 1,
            "schema_name": "note.v1",
            "tags": ["a"],
            "updated_at": created["updated_at"],
            "title": "Héllo\u2028",
            "context": {"title": "Héllo\u2028"},
        }
        await http.patch(f"/breadcrumbs/{created['id']}", json={"title": "b"}, headers={"If-Match": '"1"'})
        updated = await reader.event()
        assert (updated["event"], updated["data"]["version"]) == ("breadcrumb.updated", 2)
        assert updated["data"]["title"] == "b"
        await http.delete(f"/breadcrumbs/{created['id']}")
        deleted = await reader.event()
        assert deleted["event"] == "breadcrumb.deleted"
        assert (deleted["data"]["title"], deleted["data"]["context"]) == (None, None)


async def test_a_title_is_not_shown_to_a_reader_that_lacks_the_scope(server: Served, owner: str) -> None:
    mine, scoped = server.client(owner), server.client(owner, scopes=frozenset({"secret"}))
    async with mine, scoped:
        made = await create(mine, "hidden later")
        change = {"scopes": ["secret"], "title": "hidden now"}
        narrowed = await scoped.patch(f"/breadcrumbs/{made['id']}", json=change, headers={"If-Match": '"1"'})
        assert narrowed.status_code == 200
        told = (await mine.get("/events")).text
        assert "hidden" not in told
        assert [item["title"] for item in (await scoped.get("/events")).json()["items"]] == [
            "hidden later",
            "hidden now",
        ]


@pytest.mark.req("RCR-20")
async def test_pings_come_at_their_interval_which_is_below_six_seconds(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sse.PING_SECONDS < 6
    monkeypatch.setattr(sse, "PING_SECONDS", 0.05)
    async with follow(http) as reader:
        for _ in range(3):
            assert (await reader.message())["event"] == "ping"


@pytest.mark.req("RCR-20")
async def test_events_of_other_owners_and_of_missing_scopes_are_absent(server: Served, owner: str) -> None:
    mine, theirs = server.client(owner), server.client(f"{owner}-other")
    scoped = server.client(owner, scopes=frozenset({"secret"}))
    async with mine, theirs, scoped, follow(mine) as reader, follow(scoped) as insider:
        await create(theirs, "not mine")
        await create(scoped, "needs a scope", scopes=["secret"])
        await create(mine, "mine")
        assert (await reader.event())["data"]["context"] == {"title": "mine"}
        assert (await insider.event())["data"]["context"] == {"title": "needs a scope"}
        assert (await insider.event())["data"]["context"] == {"title": "mine"}


@pytest.mark.req("RCR-20")
async def test_a_stream_resumes_after_the_last_event_id(http: httpx.AsyncClient) -> None:
    async with follow(http) as reader:
        for title in ("one", "two", "three"):
            await create(http, title)
        first = await reader.event()
    for request in ({"headers": {"Last-Event-ID": first["id"]}}, {"params": {"after": first["id"]}}):
        async with follow(http, **request) as reader:
            missed = [(await reader.event())["data"]["context"]["title"] for _ in range(2)]
            assert missed == ["two", "three"]
    async with follow(http, headers={"Last-Event-ID": first["id"]}, params={"after": "0"}) as reader:
        assert (await reader.event())["data"]["context"]["title"] == "two"


async def test_a_stream_can_begin_with_the_oldest_event_and_follow_hundreds(http: httpx.AsyncClient) -> None:
    items = [{"title": f"n{number}", "context": {"n": number}} for number in range(300)]
    await http.post("/breadcrumbs/batch", json={"items": items})
    async with follow(http, params={"after": 0}) as reader:
        messages = [await reader.event() for _ in range(300)]
    assert [each["data"]["context"]["n"] for each in messages] == list(range(300))
    assert sorted({int(each["id"]) for each in messages}) == [int(each["id"]) for each in messages]


async def test_a_stream_shows_only_what_its_selector_means(http: httpx.AsyncClient) -> None:
    params = {
        "schema_name": "note.v1",
        "any_tags": ["a", "b"],
        "context_match": '{"path": "n", "op": "gt", "value": 5}',
    }
    async with follow(http, params=params) as reader:
        await create(http, "1", schema_name="other.v1", tags=["a"], context={"n": 9})
        await create(http, "2", schema_name="note.v1", tags=["c"], context={"n": 9})
        await create(http, "3", schema_name="note.v1", tags=["a"], context={"n": 1})
        await create(http, "4", schema_name="note.v1", tags=["b"], context={"n": 7})
        assert (await reader.event())["data"]["tags"] == ["b"]


async def test_a_ping_moves_the_resume_point_past_events_that_were_not_meant(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "PING_SECONDS", 0.05)
    async with follow(http, params={"schema_name": "none.v1"}) as reader:
        await create(http, "not meant")
        page = (await http.get("/events")).json()
        while int((ping := await reader.message())["id"]) < page["items"][-1]["seq"]:
            assert ping["event"] == "ping"
    assert ping["event"] == "ping"


@pytest.mark.parametrize("given", ["x", "-1", "1.5", "9" * 30, "²"])
async def test_a_last_event_id_that_is_not_one_is_refused(http: httpx.AsyncClient, given: str) -> None:
    headers = {b"Last-Event-ID": given.encode()}
    assert (await http.get("/events/stream", headers=headers)).status_code == 422


async def test_a_selector_that_is_refused_is_an_error_and_not_a_stream(http: httpx.AsyncClient) -> None:
    assert (await http.get("/events/stream", params={"tag_prefix": ""})).status_code == 422
    assert (await http.get("/events/stream", params={"surprise": "1"})).status_code == 422


async def test_a_role_that_may_not_subscribe_gets_no_stream(server: Served) -> None:
    async with server.client(roles=frozenset({"emitter"})) as http:
        assert (await http.get("/events/stream")).status_code == 403


async def test_a_stream_ends_with_its_token(tmp_path: Path) -> None:
    clock = ManualClock()
    async with serve(tmp_path, clock=clock) as served, served.client() as http:
        clock.advance(minutes=59, seconds=59, milliseconds=900)
        async with follow(http) as reader:
            assert await reader.end() == b": the token has expired"


async def test_streams_end_at_once_when_the_server_closes(tmp_path: Path) -> None:
    ended: list[bytes | None] = []

    async def listen(http: httpx.AsyncClient, listening: asyncio.Event) -> None:
        async with follow(http) as reader:
            listening.set()
            ended.append(await reader.end())

    async with serve(tmp_path) as served:
        clients = [served.client() for _ in range(5)]
        events = [asyncio.Event() for _ in clients]
        tasks = [asyncio.create_task(listen(*pair)) for pair in zip(clients, events, strict=True)]
        await asyncio.wait_for(asyncio.gather(*(each.wait() for each in events)), PATIENCE)
    await asyncio.wait_for(asyncio.gather(*tasks, *(each.aclose() for each in clients)), PATIENCE)
    assert ended == [b": the server is closing"] * 5


async def test_a_reader_that_leaves_frees_its_stream(tmp_path: Path) -> None:
    async with serve(tmp_path) as served:
        async with served.client() as http, follow(http):
            pass
        async with served.client() as http, asyncio.timeout(PATIENCE):
            while streams := [task for task in asyncio.all_tasks() if "EventStream" in repr(task.get_coro())]:
                await http.get("/health")
        assert streams == []


async def test_a_reader_that_does_not_read_holds_up_nobody_else(server: Served, owner: str) -> None:
    big = {"title": "big", "context": {"text": "x" * 1_000_000}}
    async with (
        server.client(owner) as writer,
        server.client(owner) as slow,
        server.client(owner) as quick,
        slow.stream("GET", "/events/stream"),
        follow(quick) as reader,
    ):
        for _ in range(20):
            assert (await writer.post("/breadcrumbs", json=big)).status_code == 201
        for _ in range(20):
            await reader.event()


async def test_a_page_of_the_log_is_the_same_events_by_cursor(http: httpx.AsyncClient) -> None:
    for title in ("one", "two", "three"):
        await create(http, title)
    first = (await http.get("/events", params={"limit": 2})).json()
    rest = (await http.get("/events", params={"after": first["cursor"]})).json()
    assert [each["context"]["title"] for each in first["items"] + rest["items"]] == ["one", "two", "three"]
    assert (await http.get("/events", params={"after": rest["cursor"]})).json()["items"] == []
    assert (await http.get("/events", params={"after": -1})).status_code == 422
    assert (await http.get("/events", params={"after": 2**63})).status_code == 422
