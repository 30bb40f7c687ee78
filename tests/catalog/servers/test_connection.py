"""A connection stays open while it is used, restarts after a failure, and survives any behaviour of a server."""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path

import pytest

from clew.catalog.servers import Hooks, McpServerConfig
from clew.catalog.servers.config import Features
from clew.catalog.servers.connections.connection import ServerConnection
from clew.catalog.servers.connections.hooks import LogLine, Response, ServerHookChain, ServerRequest
from clew.catalog.servers.connections.stdio import MAX_MESSAGE
from clew.catalog.servers.entries.listing import MAX_PAGES
from clew.catalog.servers.entries.listing_cleanup import MAX_ENTRIES
from clew.catalog.servers.value_references import FromEnv
from clew.clock import ManualClock
from clew.errors import ConfigError, ServerError

from .conftest import PATIENCE, hostile, program, stdio

QUICK = 0.5
START = 6.0
"""Seconds in which a program starts, also on a busy machine."""


async def test_a_server_is_started_by_its_first_use_and_only_once_by_many_at_a_time() -> None:
    connection = ServerConnection(hostile("plain"))
    assert connection.starts == 0
    results = await asyncio.gather(*(connection.call_tool("work", {}) for _ in range(20)))
    assert [result.content[0].text for result in results] == ["worked"] * 20
    assert connection.starts == 1
    await connection.close()
    with pytest.raises(ServerError, match="was closed"):
        await connection.call_tool("work", {})


@pytest.mark.parametrize("mode", ["hang-initialize", "hang-call"])
async def test_a_server_that_hangs_is_given_up_after_the_time_limit(mode: str) -> None:
    connection = ServerConnection(hostile(mode, timeout_seconds=QUICK))
    with pytest.raises(ServerError, match=r"did not answer .*within 0\.5 seconds"):
        await connection.call_tool("work", {})
    await connection.close()


async def test_a_server_that_leaves_three_requests_unanswered_is_started_anew() -> None:
    connection = ServerConnection(hostile("hang-call", timeout_seconds=START))
    calls = (connection.call_tool("work", {}) for _ in range(3))
    assert {type(each) for each in await asyncio.gather(*calls, return_exceptions=True)} == {ServerError}
    assert not connection.is_open
    assert (await connection.about()).name == "hostile"
    assert connection.starts == 2
    await connection.close()


async def test_a_server_that_dies_is_restarted_later_and_later_and_no_secret_is_in_its_last_words() -> None:
    clock = ManualClock()
    config = hostile("die-call", env={"TOKEN": FromEnv("HOSTILE_TOKEN")})
    connection = ServerConnection(
        config, clock=clock, chance=random.Random(1), environ={"HOSTILE_TOKEN": "sekret-4711"}
    )
    for _ in range(2):
        with pytest.raises(ServerError, match="ended its program") as error:
            await connection.call_tool("work", {})
        assert "sekret" not in str(error.value)
    with pytest.raises(ServerError, match="started again in"):
        await connection.call_tool("work", {})
    assert connection.starts == 2
    clock.advance(seconds=2)
    with pytest.raises(ServerError, match="ended its program"):
        await connection.call_tool("work", {})
    assert connection.starts == 3
    clock.advance(seconds=1)
    with pytest.raises(ServerError, match="started again in"):
        await connection.call_tool("work", {})
    await connection.close()


async def test_a_clock_that_was_set_back_does_not_put_off_the_next_start() -> None:
    clock = ManualClock()
    connection = ServerConnection(hostile("die-call"), clock=clock, chance=random.Random(1))
    for _ in range(2):
        with pytest.raises(ServerError, match="ended its program"):
            await connection.call_tool("work", {})
    clock.advance(days=-1)
    with pytest.raises(ServerError, match="ended its program"):
        await connection.call_tool("work", {})
    assert connection.starts == 3
    await connection.close()


async def test_an_idle_server_is_stopped_and_started_again_when_it_is_needed() -> None:
    connection = ServerConnection(hostile("plain", idle_seconds=0.05))
    await connection.call_tool("work", {})
    async with asyncio.timeout(PATIENCE):
        await connection.wait_closed()
    assert not connection.is_open
    assert (await connection.call_tool("work", {})).content[0].text == "worked"
    assert connection.starts == 2
    await connection.close()


async def test_a_missing_program_is_an_error_in_one_sentence() -> None:
    connection = ServerConnection(stdio("gone", "no-such-program-at-all"))
    with pytest.raises(ServerError, match=r"gone: its program cannot be started \(no such file or directory\)"):
        await connection.about()


async def test_a_refused_connection_is_an_error_in_one_sentence() -> None:
    connection = ServerConnection(McpServerConfig(id="gone", transport="http", url="http://127.0.0.1:9/mcp"))
    with pytest.raises(ServerError, match="gone: cannot be reached"):
        await connection.about()
    await connection.close()


async def test_garbage_on_the_output_is_passed_over() -> None:
    connection = ServerConnection(hostile("garbage"))
    assert (await connection.call_tool("work", {})).content[0].text == "worked"
    await connection.close()


async def test_a_program_that_writes_nothing_but_garbage_is_given_up() -> None:
    connection = ServerConnection(hostile("only-garbage"))
    with pytest.raises(ServerError, match="writes lines to its output that are not messages"):
        await connection.about()
    await connection.close()


async def test_a_list_of_a_hundred_thousand_tools_does_not_reach_us() -> None:
    connection = ServerConnection(hostile("flood"))
    with pytest.raises(ServerError, match=f"sent a message of over {MAX_MESSAGE:,} bytes"):
        await connection.list_all("tools")
    await connection.close()


async def test_a_long_list_is_cut_and_that_is_said() -> None:
    connection = ServerConnection(hostile("many"))
    listing = await connection.list_all("tools")
    assert len(listing.entries) == MAX_ENTRIES
    assert listing.left_out == [f"18,000 tools past the first {MAX_ENTRIES:,}"]
    await connection.close()


@pytest.mark.parametrize(("mode", "count", "said"), [("endless", MAX_PAGES, "too many"), ("circle", 2, "in a circle")])
async def test_pages_without_end_come_to_one(mode: str, count: int, said: str) -> None:
    connection = ServerConnection(hostile(mode))
    listing = await connection.list_all("tools")
    assert len(listing.entries) == count
    assert said in listing.left_out[0]
    await connection.close()


async def test_an_answer_that_is_too_long_ends_the_connection_and_not_us() -> None:
    connection = ServerConnection(hostile("long-line"))
    with pytest.raises(ServerError, match="sent a message of over"):
        await connection.call_tool("work", {})
    assert (await connection.about()).name == "hostile"
    await connection.close()


async def test_an_answer_that_the_protocol_does_not_know_is_reported_as_such() -> None:
    connection = ServerConnection(hostile("wrong-result"))
    with pytest.raises(ServerError, match="gave an answer to tools/call that the protocol does not allow"):
        await connection.call_tool("work", {})
    assert connection.is_open
    await connection.close()


async def test_bad_entries_of_a_list_do_not_take_the_good_ones_with_them() -> None:
    connection = ServerConnection(hostile("bad-schemas"))
    listing = await connection.list_all("tools")
    assert [entry["name"] for entry in listing.entries] == ["nonsense", "outside", "circle", "good"]
    assert listing.left_out[0] == "the schema of its tool text is not that of an object"
    assert len(listing.left_out) == 3
    await connection.close()


async def test_a_caller_that_gives_up_disturbs_nobody_else() -> None:
    connection = ServerConnection(stdio("sdk", *program("sdk_server.py", "stdio")))
    first = asyncio.create_task(connection.about())
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert (await connection.call_tool("add", {"a": 1, "b": 1})).content[0].text == "2"
    assert connection.starts == 1
    await connection.close()


async def test_error_output_of_a_server_does_not_reach_ours(capfd: pytest.CaptureFixture[str]) -> None:
    connection = ServerConnection(hostile("die-call"))
    with pytest.raises(ServerError):
        await connection.call_tool("work", {})
    await connection.close()
    assert capfd.readouterr() == ("", "")


async def test_a_server_leaves_no_process_behind(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    child = "import time; time.sleep(3600)"
    script = (
        f"import os, subprocess, sys; one = subprocess.Popen([sys.executable, '-c', {child!r}]);"
        f"open({str(pids)!r}, 'w').write(f'{{os.getpid()}} {{one.pid}}\\n'); import time; time.sleep(3600)"
    )
    connection = ServerConnection(stdio("parent", sys.executable, "-c", script))
    asking = asyncio.create_task(connection.about())
    async with asyncio.timeout(PATIENCE):
        while not pids.exists() or not pids.read_text().endswith("\n"):
            await asyncio.sleep(0.01)
    await connection.close()
    with pytest.raises(ServerError, match="was closed"):
        await asking
    async with asyncio.timeout(PATIENCE):
        while any(_is_running(int(pid)) for pid in pids.read_text().split()):
            await asyncio.sleep(0.01)


def _is_running(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")


async def test_a_variable_that_is_not_set_is_named_before_anything_starts() -> None:
    connection = ServerConnection(hostile("plain", env={"KEY": FromEnv("NOT_SET")}), environ={})
    with pytest.raises(ConfigError, match=r"env\.KEY: the environment variable NOT_SET is not set"):
        await connection.about()
    assert connection.starts == 0


@pytest.mark.req("PLA-24")
async def test_hooks_see_requests_and_responses_and_may_change_them() -> None:
    seen: list[str] = []

    async def rename(request: ServerRequest) -> ServerRequest:
        seen.append(f"{request.server} {request.method}")
        if request.method != "tools/call":
            return request
        return ServerRequest(
            server=request.server, method=request.method, params={"name": "add", "arguments": {"a": 2, "b": 2}}
        )

    async def stamp(response: Response) -> Response:
        response.result.content[0].text += "!"
        return response

    hooks = ServerHookChain(Hooks(on_request=rename), Hooks(), Hooks(on_response=stamp))
    connection = ServerConnection(stdio("sdk", *program("sdk_server.py", "stdio")), hooks=hooks)
    result = await connection.call_tool("sub", {})
    assert result.content[0].text == "4!"
    assert seen == ["sdk tools/call"]
    await connection.close()


@pytest.mark.req("PLA-24")
async def test_a_hook_may_stop_a_listing_before_the_next_page() -> None:
    pages: list[str] = []

    async def two_pages(server: str, cursor: str) -> bool:
        pages.append(cursor)
        return len(pages) < 2

    connection = ServerConnection(hostile("endless"), hooks=ServerHookChain(Hooks(on_paginate=two_pages)))
    listing = await connection.list_all("tools")
    assert pages == ["1", "2"]
    assert len(listing.entries) == 2
    assert listing.left_out == ["its tools past page 2, as a hook wished"]
    await connection.close()


@pytest.mark.req("PLA-24")
async def test_logs_of_a_server_reach_the_hook_when_logging_is_on(everything: tuple[str, ...]) -> None:
    lines: asyncio.Queue[LogLine] = asyncio.Queue()
    config = stdio("logs", *everything, "stdio", features=Features(logging=True))
    connection = ServerConnection(config, hooks=ServerHookChain(Hooks(on_log=lines.put)))
    await connection.call_tool("toggle-simulated-logging", {})
    async with asyncio.timeout(PATIENCE):
        line = await lines.get()
    assert line.server == "logs"
    assert line.level
    await connection.close()


@pytest.mark.req("PLA-24")
async def test_completions_are_given_where_they_are_switched_on(everything: tuple[str, ...]) -> None:
    command = (*everything, "stdio")
    on = ServerConnection(stdio("on", *command, features=Features(completions=True)))
    found = await on.complete("completable-prompt", "department", "E")
    assert "Engineering" in found.completion.values
    await on.close()
    with pytest.raises(ServerError, match="completions are switched off"):
        await ServerConnection(stdio("off", *command)).complete("completable-prompt", "department", "E")
