"""MCP over standard input and output, with a real process at the other end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from clew.adapters.mcp.pipes import MAX_LINE
from tests.adapters.mcp.catalogs import ERAS
from tests.servers import PATIENCE

ROOT = Path(__file__).parents[3]
WAIT = {"routes": [{"route": "fraud://tools/wait"}]}
INVESTIGATE = {"route": "fraud://tools/investigate", "params": {"user_id": 7}}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def command(folder: Path) -> list[str]:
    return [sys.executable, "-m", "tests.adapters.mcp.stdio_server", str(folder)]


def request(id: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def initialize(id: int = 0) -> dict[str, Any]:
    about = {"name": "test", "version": "1"}
    return request(id, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=about)


class Process:
    """The server, spoken to line by line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def send(self, *messages: dict[str, Any] | bytes) -> None:
        assert self.process.stdin is not None
        for each in messages:
            self.process.stdin.write((each if isinstance(each, bytes) else json.dumps(each).encode()) + b"\n")
        await self.process.stdin.drain()

    async def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), PATIENCE)
        message: dict[str, Any] = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    async def hear(self, said: str) -> None:
        """Wait for a line on standard error."""
        assert self.process.stderr is not None
        async with asyncio.timeout(PATIENCE):
            while said.encode() not in (line := await self.process.stderr.readline()):
                assert line, f"ended without saying {said!r}"

    async def end(self) -> tuple[list[dict[str, Any]], str, int]:
        """Close its input, and return its last answers, its error output and its exit code."""
        out, err = await asyncio.wait_for(self.process.communicate(b""), PATIENCE)
        assert self.process.returncode is not None
        return [json.loads(line) for line in out.splitlines()], err.decode(), self.process.returncode


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Process]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command(tmp_path), cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, limit=64 * 1024 * 1024
    )
    yield Process(process)
    if process.returncode is None:
        process.kill()
    await process.wait()


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_lists_asks_gets_reads_and_cancels(tmp_path: Path, era: str) -> None:
    told: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append(progress)

    program, *arguments = command(tmp_path)
    parameters = StdioServerParameters(command=program, args=arguments, cwd=ROOT)
    errors = tmp_path / "stderr"
    with errors.open("w") as log:
        async with Client(stdio_client(parameters, errlog=log), mode=era) as client:
            assert [each.name for each in (await client.list_tools()).tools] == ["ask", "get"]
            asked = await client.call_tool("ask", {"query": "is this user a fraud?"})
            assert asked.structured_content is not None
            given = {"routes": [INVESTIGATE] * 3, "handle": asked.structured_content["handle"]}
            done = await client.call_tool("get", given, progress_callback=hear)
            assert done.structured_content is not None
            assert done.structured_content["summary"]["success"] == 3
            assert (await client.read_resource("fraud://resources/handbook")).contents
            call = asyncio.create_task(client.call_tool("get", WAIT))
            await wait_for_line(errors, "waiting")
            call.cancel()
            await wait_for_line(errors, "cancelled")
            assert not (await client.call_tool("ask", {"query": "fraud"})).is_error
    assert told == [1, 2, 3]


async def wait_for_line(file: Path, said: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while said not in file.read_text():
            await asyncio.sleep(0.01)


async def test_standard_output_carries_nothing_but_the_protocol(server: Process) -> None:
    call = request(1, "tools/call", name="get", arguments={"routes": [{"route": "fraud://tools/chatter"}]})
    await server.send(initialize(), READY, call)
    answers, said, code = await server.end()
    assert [each["id"] for each in answers] == [0, 1]
    assert "read ''" in answers[1]["result"]["content"][0]["text"]
    assert "a line of Python" in said
    assert "a line of a program" in said
    assert code == 0


async def test_requests_before_the_end_of_input_are_answered(server: Process) -> None:
    asks = [
        request(number, "tools/call", name="ask", arguments={"query": f"fraud {number}"}) for number in range(1, 21)
    ]
    await server.send(initialize(), READY, *asks)
    answers, said, code = await server.end()
    assert sorted(each["id"] for each in answers) == list(range(21))
    assert all("result" in each for each in answers)
    assert said == "closed\n"
    assert code == 0


async def test_it_ends_when_its_input_ends_though_a_tool_goes_on(server: Process) -> None:
    await server.send(initialize(), READY, request(1, "tools/call", name="get", arguments=WAIT))
    await server.receive()
    await server.hear("waiting")
    answers, said, code = await server.end()
    assert [each["id"] for each in answers] == [1]
    assert "error" in answers[0]
    assert "Traceback" not in said
    assert said.endswith("closed\n")
    assert code == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_it_cleanly_while_it_waits_for_input(server: Process, number: signal.Signals) -> None:
    await server.send(initialize(), READY, request(1, "tools/call", name="get", arguments=WAIT))
    await server.receive()
    await server.hear("waiting")
    server.process.send_signal(number)
    await server.hear("closed")
    assert await asyncio.wait_for(server.process.wait(), PATIENCE) == 0


async def test_it_ends_when_nobody_reads_its_answers(server: Process) -> None:
    assert server.process.stdout is not None
    server.process.stdout._transport.close()  # type: ignore[attr-defined]  # the reading end, as when a client dies
    with contextlib.suppress(ConnectionError):
        await server.send(initialize(), READY)
    await server.hear("closed")
    assert await asyncio.wait_for(server.process.wait(), PATIENCE) == 0


async def test_input_without_any_request_ends_it(server: Process) -> None:
    answers, said, code = await server.end()
    assert (answers, said, code) == ([], "closed\n", 0)


NO_MESSAGES = [
    (b"{", -32700),
    (b"nonsense", -32700),
    (b"\xff\xfe\x00", -32700),
    (b"[]", -32600),
    (b'"text"', -32600),
    (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
    (b"[" * 100_000, -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"' + b"x" * (MAX_LINE + 10) + b'"}}', -32600),
]


async def test_a_line_that_is_no_message_is_refused_and_the_next_one_answered(server: Process) -> None:
    for line, code in NO_MESSAGES:
        await server.send(line, b"", b"  ")
        refused = await server.receive()
        assert (refused["id"], refused["error"]["code"]) == (None, code), line[:40]
    await server.send(initialize())
    assert (await server.receive())["result"]["serverInfo"]["name"] == "clew"
    for number, (line, code) in enumerate(NO_MESSAGES, 1):
        await server.send(line, b"", b"  ", request(number, "ping"))
        refused, answered = await server.receive(), await server.receive()
        assert (refused["id"], refused["error"]["code"]) == (None, code), line[:40]
        assert (answered["id"], answered["result"]) == (number, {}), line[:40]


async def test_a_large_message_comes_whole(server: Process) -> None:
    query = "日本語 \U0001f9f5 " * 150
    ask = request(1, "tools/call", name="ask", arguments={"query": query})
    routes = [{"route": "fraud://tools/investigate", "params": {"user_id": "x" * 60_000}}] * 40
    get = request(2, "tools/call", name="get", arguments={"routes": routes})
    await server.send(initialize(), READY, ask, get)
    answers, _, _ = await server.end()
    assert [each["result"].get("isError", False) for each in sorted(answers, key=lambda each: each["id"])[1:]] == [
        False,
        False,
    ]
