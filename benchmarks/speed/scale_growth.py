"""The cost and gain of further measures that Clew does not take itself: events in partitions, a streaming replica of
the server, and separate logs for owners. Measured with SQL and workers on the server of the run."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import psycopg

from clew.trail import open_trail
from speed.postgres_server import NOBODY, find_binaries
from speed.processes import free_port
from speed.report import Finding, Row
from speed.scale_stage import Engines, ScaleSettings
from speed.scale_workers import working
from speed.timing import rotate, tell

PARTITIONS = "events in partitions by ranges of their number"
REPLICA = "a streaming replica"
SHARDS = "owners on logs of their own"
PARTS, PAGE, BATCH = 12, 200, 100
FILL = (
    "INSERT INTO {table} SELECT n, 0, n - n % 3, md5(n::text), 1, 1 + n % 50, 'note.v1',"
    " '[\"session:' || n / 20 || '\",\"project:' || n % 50 || '\"]', n * 1000 FROM generate_series(1, {count}) n"
)
ADD = "INSERT INTO {table} VALUES (%s, 0, %s, md5(%s::text), 1, 1, 'note.v1', '[\"session:1\",\"project:2\"]', 0)"
PAGE_OF = "SELECT * FROM {table} WHERE seq > %s AND audience = ANY ('{{1,2,3}}') ORDER BY seq LIMIT {page}"
OF_RECORD = "SELECT * FROM {table} WHERE rid = %s"


async def measure(engines: Engines, settings: ScaleSettings) -> list[Finding]:
    url = engines.make_database()
    await (await open_trail(url, embedder=None)).close()  # makes the tables
    with psycopg.connect(url, autocommit=True) as connection:
        found = measure_partitions(connection, settings)
        found += measure_replica(connection, settings)
    return [*found, *await measure_shards(engines, settings)]


# -- partitions -----------------------------------------------------------------------------------------------


def measure_partitions(connection: psycopg.Connection, settings: ScaleSettings) -> list[Finding]:
    """A plain copy of the table of events beside one in twelve partitions, with the same indexes."""
    count = settings.count(1_200_000, 12_000)
    tell(f"{PARTITIONS}: {count:,} events")
    run(connection, "CREATE TABLE plain (LIKE events INCLUDING ALL)")
    run(connection, "CREATE TABLE parted (LIKE events INCLUDING ALL) PARTITION BY RANGE (seq)")
    for part in range(PARTS + 1):  # the last is for what is added
        first = part * count // PARTS + 1
        last = "MAXVALUE" if part == PARTS else (part + 1) * count // PARTS + 1
        run(connection, f"CREATE TABLE part_{part} PARTITION OF parted FOR VALUES FROM ({first}) TO ({last})")
    tables = ("plain", "parted")
    for table in tables:
        run(connection, FILL.format(table=table, count=count))
        run(connection, f"VACUUM ANALYZE {table}")
    figures: dict[str, dict[str, list[float]]] = {table: {} for table in tables}
    for turn in range(2 * settings.rounds):
        for table in rotate(tables, turn):
            for name, milliseconds in measure_table(connection, table, count, turn).items():
                figures[table].setdefault(name, []).append(milliseconds)
    removal = {
        "plain": took(lambda: remove_rows(connection, count // PARTS)),
        "parted": took(lambda: run(connection, "DROP TABLE part_0")),
    }
    return [
        Row(
            measure=PARTITIONS,
            records=count,
            contender={"plain": "one table, as it is", "parted": f"{PARTS} partitions"}[table],
            values={
                **{name: median(each) for name, each in figures[table].items()},
                "ms to remove the oldest twelfth": 1_000 * removal[table],
            },
        )
        for table in tables
    ]


def measure_table(connection: psycopg.Connection, table: str, count: int, turn: int) -> dict[str, float]:
    """Milliseconds of inserts, pages and lookups."""
    first = count + 1 + turn * BATCH * 10
    batches, pages, records = [], [], []
    for batch in range(10):
        seqs = range(first + batch * BATCH, first + (batch + 1) * BATCH)

        def add(seqs: range = seqs) -> None:
            with connection.transaction(), connection.cursor() as cursor:
                cursor.executemany(ADD.format(table=table).encode(), [(seq, seq, seq) for seq in seqs])

        batches.append(took(add))
    for at in range(50):
        after = (at * 7_919_317 + turn) % count
        pages.append(took(lambda: rows(connection, PAGE_OF.format(table=table, page=PAGE), after)))  # noqa: B023
        records.append(took(lambda: rows(connection, OF_RECORD.format(table=table), after)))  # noqa: B023
    return {
        "ms to insert 100 in a commit": 1_000 * median(batches),
        f"ms of a page of {PAGE}": 1_000 * median(pages),
        "ms for the events of a record": 1_000 * median(records),
    }


def remove_rows(connection: psycopg.Connection, upto: int) -> None:
    run(connection, f"DELETE FROM plain WHERE seq <= {upto}")
    run(connection, "VACUUM plain")


# -- replica --------------------------------------------------------------------------------------------------


def measure_replica(connection: psycopg.Connection, settings: ScaleSettings) -> list[Finding]:
    """Commits a second without a replica, with one, and with one that each commit waits for."""
    tell(REPLICA)
    count = settings.count(300, 50)
    seqs = iter(range(10_000_000, 100_000_000))

    def commit() -> None:
        seq = next(seqs)
        connection.execute(ADD.format(table="plain").encode(), (seq, seq, seq))

    def rate() -> float:
        return 1 / median(took(commit) for _ in range(count))

    alone = rate()
    began = time.perf_counter()
    with running_replica(connection, settings.scratch / "replica") as replica:
        copied = time.perf_counter() - began
        lags, following = [], rate()
        for _ in range(20):
            commit()
            lags.append(took(lambda: catch_up(connection, replica)))
        administer(connection, "ALTER SYSTEM SET synchronous_standby_names = '*'")
        try:
            waiting = rate()
        finally:
            administer(connection, "ALTER SYSTEM RESET synchronous_standby_names")
    shown = {"without": alone, "with a replica": following, "each commit waits for the replica": waiting}
    return [
        *(
            Row(measure=REPLICA, records=count, contender=name, values={"commits/s": each})
            for name, each in shown.items()
        ),
        Row(
            measure=REPLICA,
            records=count,
            contender="the replica itself",
            values={"seconds to copy and start": copied, "p50 ms until a commit is seen there": 1_000 * median(lags)},
        ),
    ]


@contextmanager
def running_replica(connection: psycopg.Connection, folder: Path) -> Iterator[psycopg.Connection]:
    """A connection to a new streaming replica of the server of a connection."""
    info, port = connection.info, free_port()
    folder.mkdir()
    identity: dict[str, Any] = {"env": {"LC_ALL": "C", "PATH": os.defpath}, "cwd": "/", "check": True, "timeout": 120}
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
        identity |= {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    data, binaries = str(folder / "data"), find_binaries()
    server = ("-h", "127.0.0.1", "-p", str(info.port), "-U", "bench")
    subprocess.run([str(binaries / "pg_basebackup"), *server, "-D", data, "-R", "-c", "fast"], **identity)
    control = [str(binaries / "pg_ctl"), "-D", data, "-w"]
    options = f"-h 127.0.0.1 -p {port} -k {folder}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([*control, "-l", str(folder / "log"), "-o", options, "start"], **identity, **quiet)
    try:
        address = f"host=127.0.0.1 port={port} user=bench dbname={info.dbname}"
        with psycopg.connect(address, autocommit=True) as replica:
            yield replica
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], **identity, **quiet)


def catch_up(primary: psycopg.Connection, replica: psycopg.Connection) -> None:
    """Wait until the replica has all that is committed now."""
    [(end,)] = rows(primary, "SELECT pg_current_wal_lsn()::text")
    while not rows(replica, "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", end)[0][0]:
        pass


def administer(connection: psycopg.Connection, command: str) -> None:
    info = connection.info
    address = f"host=127.0.0.1 port={info.port} user=bench dbname=postgres"
    with psycopg.connect(address, autocommit=True) as own:
        run(own, command)
        run(own, "SELECT pg_reload_conf()")
    time.sleep(0.5)  # the processes of the server read their configuration with a delay


# -- shards ---------------------------------------------------------------------------------------------------


async def measure_shards(engines: Engines, settings: ScaleSettings) -> list[Finding]:
    """Four workers on one log, and two on each of two databases, with the same sessions in all."""
    tell(SHARDS)
    steps, sessions = settings.count(20, 10), 16
    rates: dict[str, list[float]] = {"4 workers, one log": [], "2 workers on each of two logs": []}
    one, two = rates.values()
    for turn in range(settings.rounds):
        tell(f"{SHARDS}: round {turn + 1} of {settings.rounds}")
        async with working("clew", engines, settings.scratch, 4) as workers:
            await workers.run(4, 5)
            one.append(sessions * steps / (await workers.run(sessions, steps)).seconds)
        async with (
            working("clew", engines, settings.scratch, 2) as left,
            working("clew", engines, settings.scratch, 2) as right,
        ):
            await asyncio.gather(left.run(2, 5), right.run(2, 5))
            began = time.perf_counter()
            await asyncio.gather(left.run(sessions // 2, steps), right.run(sessions // 2, steps))
            two.append(sessions * steps / (time.perf_counter() - began))
    return [
        Row(measure=SHARDS, records=steps, contender=name, values={"steps/s": median(each)})
        for name, each in rates.items()
    ]


# -- SQL ------------------------------------------------------------------------------------------------------


def took(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def run(connection: psycopg.Connection, sql: str) -> None:
    connection.execute(sql.encode())


def rows(connection: psycopg.Connection, sql: str, *values: Any) -> list[Any]:
    return connection.execute(sql.encode(), values or None).fetchall()
