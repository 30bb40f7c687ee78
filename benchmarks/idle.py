"""The memory of a server for idle sessions and open event streams, and whether each stream gets its event.

    .venv/bin/python benchmarks/idle.py [--sessions N] [--streams N] [--json]

Starts `clew up` in a process of its own and makes sessions on the same trail by the library, as one request each would
take minutes. Then opens event streams over HTTP, each for one session, and writes one event to each of them. Memory is
the private memory (`RssAnon` of Linux) of the idle process. The exit code is 1 if a session or a stream costs 100 KB or
more, or an event did not arrive.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from clew.access import Principal
from clew.agents.conversations.sessions import message_draft
from clew.clock import SystemClock
from clew.trail import open_trail
from clew.trail.model.flow import read_flow

PROMISE = 100.0
"""The limits for a session and a stream, in kilobytes."""
CONNECTIONS = 32
WARM = 50
BATCH = 500
PATIENCE = 60.0


@contextmanager
def serving(folder: Path) -> Iterator[tuple[int, str, str]]:
    """`clew up` on a new folder: its process, its address and a token."""
    environ = os.environ | {"CLEW_FOLDER": str(folder / ".clew"), "CLEW_TRUST": str(folder / "trust.json")}
    command = [sys.executable, "-m", "clew"]
    with subprocess.Popen(
        [*command, "up", "--port", "0", "--json"], env=environ, cwd=folder, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            url = json.loads(process.stdout.readline())["url"]
            token = subprocess.run(
                [*command, "token"], env=environ, cwd=folder, stdout=subprocess.PIPE, text=True, check=True
            )
            yield process.pid, url, token.stdout.strip()
        finally:
            process.terminate()


def memory_of(pid: int) -> tuple[float, float]:
    """The private and the resident memory of a process, in kilobytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    found = {
        name: float(rest.split()[0])
        for name, _, rest in (line.partition(":") for line in lines)
        if name in ("RssAnon", "VmRSS")
    }
    return found["RssAnon"], found["VmRSS"]


def processor_seconds(pid: int) -> float:
    """The processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def make_sessions(folder: Path, count: int, name: str) -> list[str]:
    """Create sessions with one message each, for an agent that does not exist, and return their ids."""
    trail, clock = await open_trail(f"sqlite://{folder}/.clew/trail.db"), SystemClock()
    by, ids = Principal(owner_id="local", agent_id="bench"), [clock.new_id() for _ in range(count)]
    flow = await read_flow(trail, by=by)
    try:
        for at in range(0, count, BATCH):
            drafts = [
                message_draft(flow, f"{name} {id}", id=clock.new_id(), session=id, agent="nobody", source="bench")
                for id in ids[at : at + BATCH]
            ]
            await trail.records.create_many(drafts, by=by)
    finally:
        await trail.close()
    return ids


async def at_rest(pid: int) -> tuple[float, float]:
    """Its memory, measured when it has used at most a tenth of a processor for two seconds."""

    deadline, before = time.monotonic() + 20.0, processor_seconds(pid)
    while time.monotonic() < deadline:
        await asyncio.sleep(2.0)
        now = processor_seconds(pid)
        if now - before <= 0.2:
            break
        before = now
    return memory_of(pid)


async def all_of(count: int, work: Callable[[int], Awaitable[Any]]) -> list[Any]:
    """The results of some calls, a few at a time."""
    found: list[Any] = [None] * count
    numbers = iter(range(count))

    async def take() -> None:
        for number in numbers:
            found[number] = await work(number)

    await asyncio.gather(*(take() for _ in range(CONNECTIONS)))
    return found


class Stream:
    """One open event stream: a socket and nothing more, so that this process is not the bottleneck."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, url: str, token: str, session: str) -> Stream:
        host, port = urlsplit(url).hostname, urlsplit(url).port
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(
            f"GET /events/stream?session={session} HTTP/1.1\r\nHost: {host}:{port}\r\n"
            f"Authorization: Bearer {token}\r\n\r\n".encode()
        )
        stream = cls(reader, writer)
        await stream.read_until(b"event: ping")
        return stream

    async def read_until(self, text: bytes) -> float:
        async with asyncio.timeout(PATIENCE):
            while text not in (line := await self._reader.readline()):
                if not line:
                    raise ConnectionError("the stream has ended")
        return time.monotonic()

    def close(self) -> None:
        self._writer.close()


async def measure(sessions: int, streams: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as (pid, url, token):
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(base_url=url, headers=headers, timeout=PATIENCE) as http:
            return await _measure(pid, Path(folder), url, token, http, sessions, streams)


async def _measure(
    pid: int, folder: Path, url: str, token: str, http: httpx.AsyncClient, sessions: int, streams: int
) -> dict[str, Any]:
    # The first sessions, streams and events load modules: these are not counted.
    ids = await make_sessions(folder, WARM, "warm")
    first = [await Stream.open(url, token, each) for each in ids]
    await send_each(http, first, ids)
    start = await at_rest(pid)
    ids = await make_sessions(folder, sessions, "user")
    with_sessions = await at_rest(pid)
    opened = [await Stream.open(url, token, each) for each in ids[:streams]]
    with_streams, before = await at_rest(pid), processor_seconds(pid)
    waits, lost = await send_each(http, opened, ids)
    spent = processor_seconds(pid) - before
    after_events = await at_rest(pid)
    for each in (*first, *opened):
        each.close()
    return {
        "sessions": sessions,
        "streams": streams,
        "server_mb": start[1] / 1024,
        "session_kb": (with_sessions[0] - start[0]) / sessions,
        "stream_kb": (with_streams[0] - with_sessions[0]) / streams,
        "stream_after_event_kb": (after_events[0] - with_sessions[0]) / streams,
        "resident_at_the_end_mb": after_events[1] / 1024,
        "processor_ms_an_event": spent * 1000 / streams,
        "event_ms": statistics.median(waits) * 1000 if waits else None,
        "events_lost": lost,
    }


async def send_each(http: httpx.AsyncClient, streams: Sequence[Stream], ids: Sequence[str]) -> tuple[list[float], int]:
    """Write an event to each stream; return the seconds until each arrived, and the number of missing events."""
    sent: dict[int, float] = {}

    async def hear(number: int) -> float | None:
        try:
            return await streams[number].read_until(f'"number":{number}}}'.encode())
        except (TimeoutError, ConnectionError):
            return None

    async def write(number: int) -> None:
        body = {"title": "e", "context": {"number": number}, "tags": [f"session:{ids[number]}"]}
        sent[number] = time.monotonic()
        (await http.post("/breadcrumbs", json=body)).raise_for_status()

    hearing = [asyncio.create_task(hear(number)) for number in range(len(streams))]
    await all_of(len(streams), write)
    heard = await asyncio.gather(*hearing)
    return [at - sent[number] for number, at in enumerate(heard) if at is not None], heard.count(None)


def render(found: dict[str, Any]) -> str:
    """The figures as a table in markdown."""
    most, streams = f"< {PROMISE:.0f}", f"{found['streams']:,}"
    rows = [
        ("", "measured", "promise"),
        ("---", "---", "---"),
        ("memory of the server before, MB", f"{found['server_mb']:.0f}", ""),
        (f"memory of an idle session, KB ({found['sessions']:,})", f"{found['session_kb']:.1f}", most),
        (f"memory of an open event stream, KB ({streams})", f"{found['stream_kb']:.1f}", most),
        ("the same after an event", f"{found['stream_after_event_kb']:.1f}", most),
        ("memory of the server at the end, MB", f"{found['resident_at_the_end_mb']:.0f}", ""),
        (f"processor time of an event with {streams} streams open, ms", f"{found['processor_ms_an_event']:.1f}", ""),
        (f"from a write to its stream, median of {streams} at once, ms", f"{found['event_ms'] or 0:.0f}", ""),
        ("events that did not arrive", str(found["events_lost"]), "0"),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = asyncio.run(measure(asked.sessions, min(asked.streams, asked.sessions)))
    if asked.json:
        print(json.dumps(found))
    else:
        print(render(found))
    costs = (found["session_kb"], found["stream_kb"], found["stream_after_event_kb"])
    return int(max(costs) >= PROMISE or found["events_lost"] > 0)


if __name__ == "__main__":
    sys.exit(main())
