"""Limits on the arrival of a request: its size, its speed and its pieces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clew.adapters.rest.protocol import MAX_HEADERS, ArrivalLimits
from clew.adapters.rest.server import run_server
from tests.servers import PATIENCE, Served, serve

LONG = 600.0
SOON = 0.5
"""Seconds of patience: enough for a busy machine to send what a test sends at once."""
"""Seconds that no test waits for."""

HEAD = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"


@asynccontextmanager
async def connected(served: Served, patience: ArrivalLimits) -> AsyncIterator[Wire]:
    """A connection to a server with this time limit."""
    stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()
    running = asyncio.create_task(
        run_server(served.app, "127.0.0.1", 0, ready=lambda *at: address.set_result(at), stop=stop, patience=patience)
    )
    wire = await Wire.open(await asyncio.wait_for(address, PATIENCE))
    try:
        yield wire
    finally:
        wire.close()
        stop.set()
        await asyncio.wait_for(running, PATIENCE)


class Wire:
    """The caller's end of a connection."""

    def __init__(self, address: tuple[str, int], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._address, self._reader, self._writer = address, reader, writer

    @classmethod
    async def open(cls, address: tuple[str, int]) -> Wire:
        return cls(address, *await asyncio.open_connection(*address))

    def close(self) -> None:
        self._writer.close()

    async def outlast_the_patience(self) -> None:
        """Return when the server has closed another connection, opened now, at its time limit."""
        other = await Wire.open(self._address)
        assert await other.rest() == b""
        other.close()

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def answer(self) -> tuple[int, Any]:
        """The status and body of the next answer."""
        async with asyncio.timeout(PATIENCE):
            head = await self._reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            body = await self._reader.readexactly(int(length.split(b":")[1]))
        return int(head.split()[1]), msgspec.json.decode(body)

    async def until(self, end: bytes) -> bytes:
        return await asyncio.wait_for(self._reader.readuntil(end), PATIENCE)

    async def rest(self) -> bytes:
        """The remaining bytes until the server closes the connection."""
        return await asyncio.wait_for(self._reader.read(), PATIENCE)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serve(tmp_path) as running:
        yield running


def assert_refused(answer: tuple[int, Any], status: int, code: str) -> None:
    assert (answer[0], answer[1]["error"]["code"]) == (status, code)
    assert answer[1]["error"]["hint"]


async def test_headers_that_stop_half_way_are_408(served: Served) -> None:
    async with connected(served, ArrivalLimits(headers=SOON, body=LONG)) as wire:
        await wire.send(HEAD + b"X-Half: ")
        assert_refused(await wire.answer(), 408, "request_timeout")
        assert await wire.rest() == b""


async def test_headers_that_trickle_are_408_although_bytes_keep_coming(served: Served) -> None:
    async with connected(served, ArrivalLimits(headers=SOON, body=LONG)) as wire:
        await wire.send(HEAD)
        answer = asyncio.create_task(wire.answer())
        while not answer.done():
            with suppress(ConnectionError):
                await wire.send(b"X: y\r\n")
            await asyncio.wait({answer}, timeout=0.01)
        assert_refused(answer.result(), 408, "request_timeout")


async def test_a_connection_that_says_nothing_is_ended_without_a_word(served: Served) -> None:
    async with connected(served, ArrivalLimits(headers=SOON, body=LONG)) as wire:
        assert await wire.rest() == b""


async def test_half_a_second_request_on_a_connection_is_408_too(served: Served) -> None:
    async with connected(served, ArrivalLimits(headers=SOON, body=LONG)) as wire:
        await wire.send(HEAD + b"\r\n")
        assert await wire.answer() == (200, {"status": "up"})
        await wire.send(b"GET /hea")
        assert_refused(await wire.answer(), 408, "request_timeout")


async def test_a_body_that_stops_half_way_is_408_and_nothing_is_written(served: Served) -> None:
    async with connected(served, ArrivalLimits(headers=LONG, body=SOON)) as wire:
        token = served.headers()["Authorization"].encode()
        whole = b'{"title":"t","context":{}}'
        head = b"POST /breadcrumbs HTTP/1.1\r\nHost: localhost\r\nAuthorization: " + token
        await wire.send(head + b"\r\nContent-Length: %d\r\n\r\n" % (len(whole) + 9) + whole)
        assert_refused(await wire.answer(), 408, "request_timeout")
        assert await wire.rest() == b""
    async with served.client() as http:
        assert (await http.get("/breadcrumbs")).json()["items"] == []


async def test_an_answer_is_complete_with_any_method_and_version(served: Served) -> None:
    async with connected(served, ArrivalLimits()) as wire:
        await wire.send(HEAD + b"X-Request-Id: mine\r\n\r\n")
        head = (await wire.until(b"\r\n\r\n")).lower().split(b"\r\n")
        assert await wire.until(b"}") == b'{"status":"up"}'
        assert {b"x-request-id: mine", b"x-content-type-options: nosniff", b"content-length: 15"} <= set(head)
        await wire.send(b"HEAD /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"content-length: 15" in (await wire.until(b"\r\n\r\n")).lower()
        await wire.send(HEAD + b"Connection: close\r\n\r\n")
        assert b"connection: close" in (await wire.until(b"\r\n\r\n")).lower()
        assert await wire.rest() == b'{"status":"up"}'


async def test_requests_that_come_in_one_read_are_answered_in_order(served: Served) -> None:
    async with connected(served, ArrivalLimits()) as wire:
        missing = HEAD.replace(b"/health", b"/nothing")
        await wire.send(b"\r\n".join((HEAD, missing, HEAD)) + b"\r\n")
        assert [(await wire.answer())[0] for _ in range(3)] == [200, 404, 200]


async def test_time_between_requests_does_not_count(served: Served) -> None:
    async with connected(served, ArrivalLimits(headers=SOON, body=SOON)) as wire:
        await wire.send(HEAD + b"\r\n")
        assert (await wire.answer())[0] == 200
        await wire.outlast_the_patience()
        await wire.send(HEAD + b"\r\n")
        assert (await wire.answer())[0] == 200


async def test_a_live_stream_outlasts_the_patience_for_requests(served: Served) -> None:
    async with connected(served, ArrivalLimits(headers=SOON, body=SOON)) as wire:
        token = served.headers()["Authorization"].encode()
        await wire.send(b"GET /events/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: " + token + b"\r\n\r\n")
        assert b"200 OK" in await wire.until(b"event: ping")
        await wire.outlast_the_patience()
        async with served.client() as http:
            await http.post("/breadcrumbs", json={"title": "t", "context": {}})
        assert await wire.until(b"breadcrumb.created")


@pytest.mark.parametrize("size", [MAX_HEADERS, 100_000, 250_000])
async def test_headers_over_the_limit_are_431_in_one_read_and_in_many(served: Served, size: int) -> None:
    async with connected(served, ArrivalLimits()) as wire:
        try:
            await wire.send(HEAD + b"X-Long: " + b"a" * size + b"\r\n\r\n")
            assert_refused(await wire.answer(), 431, "headers_too_large")
        except (ConnectionError, asyncio.IncompleteReadError):
            return  # data in flight when the server closed the connection made the system drop the answer


async def test_headers_over_the_limit_are_431_behind_another_request_in_the_same_read(served: Served) -> None:
    async with connected(served, ArrivalLimits()) as wire:
        await wire.send(HEAD + b"\r\n" + HEAD + b"X-Long: " + b"a" * 70_000 + b"\r\n\r\n")
        assert await wire.until(b"HTTP/1.1 431 ")


async def test_headers_just_below_the_limit_are_served_with_a_large_body_behind_them(served: Served) -> None:
    async with connected(served, ArrivalLimits()) as wire:
        token = served.headers()["Authorization"].encode()
        body = msgspec.json.encode({"title": "t", "context": {"text": "x" * 100_000}})
        head = (
            b"POST /breadcrumbs HTTP/1.1\r\nHost: localhost\r\nAuthorization: "
            + token
            + b"\r\nX-Long: "
            + b"a" * 60_000
        )
        await wire.send(head + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        assert (await wire.answer())[0] == 201


@pytest.mark.parametrize("data", [b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"GET /a b HTTP/1.1\r\n\r\n"])
async def test_input_that_is_not_http_gets_400_with_a_hint(served: Served, data: bytes) -> None:
    async with connected(served, ArrivalLimits()) as wire:
        await wire.send(data)
        assert_refused(await wire.answer(), 400, "malformed")
