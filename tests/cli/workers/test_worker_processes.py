"""Several processes of `clew up` on one trail: roles, the list of workers, signals and kills."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from clew.access import Principal
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.bus.nats_server import NatsServer
from tests.cli.conftest import PATIENCE, Clew, start
from tests.faults.processes import eventually
from tests.servers import give_key

ME = Principal(owner_id="local", agent_id="test")
RESPONSES = Selector(schema_name="tool.response.v1")


@contextmanager
def running(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """`clew up` in a process of its own, once it works."""
    with start("up", "--json", *arguments) as process:
        assert process.stdout is not None
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Trail]:
    trail = await open_trail(f"sqlite://{folder}/trail.db")
    try:
        yield trail
    finally:
        await trail.close()


async def request_files(trail: Trail, count: int, first: int = 0) -> None:
    """Ask for a file so many times, each in a session of its own."""
    drafts = [
        Draft(
            title="r",
            schema_name="tool.request.v1",
            tags=("workspace:tools", f"session:s{first + number}"),
            context={"tool": "read-file", "input": {"file_path": "a.txt"}, "requestId": f"r{first + number}"},
            embed="never",
        )
        for number in range(count)
    ]
    await trail.records.create_many(drafts, by=ME)


async def responses(trail: Trail) -> list[Breadcrumb]:
    return list((await trail.records.list(RESPONSES, by=ME, limit=1_000)).items)


async def has_consumer(trail: Trail, name: str) -> bool:
    return any(each.consumer.name == name for each in await trail.deliveries.consumers(by=ME))


async def has_responses(trail: Trail, count: int) -> bool:
    return len(await responses(trail)) >= count


def until(holds: Callable[[], Any], what: str) -> Any:
    """The first truthy answer of a command, asked again and again."""
    deadline = time.monotonic() + PATIENCE
    while not (answer := holds()):
        assert time.monotonic() < deadline, f"{what}: not within {PATIENCE} s"
        time.sleep(0.05)
    return answer


def pids(clew: Clew) -> set[int]:
    return {each["pid"] for each in clew("workers", "--json").json}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--role", "cook"], "there is no role 'cook'"),
        (["--workers", "0"], "--workers must be from 1 to 256"),
        (["--workers", "2", "--role", "server"], "--workers 2 needs a role that several processes share"),
        (["--drain", "-1"], "--drain must be from 0"),
        (["--tag", "shop"], "--tag 'shop' is not NAME:VALUE"),
    ],
)
def test_impossible_input_is_an_error_in_one_line(clew: Clew, folder: Path, arguments: list[str], message: str) -> None:
    result = clew("up", *arguments)
    assert result.code != 0
    assert message in result.err
    assert len(result.err.splitlines()) == 1


def test_a_bus_that_refuses_the_login_is_one_line(clew: Clew, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with NatsServer("--auth", "t0ken") as server:
        monkeypatch.setenv("CLEW_BUS_URL", server.url)
        monkeypatch.setenv("CLEW_BUS_CREDENTIALS", "env:LOGIN")
        monkeypatch.setenv("LOGIN", "wrong")
        result = clew("up", "--port", "0")
    assert result.code != 0
    assert f"the bus {server.url} refuses this client" in result.err
    assert len(result.err.splitlines()) == 1


def test_workers_are_listed_with_their_roles_until_they_end(clew: Clew, folder: Path) -> None:
    give_key(folder)
    assert clew("workers").out == ""
    with running("--port", "0", "--role", "server", "--role", "tools", "--workers", "2") as (process, serving):
        found = until(lambda: each if len(each := clew("workers", "--json").json) == 2 else None, "two workers")
        roles = {each["pid"]: each["roles"] for each in found}
        assert roles.pop(process.pid) == ["server", "tools"]
        assert list(roles.values()) == [["tools"]]
        assert [row[3] for row in clew("workers").rows].count("tools") == 1
        headers = {"Authorization": f"Bearer {clew('token').out.strip()}"}
        shown = httpx.get(f"{serving['url']}/workers", headers=headers, timeout=PATIENCE).json()
        assert {each["pid"] for each in shown["items"]} == {each["pid"] for each in found}
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
        assert clew("workers", "--json").json == []


def test_a_worker_without_the_role_server_answers_probes_only(clew: Clew, folder: Path) -> None:
    with running("--role", "hygiene", "--port", "0") as (process, working):
        answers = {path: httpx.get(working["url"] + path, timeout=PATIENCE).status_code for path in PATHS}
        assert answers == {"/health": 200, "/ready": 200, "/metrics": 200, "/breadcrumbs": 404}
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


PATHS = ("/health", "/ready", "/metrics", "/breadcrumbs")


@pytest.mark.slow
@pytest.mark.req("RCR-28")
@pytest.mark.parametrize("count", [2, 4])
async def test_a_signal_in_the_middle_loses_nothing_and_doubles_nothing(clew: Clew, folder: Path, count: int) -> None:
    (folder.parent / "a.txt").write_text("hello")
    with ExitStack() as stack:
        crew = [stack.enter_context(running("--role", "tools"))[0] for _ in range(count)]
        async with opened(folder) as trail:
            await eventually(lambda: has_consumer(trail, "tools-runner"), "the queue is there")
            await request_files(trail, 60)
            await eventually(lambda: has_responses(trail, 1), "the work has begun")
            for process in crew[: count // 2]:
                process.send_signal(signal.SIGTERM)
            await request_files(trail, 60, first=60)
            await eventually(lambda: has_responses(trail, 120), "all is done")
            found = await responses(trail)
        assert [await asyncio.to_thread(process.wait, PATIENCE) for process in crew[: count // 2]] == [0] * (count // 2)
    assert Counter(each.context["request_id"] for each in found) == Counter(f"r{number}" for number in range(120))
    assert {each.context["status"] for each in found} == {"success"}


@pytest.mark.slow
@pytest.mark.req("RCR-28")
async def test_a_killed_worker_is_replaced_and_its_work_is_done_once(clew: Clew, folder: Path) -> None:
    (folder.parent / "a.txt").write_text("hello")
    with running("--role", "tools", "--workers", "3") as (process, _):
        async with opened(folder) as trail:
            await eventually(lambda: has_consumer(trail, "tools-runner"), "the queue is there")
            before = await asyncio.to_thread(until, lambda: each if len(each := pids(clew)) == 3 else None, "three")
            victim = next(pid for pid in before if pid != process.pid)
            await request_files(trail, 80)
            os.kill(victim, signal.SIGKILL)
            await request_files(trail, 20, first=80)
            await eventually(lambda: has_responses(trail, 100), "all is done")
            found = await responses(trail)
        assert await asyncio.to_thread(until, lambda: pids(clew) - before, "another worker")
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, PATIENCE) == 0
    assert Counter(each.context["request_id"] for each in found) == Counter(f"r{number}" for number in range(100))


def test_workers_end_with_the_process_that_started_them(clew: Clew, folder: Path) -> None:
    with running("--role", "tools", "--workers", "3") as (process, _):
        children = until(lambda: each if len(each := pids(clew)) == 3 else None, "three workers") - {process.pid}
        process.kill()
        process.wait(PATIENCE)
        until(lambda: not any(is_alive(pid) for pid in children), "the children end")


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.req("RCR-20")
@pytest.mark.parametrize("has_bus", [True, False])
def test_a_stream_of_one_server_shows_what_was_written_through_another(
    clew: Clew, folder: Path, monkeypatch: pytest.MonkeyPatch, has_bus: bool
) -> None:
    give_key(folder)
    with ExitStack() as stack:
        if has_bus:
            monkeypatch.setenv("CLEW_BUS_URL", stack.enter_context(NatsServer()).url)
        (_, one), (_, other) = (stack.enter_context(running("--role", "server", "--port", "0")) for _ in range(2))
        headers = {"Authorization": f"Bearer {clew('token').out.strip()}"}
        http = stack.enter_context(httpx.Client(headers=headers, timeout=PATIENCE))
        stream = stack.enter_context(http.stream("GET", f"{other['url']}/events/stream"))
        lines = stream.iter_lines()
        assert next(line for line in lines if line.startswith("event:")) == "event: ping"
        body = {"title": "over there", "context": {}, "tags": ["mine"]}
        id = http.post(f"{one['url']}/breadcrumbs", json=body).json()["id"]
        shown = next(line for line in lines if '"mine"' in line)
        assert json.loads(shown.removeprefix("data: "))["breadcrumb_id"] == id
