"""Following events through all failures of a connection."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.client import Client, StreamEvent
from clew.client.stream import StreamMessage, read_messages, wait_before
from clew.clock import ManualClock
from clew.errors import AccessDenied, InvalidInput, NotAuthenticated
from clew.trail.model.breadcrumb import Change, Draft
from clew.trail.model.selector import Selector
from tests.servers import PATIENCE, Served, serve


def note(title: str) -> Draft:
    return Draft(title=title, context={"title": title})


async def take(events: AsyncIterator[StreamEvent], count: int) -> list[StreamEvent]:
    async with asyncio.timeout(PATIENCE):
        return [await anext(events) for _ in range(count)]


@pytest.mark.req("RCR-21")
async def test_changes_arrive_in_order_and_typed(client: Client) -> None:
    made = await client.create(note("a \u2028 b"))
    await client.update(made.id, Change(title="b"), expect=1)
    await client.delete(made.id)
    async with aclosing(client.events(after=0)) as events:
        got = await take(events, 3)
    assert [each.type for each in got] == ["breadcrumb.created", "breadcrumb.updated", "breadcrumb.deleted"]
    assert {each.breadcrumb_id for each in got} == {made.id}
    assert got[-1].title is None
    assert got[0].owner_id == made.owner_id


@pytest.mark.req("RCR-21")
async def test_the_stream_follows_what_its_selector_means(client: Client) -> None:
    await client.create(note("not this"))
    await client.create(Draft(title="this", context={}, tags=("a&b",)))
    async with aclosing(client.events(Selector(any_tags=("a&b",)), after=0)) as events:
        assert [(each.title, each.tags) for each in await take(events, 1)] == [("this", ("a&b",))]


@pytest.mark.req("RCR-21")
async def test_no_event_is_lost_or_repeated_over_restarts_of_the_server(tmp_path: Path) -> None:
    port, got = 0, []
    credential = ""
    client: Client | None = None
    for round in range(3):
        async with serve(tmp_path, port=port) as served:
            port, credential = int(served.url.rsplit(":", 1)[1]), served.credential
            if client is None:
                client = Client(served.url, credential=credential, owner_id="ada", jitter=lambda: 0.0)
                events = client.events(after=0)
            async with served.client() as http:
                for number in range(5):
                    draft = {"title": f"{round}.{number}", "context": {"at": f"{round}.{number}"}}
                    assert (await http.post("/breadcrumbs", json=draft)).status_code == 201
            got += await take(events, 3)
        async with serve(tmp_path, port=port) as served:
            got += await take(events, 2)
    assert client is not None
    await events.aclose()
    await client.close()
    assert [each.context for each in got] == [{"at": f"{round}.{number}"} for round in range(3) for number in range(5)]


@pytest.mark.req("RCR-17")
@pytest.mark.req("RCR-21")
async def test_a_stream_whose_token_expires_goes_on_with_a_new_one(tmp_path: Path) -> None:
    clock = ManualClock()
    async with (
        serve(tmp_path, clock=clock) as served,
        Client(served.url, credential=served.credential, owner_id="ada") as client,
    ):
        made = await client.create(note("before"))
        clock.advance(minutes=59, seconds=59, milliseconds=800)
        async with aclosing(client.events(after=0)) as events:
            assert (await take(events, 1))[0].breadcrumb_id == made.id
            clock.advance(minutes=1)
            async with served.client("ada") as other:
                await other.post("/breadcrumbs", json={"title": "after", "context": {}})
            assert (await take(events, 1))[0].type == "breadcrumb.created"


async def test_a_permanent_error_is_raised_without_a_retry(server: Served) -> None:
    async with Client(server.url, credential="wrong") as client:
        with pytest.raises(NotAuthenticated):
            await take(client.events(), 1)
    async with Client(server.url, token="a.b.c") as client:
        with pytest.raises(NotAuthenticated):
            await take(client.events(), 1)
    async with Client(server.url, credential=server.credential, roles={"emitter"}) as client:
        with pytest.raises(AccessDenied):
            await take(client.events(), 1)
    async with Client(server.url, credential=server.credential) as client:
        with pytest.raises(InvalidInput):
            await take(client.events(Selector(tag_prefix="")), 1)


Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OPENED = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


@asynccontextmanager
async def scripted(*answers: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that answers each connection with the next of its answers, and records the requests."""
    waiting, requests = list(answers), []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(waiting.pop(0) if waiting else OPENED)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", requests


def wire(seq: int | str, type: str = "breadcrumb.created", id: str = "x", version: int = 1) -> bytes:
    data = {
        "type": type,
        "breadcrumb_id": id,
        "owner_id": "ada",
        "version": version,
        "schema_name": None,
        "tags": [],
        "updated_at": "2026-01-01T00:00:00Z",
        "context": {},
    }
    return f"id: {seq}\nevent: {type}\ndata: ".encode() + msgspec.json.encode(data) + b"\n\n"


async def follow(count: int, *answers: bytes) -> tuple[list[int], list[bytes]]:
    async with (
        scripted(*answers) as (url, requests),
        Client(url, token="t", jitter=lambda: 0.0) as client,
        aclosing(client.events()) as events,
    ):
        return [each.seq for each in await take(events, count)], requests


@pytest.mark.req("RCR-21")
async def test_pings_and_invalid_data_are_ignored() -> None:
    junk = [
        b"id: 1\nevent: ping\ndata: {}\n\n",
        b": a comment\n\n",
        b"retry: 5\n\n",
        b"id: 2\nevent: breadcrumb.created\ndata: not json\n\n",
        b"id: 3\nevent: breadcrumb.created\ndata: []\n\n",
        b"id: 4\nevent: breadcrumb.created\ndata: {}\n\n",
        b'id: 5\nevent: breadcrumb.created\ndata: {"type": "breadcrumb.created", "version": "one"}\n\n',
        b"id: 6\nevent: breadcrumb.created\ndata: \xff\n\n",
        wire("abc"),
        b"\n\n\n\n",
    ]
    seqs, _ = await follow(2, OPENED + b"".join(junk) + wire(7) + wire(8, id="y"))
    assert seqs == [7, 8]


@pytest.mark.req("RCR-21")
async def test_a_version_reported_twice_or_replayed_is_one_change() -> None:
    told = [
        wire(1),
        wire(2, type="breadcrumb.updated"),
        wire(3, type="breadcrumb.updated", version=2),
        wire(3, type="breadcrumb.updated", version=2),
        wire(2, id="old"),
        wire(4, type="breadcrumb.deleted", version=2),
    ]
    seqs, _ = await follow(3, OPENED + b"".join(told))
    assert seqs == [1, 3, 4]


@pytest.mark.req("RCR-21")
async def test_a_broken_connection_resumes_after_the_last_id_that_was_seen() -> None:
    answers = (
        OPENED + b"id: 40\nevent: ping\ndata: {}\n\n",
        OPENED + wire(41) + wire(42, id="y")[:-20],
        b"",
        b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        b"HTTP/1.1 502 Bad\r\ncontent-length: 3\r\nconnection: close\r\n\r\nbad",
        OPENED + wire(41) + wire(42, id="y"),
    )
    seqs, requests = await follow(2, *answers)
    assert seqs == [41, 42]
    resumed = [request.partition(b"last-event-id: ")[2].partition(b"\r")[0] for request in requests]
    assert resumed == [b"", b"40", b"41", b"41", b"41", b"41"]


def test_waits_double_up_to_half_a_minute_and_are_spread() -> None:
    assert [wait_before(attempt, 1.0) for attempt in (1, 2, 3, 4)] == pytest.approx([0.2, 0.4, 0.8, 1.6])
    assert wait_before(10_000, 1.0) == 30.0
    assert wait_before(3, 0.0) == pytest.approx(0.4)


@given(st.lists(st.text(max_size=30), min_size=1, max_size=5), st.lists(st.integers(0, 200), max_size=20))
def test_messages_are_the_same_however_the_bytes_are_cut(texts: Sequence[str], cuts: Sequence[int]) -> None:
    data = [msgspec.json.encode(text) for text in texts]
    whole = b"".join(b"id: %d\nevent: e\ndata: %b\n\n" % (at, each) for at, each in enumerate(data))
    points = sorted({0, *(min(cut, len(whole)) for cut in cuts), len(whole)})

    async def chunks() -> AsyncIterator[bytes]:
        for start, end in itertools.pairwise(points):
            yield whole[start:end]

    async def read() -> list[StreamMessage]:
        return [message async for message in read_messages(chunks())]

    assert asyncio.run(read()) == [StreamMessage(str(at), "e", each) for at, each in enumerate(data)]
