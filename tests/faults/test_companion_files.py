"""The files beside a trail: its log, its shared memory, its search index. Only the log holds anything of its own."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.query import SearchRequest
from tests.faults.damage import (
    ME,
    RECORDS,
    copy_of,
    file_of,
    find,
    flip,
    log_of,
    make_trail,
    write_and_wait,
)
from tests.faults.processes import Child, open_at
from tests.faults.writer import word_of

LOGGED = 12
"""Notes that are only in the log, after those in the file."""
EXPECTED = [word_of(f"note {number}") for number in range(RECORDS + LOGGED)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "trail"
    made.mkdir()
    return made


# -- the log and the shared memory ----------------------------------------------------------------------------


async def leave_log(folder: Path) -> list[Breadcrumb]:
    """A trail whose newest notes are in the log only, because its process was killed."""
    notes = await make_trail(folder)
    with Child(write_and_wait, folder, LOGGED) as child:
        assert child.hear() == "written"
        child.kill()
    assert log_of(folder).stat().st_size > 0
    return notes


async def words(folder: Path) -> list[str]:
    """The words of all notes in order of creation, from a trail that must be whole."""
    trail = await open_at(folder)
    try:
        assert await trail.upkeep.check() == []
        return [
            str(note.context["word"]) for note in (await trail.records.list(by=ME, limit=100, oldest_first=True)).items
        ]
    finally:
        await trail.close()


async def test_a_torn_log_keeps_every_earlier_commit(folder: Path) -> None:
    await leave_log(folder)
    whole = log_of(folder).stat().st_size
    lengths = list[int]()
    for keep in (whole - 1, whole - 3_000, whole * 3 // 4, whole // 2, 5_000, 20, 0):
        torn = copy_of(folder, f"cut-{keep}")
        os.truncate(log_of(torn), keep)
        found = await words(torn)
        assert found == EXPECTED[: len(found)]
        lengths.append(len(found))
    assert lengths == sorted(lengths, reverse=True)
    assert RECORDS + LOGGED - 1 <= lengths[0] <= RECORDS + LOGGED, "the tear took one commit, perhaps of terms only"
    assert lengths[-1] == RECORDS, "what was in the file itself is there"


async def test_a_flipped_bit_in_the_log_ends_it_before_that_commit(folder: Path) -> None:
    await leave_log(folder)
    used = len(log_of(folder).read_bytes().rstrip(b"\0"))  # the rest is reserved for later writes
    flip(log_of(folder), used // 2)
    found = await words(folder)

    assert found == EXPECTED[: len(found)]
    assert RECORDS <= len(found) < RECORDS + LOGGED


@pytest.mark.parametrize("shm", ["gone", "noise"])
async def test_the_shared_memory_file_is_never_needed(folder: Path, shm: str) -> None:
    await leave_log(folder)
    file = folder / "trail.db-shm"
    if shm == "gone":
        file.unlink()
    else:
        file.write_bytes(random.Random(5).randbytes(32_768))

    assert await words(folder) == EXPECTED


# -- the search index ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", ["gone", "noise", "empty files", "a file"])
async def test_the_search_index_is_never_needed(folder: Path, index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.trail.search.search_index.PENDING", 1)  # so few records go there too
    notes = await make_trail(folder)
    place = folder / "trail.db-index"
    trail = await open_at(folder)
    assert await find(trail, str(notes[5].context["word"])) == [notes[5].id]
    await trail.close()
    damage_index(place, index)
    trail = await open_at(folder)
    try:
        for note in notes:
            assert await find(trail, str(note.context["word"])) == [note.id]
    finally:
        await trail.close()


def damage_index(place: Path, how: str) -> None:
    assert place.is_dir()
    files = [file for file in place.iterdir() if file.is_file()]
    match how:
        case "noise":
            for file in files:
                file.write_bytes(random.Random(6).randbytes(500))
        case "empty files":
            for file in files:
                file.write_bytes(b"")
        case _:
            shutil.rmtree(place)
            if how == "a file":
                place.write_text("in the way")


async def test_a_trail_put_back_from_a_copy_is_searched_as_it_is_now(folder: Path) -> None:
    """The index beside the file has seen events that the copy has not, and the next ones get the same numbers."""
    await write_and_index(folder, "first", 2_200)
    shutil.copy(file_of(folder), folder / "copy")
    await write_and_index(folder, "lost", 600)
    shutil.move(folder / "copy", file_of(folder))
    await write_and_index(folder, "new", 600)

    trail = await open_at(folder)
    try:
        for number in range(0, 600, 50):
            [hit] = (await trail.index.search(SearchRequest(text=word_of(f"new{number}"), ranking="text"), by=ME)).hits
            assert hit.breadcrumb.title == f"new {number}"
            assert await find(trail, word_of(f"lost{number}")) == []
    finally:
        await trail.close()


async def write_and_index(folder: Path, name: str, count: int) -> None:
    """Write notes with words of their own, and bring the index up to them."""
    trail = await open_at(folder)
    drafts = [Draft(title=f"{name} {number}", context={"word": word_of(f"{name}{number}")}) for number in range(count)]
    await trail.records.create_many(drafts, by=ME)
    await trail.index.warm()
    await trail.close()
