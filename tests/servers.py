"""A real server on a free port: in the test's own loop, or in a thread for many tests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from clew.access import ROLES, Principal
from clew.adapters.rest import Keys, Metrics, build_app, open_keys, run_server
from clew.adapters.rest.app import RestApp
from clew.adapters.rest.auth import key_wishes
from clew.clock import Clock, SystemClock
from clew.config import Config
from clew.team.router import Router
from clew.team.team import Team
from clew.trail import open_trail
from clew.trail.store import Trail
from clew.trail.work.hygiene import Hygiene
from clew.trust import Trust

PATIENCE = 60.0
"""Seconds after which a wait in a test has failed."""


@dataclass(frozen=True, kw_only=True)
class Served:
    """A running server and its parts."""

    url: str
    folder: Path
    app: RestApp
    trail: Trail
    keys: Keys
    metrics: Metrics

    @property
    def credential(self) -> str:
        return (self.folder / "credential").read_text().strip()

    def headers(self, owner: str = "ada", roles: frozenset[str] = ROLES, **more: Any) -> dict[str, str]:
        principal = Principal(owner_id=owner, agent_id="tester", roles=roles, **more)
        return {"Authorization": f"Bearer {self.keys.issue(principal).token}"}

    def client(self, owner: str = "ada", roles: frozenset[str] = ROLES, **more: Any) -> httpx.AsyncClient:
        headers = self.headers(owner, roles, **more)
        # Nothing is verified over plain HTTP, and loading the certificates takes longer than most tests.
        return httpx.AsyncClient(verify=False, base_url=self.url, headers=headers, timeout=PATIENCE)


@cache
def private_key() -> bytes:
    """One key for all test servers: making one takes a good part of a second."""
    with TemporaryDirectory() as folder:
        open_keys(Path(folder), SystemClock())
        return (Path(folder) / "keys" / "private.pem").read_bytes()


def give_key(folder: Path) -> None:
    (folder / "keys").mkdir(parents=True, exist_ok=True)
    (folder / "keys" / "private.pem").write_bytes(private_key())
    Trust.open().grant(key_wishes(folder))


@asynccontextmanager
async def serve(
    folder: Path,
    *,
    clock: Clock | None = None,
    config: Config | None = None,
    router: Router | None = None,
    team: Callable[[], Awaitable[Team]] | None = None,
    port: int = 0,
) -> AsyncIterator[Served]:
    """Serve a folder's trail until the block ends."""
    clock = clock or SystemClock()
    give_key(folder)
    trail = await open_trail(f"sqlite://{folder / 'trail.db'}", clock)
    keys, metrics = open_keys(folder, clock), Metrics()
    hygiene = Hygiene(trail, by=Principal(owner_id="local", agent_id="hygiene"), clock=clock)
    app = build_app(trail, keys, hygiene, config=config, metrics=metrics, clock=clock, router=router, team=team)
    stop, address = asyncio.Event(), asyncio.get_running_loop().create_future()
    running = asyncio.create_task(
        run_server(app, "127.0.0.1", port, ready=lambda *at: address.set_result(at), stop=stop)
    )
    try:
        await asyncio.wait({running, address}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        url = "http://{}:{}".format(*address.result())
        yield Served(url=url, folder=folder, app=app, trail=trail, keys=keys, metrics=metrics)
    finally:
        stop.set()
        await asyncio.wait_for(running, PATIENCE)
        await trail.close()


@contextmanager
def serve_in_thread(folder: Path) -> Iterator[Served]:
    """Serve from a thread of its own, for tests that share a server. Its trail belongs to that thread's loop."""
    started, served = threading.Event(), []
    finish: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def main() -> None:
        done = asyncio.Event()
        finish.append((asyncio.get_running_loop(), done))
        async with serve(folder) as running:
            served.append(running)
            started.set()
            await done.wait()

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    try:
        assert started.wait(PATIENCE), "the server did not start"
        yield served[0]
    finally:
        loop, done = finish[0]
        loop.call_soon_threadsafe(done.set)
        thread.join(PATIENCE)
