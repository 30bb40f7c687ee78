"""Ways to damage a trail on disk, for test_corruption.py."""

from __future__ import annotations

import asyncio
import random
import shutil
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import apsw

from clew.access import Principal
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.model.query import SearchRequest
from clew.trail.store import Trail
from tests.faults.processes import open_at
from tests.faults.writer import word_of

ME = Principal(owner_id="acme", agent_id="doctor")
RECORDS = 24


def draft(number: int) -> Draft:
    """A note with a word of its own, larger than a page of the file every now and then."""
    word = word_of(f"note {number}")
    filling = " ".join(word_of(f"{number}.{at}") for at in range(700 if number % 6 == 5 else 20))
    return Draft(
        title=f"Note {number}",
        schema_name="note.v1",
        tags=(f"session:s{number}", "keep"),
        context={"word": word, "text": filling},
    )


async def make_trail(folder: Path) -> list[Breadcrumb]:
    """A closed trail of some notes, half of which have an older version; the notes as they were stored."""
    trail = await open_at(folder)
    notes = await trail.records.create_many([draft(number) for number in range(RECORDS)], by=ME)
    for at in range(0, RECORDS, 2):
        change = Change(context={**notes[at].context, "again": word_of(f"again {at}")})
        notes[at] = await trail.records.update(notes[at].id, change, expect=1, by=ME)
    await trail.index.warm()
    await trail.close()
    return notes


async def write_and_wait(channel: Connection, folder: Path, count: int) -> None:
    """Write notes one by one, say so, and be killed: the log of the file stays where it is."""
    trail = await open_at(folder)
    for number in range(RECORDS, RECORDS + count):
        await trail.records.create(draft(number), by=ME)
    channel.send("written")
    await asyncio.get_running_loop().create_future()


def file_of(folder: Path) -> Path:
    return folder / "trail.db"


def log_of(folder: Path) -> Path:
    return folder / "trail.db-wal"


def page_size(file: Path) -> int:
    return int.from_bytes(file.read_bytes()[16:18], "big")


def derived_pages(file: Path) -> set[int]:
    """The pages that hold only the inner part of a value derived from a record."""
    connection = apsw.Connection(str(file))
    sql = "SELECT pageno - 1 FROM dbstat WHERE pagetype = 'overflow' AND name IN ('terms', 'vectors')"
    pages = {int(number) for (number,) in connection.execute(sql)}
    connection.close()
    return pages


def zero_page(file: Path, number: int) -> None:
    size = page_size(file)
    with file.open("r+b") as opened:
        opened.seek(number * size)
        opened.write(bytes(size))


def flip(file: Path, offset: int) -> None:
    """Change one bit."""
    with file.open("r+b") as opened:
        opened.seek(offset)
        [byte] = opened.read(1)
        opened.seek(offset)
        opened.write(bytes([byte ^ 0x04]))


def change_word(folder: Path, note: Breadcrumb) -> None:
    """Change one bit of the word in the stored content of a note, and in remains of earlier writes."""
    stored = f'"word":"{note.context["word"]}"'.encode()
    content = file_of(folder).read_bytes()
    assert stored in content
    changed = stored[:-2] + bytes([stored[-2] ^ 0x01]) + stored[-1:]
    file_of(folder).write_bytes(content.replace(stored, changed))


def copy_of(folder: Path, name: str) -> Path:
    """The folder again, beside the first, so that one trail can be damaged in many ways."""
    target = folder.with_name(f"{folder.name}-{name}")
    shutil.copytree(folder, target)
    return target


def offsets(file: Path, count: int) -> list[int]:
    """Random places beyond the header of the file, the same each time for a file of one size."""
    return sorted(random.Random(11).sample(range(100, file.stat().st_size), count))


def content_of(note: Breadcrumb) -> tuple[Any, ...]:
    """The content that the checksum protects."""
    return note.title, note.context, note.tags, note.schema_name, note.llm_hints


async def find(trail: Trail, word: str) -> list[str]:
    hits = (await trail.index.search(SearchRequest(text=word, ranking="text"), by=ME)).hits
    return [hit.breadcrumb.id for hit in hits]
