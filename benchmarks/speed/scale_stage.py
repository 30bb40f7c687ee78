"""The engines of a run: a PostgreSQL server that flushes every commit, and a nats-server; started and ended here."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg

from speed.postgres_server import PostgresServer

ROLE = "clew"
PATIENCE = 30.0
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleSettings:
    """How much is measured, and where."""

    scratch: Path
    records: tuple[int, ...]
    rounds: int
    quick: bool
    without: frozenset[str]

    def count(self, full: int, least: int) -> int:
        return least if self.quick else full


class Engines:
    """A server, and databases on it that belong to an ordinary role."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server = PostgresServer(folder / "postgres")
        parts = dict(part.split("=") for part in self._server.conninfo.split())
        self._port = int(parts["port"])
        self._number = 0
        with self._administer("postgres") as connection:
            connection.execute(f"CREATE ROLE {ROLE} LOGIN NOSUPERUSER NOBYPASSRLS".encode())

    def make_database(self) -> str:
        """The address of a new database, which has pgvector."""
        self._number += 1
        name = f"bench_{self._number}"
        with self._administer("postgres") as connection:
            connection.execute(f"CREATE DATABASE {name} OWNER {ROLE}".encode())
        with self._administer(name) as connection:
            connection.execute("CREATE EXTENSION vector")
        return f"postgresql://{ROLE}@127.0.0.1:{self._port}/{name}"

    def _administer(self, name: str) -> psycopg.Connection:
        return psycopg.connect(f"{self._server.conninfo} dbname={name}", autocommit=True)

    @property
    def processor_seconds(self) -> float:
        """The processor time of the server: of its processes that run, and of those that have ended."""
        server = int((self._folder / "postgres" / "data" / "postmaster.pid").read_text().splitlines()[0])
        return sum(read_processor(pid) for pid in (server, *children_of(server)))

    def stop(self) -> None:
        self._server.stop()


def read_processor(pid: int) -> float:
    """The processor time of a process and of the children that it has seen the end of."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / TICKS
    return 0.0


def children_of(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


@contextlib.contextmanager
def running_engines(folder: Path) -> Iterator[Engines]:
    engines = Engines(folder)
    try:
        yield engines
    finally:
        engines.stop()


@contextlib.contextmanager
def running_nats(folder: Path) -> Iterator[str]:
    """The address of a nats-server on a free port."""
    folder.mkdir()
    program = Path(sys.executable).with_name("nats-server")
    command = [str(program), "-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", str(folder)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + PATIENCE
        while not (found := [*folder.glob("*.ports")]):
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("nats-server does not start")
            time.sleep(0.05)
        yield json.loads(found[0].read_text())["nats"][0]
    finally:
        process.terminate()
        process.wait()
