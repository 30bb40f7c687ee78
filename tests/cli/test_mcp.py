"""The folder's catalog over MCP: a process that an agent starts, and the endpoint of `clew up`."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ListRootsResult, Root

from clew.cli.servers.mcp import _open
from clew.config import read_config
from clew.errors import ReadOnly
from tests.cli.conftest import COMMAND, PATIENCE, Clew, start
from tests.servers import give_key

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture
def project(folder: Path) -> Path:
    give_key(folder)
    (folder.parent / "kettle.md").write_text("# Kettle\n\nHow to look after the kettle of the house.\n")
    return folder.parent


@asynccontextmanager
async def over_stdio(tmp_path: Path, *arguments: str, cwd: Path | None = None, **more: Any) -> AsyncIterator[Client]:
    # the SDK leaves a stream open at its end, which is an error here because warnings are errors
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}
    command = [*COMMAND[1:], "mcp", *arguments]
    parameters = StdioServerParameters(command=COMMAND[0], args=command, cwd=cwd or tmp_path, env=environ)
    with (tmp_path / "stderr").open("w") as log, pytest.MonkeyPatch.context() as patch:
        patch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", PATIENCE)
        async with Client(stdio_client(parameters, errlog=log), **more) as client:
            yield client


def texts(result: Any) -> str:
    return "\n".join(part.text for part in result.content)


async def until_indexed(client: Client) -> Any:
    """Ask until the file is there: it is read while the server already answers."""
    async with asyncio.timeout(PATIENCE):
        while True:
            asked = await client.call_tool("ask", {"query": "look after the kettle"})
            if "repo://resources/kettle.md" in texts(asked):
                return asked
            await asyncio.sleep(0.05)


@pytest.mark.req("BEY-11")
@pytest.mark.req("ERN-25")
async def test_an_agent_starts_it_and_asks_and_gets(project: Path, folder: Path) -> None:
    async with over_stdio(project) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["ask", "get"]
        asked = await until_indexed(client)
        routes = [
            {"route": "repo://resources/kettle.md"},
            {"route": "repo://tools/search", "params": {"query": "kettle"}},
        ]
        got = await client.call_tool("get", {"routes": routes, "handle": asked.structured_content["handle"]})
        assert got.structured_content["summary"] == {"total": 2, "success": 2, "failed": 0}
        assert "How to look after the kettle" in texts(got)
    assert (project / "stderr").read_text() == ""
    assert not (folder / "trail.db-wal").exists()


@pytest.mark.req("BEY-11")
async def test_the_folder_is_the_one_that_the_client_works_in(
    project: Path, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLEW_FOLDER")
    shop = tmp_path / "shop"
    (shop / "src").mkdir(parents=True)
    (shop / ".git").mkdir()
    (shop / "kettle.md").write_text("# Kettle\n\nHow to look after the kettle of the shop.\n")

    async def name_roots(context: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=(shop / "src").as_uri())])

    async with over_stdio(tmp_path, cwd=home, list_roots_callback=name_roots, mode="legacy") as client:
        assert "the folder that you work in" in (client.instructions or "")
        assert "kettle of the shop" in texts(await until_indexed(client))
    assert (shop / ".clew" / "trail.db").exists()
    assert not (home / ".clew").exists()
    assert not (shop / "src" / ".clew").exists()


@pytest.mark.req("BEY-11")
async def test_a_client_that_names_its_folder_late_is_served_there_from_then_on(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLEW_FOLDER")
    here, shop = tmp_path / "here", tmp_path / "shop"
    for each in (here, shop):
        (each / ".git").mkdir(parents=True)
        (each / "kettle.md").write_text(f"# Kettle\n\nHow to look after the kettle of the {each.name}.\n")
    is_served = asyncio.Event()

    async def name_roots(context: Any) -> ListRootsResult:
        await is_served.wait()
        return ListRootsResult(roots=[Root(uri=shop.as_uri())])

    async with over_stdio(tmp_path, cwd=here, list_roots_callback=name_roots, mode="legacy") as client:
        assert "kettle of the here" in texts(await until_indexed(client))  # the current folder, after some seconds
        is_served.set()
        async with asyncio.timeout(PATIENCE):
            while "kettle of the shop" not in texts(await until_indexed(client)):
                await asyncio.sleep(0.05)


async def test_a_client_without_a_folder_is_told_what_to_do(
    tmp_path: Path, home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLEW_FOLDER")
    async with over_stdio(tmp_path, cwd=home) as client:
        asked = await client.call_tool("ask", {"query": "look after the kettle"})
        assert asked.is_error
        assert texts(asked) == (
            f"{home} is not a project. Go to one (cd PROJECT), or name this folder: --folder {home / '.clew'}"
        )
    assert not (home / ".clew").exists()


async def test_a_client_in_a_folder_with_too_many_files_is_told_so_at_once(
    project: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEW_CATALOG_MAX_FILES", "2")
    for number in range(3):
        (project / f"page{number}.md").write_text("# Page\n")
    async with over_stdio(project) as client:
        asked = await client.call_tool("ask", {"query": "look after the kettle"})
        assert texts(asked).startswith(
            f"{project} has more than 2 files. Run `clew index --yes` there to read them all, choose a smaller folder,"
            " or set catalog.max_files."
        )
        assert "kettle.md" not in texts(asked)
    assert not (folder / "code.db").exists()


async def test_instructions_count_what_there_is(clew: Clew, project: Path) -> None:
    await asyncio.to_thread(clew, "ask", "kettle")
    async with over_stdio(project) as client:
        assert client.instructions is not None
        domains = await asyncio.to_thread(clew, "domains", "--json")
        routes = sum(len(each["entry_points"]) + each["hidden"] for each in domains.json)
        names = ", ".join(each["name"] for each in domains.json)
        assert f"Clew fronts 4 domains ({names}) with {routes} routes and" in client.instructions


def test_wrong_settings_are_reported_before_the_protocol_begins(clew: Clew, folder: Path) -> None:
    folder.mkdir()
    (folder / "config.toml").write_text("[sources.docs]\nkind = 'nowhere'\n")
    result = clew("mcp")
    assert (result.code, result.out) == (1, "")
    assert "[sources.docs] there is no source 'nowhere'" in result.err


def test_garbage_collection_is_on_again_where_the_folder_cannot_be_opened(clew: Clew, folder: Path) -> None:
    folder.mkdir()
    (folder / "trail.db").symlink_to(folder / "elsewhere")
    try:
        result = clew("mcp")
        assert (result.code, gc.isenabled()) == (1, True)
    finally:
        gc.enable()


async def test_garbage_collection_is_on_after_a_folder_of_a_client_could_not_be_opened(folder: Path) -> None:
    folder.mkdir()
    (folder / "trail.db").symlink_to(folder / "elsewhere")
    gc.disable()
    try:
        with pytest.raises(ReadOnly):
            async with _open(read_config(folder), frozenset()):
                pass
        assert gc.isenabled()
    finally:
        gc.enable()


@contextmanager
def running(*arguments: str) -> Iterator[tuple[Popen[str], dict[str, Any]]]:
    with start("up", "--port", "0", "--json", *arguments) as process:
        assert process.stdout is not None
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


def test_up_serves_mcp_with_a_token_at_once_and_ends_cleanly_with_a_session_open(
    clew: Clew, project: Path, folder: Path
) -> None:
    async def talk(process: Popen[str], url: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(verify=False, timeout=PATIENCE) as http:
            # the very first request: the endpoint is still being built
            refused = await http.post(url, json=INITIALIZE, headers=ACCEPT)
            assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
            wrong = await http.post(url, json=INITIALIZE, headers=ACCEPT | {"Authorization": "Bearer x.y.z"})
            assert wrong.status_code == 401
        async with (
            httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http2,
            Client(streamable_http_client(url, http_client=http2)) as client,
        ):
            assert [tool.name for tool in (await client.list_tools()).tools] == ["ask", "get"]
            asked = await until_indexed(client)
            assert asked.structured_content["is_relevant"]
        async with httpx.AsyncClient(verify=False, timeout=PATIENCE, headers=ACCEPT | headers) as http:
            opened = await http.post(url, json=INITIALIZE)
            session = {"Mcp-Session-Id": opened.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
            async with http.stream("GET", url, headers=session) as stream:
                assert stream.status_code == 200
                process.send_signal(signal.SIGINT)
                await stream.aread()
        assert await asyncio.to_thread(process.wait, PATIENCE) == 0

    token = clew("token").out.strip()
    with running() as (process, serving):
        assert serving["mcp"] == f"{serving['url']}/mcp"
        asyncio.run(talk(process, serving["mcp"], token))
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert not (folder / "trail.db-wal").exists()


def test_further_hosts_are_let_in_by_settings(clew: Clew, project: Path, folder: Path) -> None:
    (folder / "config.toml").write_text("[server]\nhosts = ['clew.example.org']\n")
    assert clew("trust", "server.hosts", "--yes").code == 0
    headers = ACCEPT | {"Authorization": f"Bearer {clew('token').out.strip()}"}
    hosts = [(b"clew.example.org", 200), (b"clew.example.org:443", 200), (b"evil\x9b31m.example.org", 421)]
    with running() as (process, serving):
        for host, status in hosts:
            given = [*((name.encode(), value.encode()) for name, value in headers.items()), (b"Host", host)]
            answer = httpx.post(serving["mcp"], json=INITIALIZE, headers=given, timeout=PATIENCE)
            assert answer.status_code == status, host
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_wrong_settings_of_the_catalog_leave_the_trail_served_and_are_reported(
    clew: Clew, project: Path, folder: Path
) -> None:
    (folder / "config.toml").write_text("[sources.docs]\nkind = 'nowhere'\n")
    headers = {"Authorization": f"Bearer {clew('token').out.strip()}"}
    with running() as (process, serving):
        assert httpx.get(f"{serving['url']}/breadcrumbs", headers=headers, timeout=PATIENCE).status_code == 200
        for answer in (
            httpx.get(f"{serving['url']}/domains", headers=headers, timeout=PATIENCE),
            httpx.post(serving["mcp"], json=INITIALIZE, headers=headers | ACCEPT, timeout=PATIENCE),
        ):
            assert answer.status_code == 500
            assert "there is no source 'nowhere'" in answer.text
        assert process.stderr is not None
        told = ""
        while "the catalog was not refreshed" not in told:
            told = process.stderr.readline()
            assert told, "it ended without a word"
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    assert "nowhere" in told
