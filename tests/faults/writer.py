"""The process that test_kill.py kills: many writers and handlers at once, with a log of the acknowledged writes."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import os
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from clew.access import Principal
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.model.event import Event, RetryPolicy
from clew.trail.model.query import SearchRequest
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.handlers import Worker, handles
from tests.faults.processes import open_at

ME = Principal(owner_id="acme", agent_id="writer")
LEASE = timedelta(milliseconds=300)
SEARCH_EVERY = 4


class Notebook:
    """A file beside the trail. When `note` returns, the kernel has the line, so a kill cannot lose it."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / "notebook", os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def note(self, *words: Any) -> None:
        os.write(self._file, (" ".join(map(str, words)) + "\n").encode())


def word_of(name: str) -> str:
    """A word of sixteen letters that only the record of this name contains."""
    digest = hashlib.blake2b(name.encode(), digest_size=16).digest()
    return "".join(chr(ord("a") + byte % 26) for byte in digest)


def content_of(name: str, version: int) -> dict[str, Any]:
    return {"name": name, "version": version, "text": f"the word {word_of(name)} in version {version}"}


# The death of a worker uses up an attempt, and workers are killed all the time here.
@handles(Selector(schema_name="note.v1"), name="echo", retry=RetryPolicy(attempts=100, backoff=0.01))
async def echo(event: Event, deps: None) -> list[Draft]:
    """One output for each event, with the number of the event."""
    tags = (f"event:{event.seq}", *(tag for tag in event.tags if tag.startswith("session:")))
    return [Draft(title="Echo", schema_name="echo.v1", tags=tags, context={"of": event.seq}, embed="never")]


async def write_until_killed(channel: Connection, folder: Path, round: int) -> None:
    trail, book = await open_at(folder), Notebook(folder)
    workers = [Worker(trail, [echo], by=ME, worker_id=f"{round}-{n}", lease=LEASE, concurrency=4) for n in range(2)]
    await workers[0].register()
    async with asyncio.TaskGroup() as group:
        for worker in workers:
            group.create_task(worker.run())
        for number in range(3):
            group.create_task(write_notes(trail, book, f"r{round}w{number}"))
        group.create_task(write_scraps(trail, book, f"r{round}s"))
        group.create_task(write_keyed(trail, book, f"key-{round // 2}"))
        if round % SEARCH_EVERY == 0:
            group.create_task(search_on(trail, f"r{round}w0"))
        channel.send("ready")


async def write_notes(trail: Trail, book: Notebook, writer: str) -> None:
    """Create notes and update each up to three times."""
    for number in itertools.count():
        name = f"{writer}n{number}"
        draft = Draft(
            title="A note",
            schema_name="note.v1",
            tags=(f"session:{writer}-{number % 4}",),
            context=content_of(name, 1),
        )
        note = await trail.records.create(draft, by=ME)
        acknowledge(book, note)
        for _ in range(number % 4):
            change = Change(context=content_of(name, note.version + 1))
            note = await trail.records.update(note.id, change, expect=note.version, by=ME)
            acknowledge(book, note)


def acknowledge(book: Notebook, note: Breadcrumb) -> None:
    book.note("wrote", note.id, note.version, note.context["name"])


async def write_scraps(trail: Trail, book: Notebook, writer: str) -> None:
    """Create records and delete them again."""
    for number in itertools.count():
        name = f"{writer}n{number}"
        draft = Draft(title="A scrap", schema_name="scrap.v1", context=content_of(name, 1))
        scrap = await trail.records.create(draft, by=ME)
        acknowledge(book, scrap)
        book.note("deleting", scrap.id, 1, name)
        await trail.records.delete(scrap.id, by=ME)
        book.note("deleted", scrap.id, 1, name)


async def write_keyed(trail: Trail, book: Notebook, key: str) -> None:
    """Create the same record as the process before or after this one, like a caller that got no answer."""
    draft = Draft(title="Keyed", schema_name="keyed.v1", context={"key": key}, idempotency_key=key)
    book.note("keyed", (await trail.records.create(draft, by=ME)).id, 1, key)


async def search_on(trail: Trail, writer: str) -> None:
    """Search without a pause, so that kills also hit the index while it is written."""
    for number in itertools.count():
        await trail.index.search(SearchRequest(text=word_of(f"{writer}n{number}")), by=ME)
