"""The work of child processes for test_disk.py: use a trail on a full disk or without permissions.

An errand gets a folder and returns what happened. It runs in a process of its own, so that privileges and limits can
be given up without giving up the test run.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
from collections.abc import Awaitable, Callable
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from clew.access import Principal
from clew.errors import ClewError, StorageError
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.event import Event
from clew.trail.model.query import SearchRequest
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.handlers import Worker, handles
from tests.faults.processes import PATIENCE, eventually, is_settled, open_at, state_of

ME = Principal(owner_id="acme", agent_id="errand")
NOBODY = 65534
Errand = Callable[[Path], Awaitable[Any]]


async def run_errand(channel: Connection, folder: Path, errand: Errand, unprivileged: bool = False) -> None:
    if unprivileged and os.geteuid() == 0:
        await load_everything()
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    channel.send(await errand(folder))


async def load_everything() -> None:
    """Import late modules early, because the user `nobody` may not be able to read the interpreter's files."""
    trail = await open_trail("sqlite://:memory:")
    await trail.records.create(Draft(title="Warm", context={}), by=ME)
    await trail.index.search(SearchRequest(text="warm"), by=ME)
    await trail.close()


async def outcome(call: Awaitable[Any]) -> str:
    """`ok`, or the error as a caller sees it."""
    try:
        await call
    except ClewError as error:
        return f"{type(error).__name__}: {error}"
    return "ok"


def note(text: str, size: int = 10) -> Draft:
    return Draft(title=f"Note {text}", schema_name="note.v1", context={"text": text, "filling": os.urandom(size).hex()})


async def find(trail: Trail, text: str) -> list[str]:
    hits = (await trail.index.search(SearchRequest(text=text, ranking="text"), by=ME)).hits
    return [hit.breadcrumb.context["text"] for hit in hits]


async def count(trail: Trail) -> int:
    return (await trail.upkeep.stats(by=ME)).breadcrumbs


# -- a full disk ----------------------------------------------------------------------------------------------


def fill(folder: Path, leave: int) -> None:
    """Leave only this number of bytes free on a small disk."""
    found = os.statvfs(folder)
    with contextlib.suppress(OSError):  # the trail may use some of the space first
        (folder / "ballast").write_bytes(bytes(max(0, found.f_bavail * found.f_frsize - leave)))


def free(folder: Path) -> None:
    (folder / "ballast").unlink()


async def fill_up_and_free(folder: Path) -> dict[str, Any]:
    """Write until the disk is full, read, free some space, and write again on the same trail."""
    trail = await open_at(folder)
    kept = [await trail.records.create(note(f"early{number}"), by=ME) for number in range(10)]
    fill(folder, 200_000)
    refused = list[str]()
    while len(refused) < 5 and len(kept) < 1_000:
        try:
            kept.append(await trail.records.create(note(f"late{len(kept)}", 2_000), by=ME))
        except ClewError as error:
            refused.append(f"{type(error).__name__}: {error}")
    batch = await outcome(trail.records.create_many([note("batch", 4_000) for _ in range(20)], by=ME))
    seen = {
        "refused": refused,
        "batch": batch,
        "expected": len(kept),
        "counted": await count(trail),
        "listed": len((await trail.records.list(by=ME, limit=1_000)).items),
        "events": len((await trail.log.read(0, by=ME))[0]),
        "readable": [await trail.records.get(one.id, by=ME) for one in kept] == kept,
    }
    free(folder)
    seen["after"] = await outcome(trail.records.create(note("after"), by=ME))
    seen["damage"] = await trail.upkeep.check()
    await trail.close()
    trail = await open_at(folder)
    seen["reopened"] = await count(trail)
    await trail.close()
    return seen


async def search_while_full(folder: Path) -> list[str]:
    trail = await open_at(folder)
    await trail.records.create_many([note("heron"), note("stork")], by=ME)
    fill(folder, 0)
    try:
        return await find(trail, "heron")
    finally:
        free(folder)
        await trail.close()


async def open_while_full(folder: Path) -> dict[str, Any]:
    """Open a trail when not even its companion files have room, then again with room."""
    trail = await open_at(folder)
    await trail.records.create(note("heron"), by=ME)
    await trail.close()
    fill(folder, 0)
    opened = await outcome(open_at(folder))
    new = await outcome(open_at(folder / "new"))
    free(folder)
    trail = await open_at(folder)
    seen = {"opened": opened, "new": new, "counted": await count(trail)}
    await trail.close()
    trail = await open_at(folder / "new")
    seen["written"] = await outcome(trail.records.create(note("stork"), by=ME))
    await trail.close()
    return seen


@handles(Selector(schema_name="note.v1"))
async def copy(event: Event, gate: asyncio.Event) -> list[Draft]:
    assert event.breadcrumb is not None
    await gate.wait()
    return [Draft(title="Copy", schema_name="copy.v1", context=event.breadcrumb.context)]


async def work_through_a_full_disk(folder: Path) -> dict[str, Any]:
    """Let a worker begin with accepted events, fill the disk before it can finish them, and make room again."""
    trail, met, gate = await open_at(folder), Met(), asyncio.Event()
    worker = Worker(trail, [copy], by=ME, worker_id="patient", deps=gate, concurrency=4, lease=timedelta(seconds=1))
    running = asyncio.create_task(worker.run())
    await eventually(lambda: state_of(trail, "copy", ME), "the worker is registered")
    accepted = await trail.records.create_many([note(f"n{number}", 4_000) for number in range(20)], by=ME)

    async def holds_some() -> bool:
        state = await state_of(trail, "copy", ME)
        return state is not None and state.claimed == 4

    await eventually(holds_some, "the worker has begun")
    fill(folder, 0)
    gate.set()
    await asyncio.wait_for(met.warned.wait(), PATIENCE)
    free(folder)
    await eventually(lambda: is_settled(trail, "copy", ME), "the events are handled")
    worker.stop()
    await running
    copies = (await trail.records.list(Selector(schema_name="copy.v1"), by=ME, limit=1_000)).items
    dead = len(await trail.dead_letters.list(by=ME))
    await trail.close()
    texts = [sorted(one.context["text"] for one in some) for some in (accepted, copies)]
    return {"accepted": texts[0], "copied": texts[1], "dead": dead}


class Met(logging.Handler):
    """Detects that a worker has hit the full disk."""

    def __init__(self) -> None:
        super().__init__()
        self.warned = asyncio.Event()
        logging.getLogger("clew.trail.work.claims").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        if "no space left" in record.getMessage():
            self.warned.set()


async def write_over_a_size_limit(folder: Path) -> dict[str, Any]:
    """Meet a limit on the size of files, as a quota is, then have it lifted, on the same trail."""
    trail = await open_at(folder)
    kept = [await trail.records.create(note("early"), by=ME)]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, hard))
    refused = None
    while refused is None and len(kept) < 1_000:
        try:
            kept.append(await trail.records.create(note("late", 4_000), by=ME))
        except StorageError as error:
            refused = str(error)
    counted = await count(trail)
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    after = await outcome(trail.records.create(note("after"), by=ME))
    damage = await trail.upkeep.check()
    await trail.close()
    return {"refused": refused, "lost": len(kept) - counted, "after": after, "damage": damage}


# -- permissions ----------------------------------------------------------------------------------------------


async def write_to_a_read_only_file(folder: Path) -> dict[str, Any]:
    """Use a trail whose file cannot be written; then give the permission back, with the trail still open."""
    kept = await make_trail(folder)
    file = folder / "trail.db"
    file.chmod(0o444)
    trail = await open_at(folder)
    seen = {
        "written": await outcome(trail.records.create(note("refused"), by=ME)),
        "read": (await trail.records.get(kept, by=ME)).context["text"],
        "found": await find(trail, "heron"),
        "listed": len((await trail.records.list(by=ME)).items),
    }
    file.chmod(0o644)
    seen["after"] = await outcome(trail.records.create(note("after"), by=ME))
    await trail.close()
    seen["reopened"] = await outcome(open_and_write(folder))
    return seen


async def make_trail(folder: Path) -> str:
    trail = await open_at(folder)
    kept = await trail.records.create(note("heron"), by=ME)
    await trail.close()
    return kept.id


async def open_in_a_read_only_folder(folder: Path) -> dict[str, Any]:
    """Open trails, new and old, where no file can be made; then again with permission."""
    await make_trail(folder)
    (folder / "trail.db").chmod(0o444)
    folder.chmod(0o555)
    seen = {
        "old": await outcome(open_and_write(folder)),
        "new file": await outcome(open_trail(f"sqlite://{folder}/other.db")),
        "new folder": await outcome(open_trail(f"sqlite://{folder}/below/other.db")),
    }
    folder.chmod(0o755)
    (folder / "trail.db").chmod(0o644)
    seen["after"] = await outcome(open_and_write(folder))
    return seen


async def open_and_write(folder: Path) -> None:
    trail = await open_at(folder)
    try:
        await trail.records.create(note("more"), by=ME)
    finally:
        await trail.close()


async def open_an_unreadable_file(folder: Path) -> dict[str, Any]:
    await make_trail(folder)
    (folder / "trail.db").chmod(0)
    opened = await outcome(open_at(folder))
    (folder / "trail.db").chmod(0o644)
    return {"opened": opened, "after": await outcome(open_and_write(folder))}


async def search_beside_a_foreign_index(folder: Path) -> dict[str, Any]:
    """Search where the folder of the index can neither be written nor removed."""
    trail = await open_at(folder)
    await trail.records.create_many([note("heron"), note("stork")], by=ME)
    first = await find(trail, "heron")
    await trail.records.create_many([note("egret", 1)] + [note("filler", 1) for _ in range(3_000)], by=ME)
    later = await find(trail, "egret")
    written = await outcome(trail.records.create(note("ibis"), by=ME))

    async def is_found() -> bool:
        return await find(trail, "ibis") == ["ibis"]

    await eventually(is_found, "a write is found")
    await trail.close()
    return {"first": first, "later": later, "written": written}
