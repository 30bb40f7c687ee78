"""Torn, zeroed, flipped and foreign files: damage is reported, and damaged data is never served as valid."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from clew.errors import Corrupted, NotFound, StorageError
from clew.trail.model.breadcrumb import Breadcrumb, Change
from clew.trail.model.event import Consumer
from clew.trail.model.query import SearchRequest
from clew.trail.store import Trail
from tests.faults.damage import (
    ME,
    RECORDS,
    change_word,
    content_of,
    copy_of,
    derived_pages,
    draft,
    file_of,
    flip,
    make_trail,
    offsets,
    page_size,
    zero_page,
)
from tests.faults.processes import open_at


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "trail"
    made.mkdir()
    return made


# -- the file as a whole --------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [0.02, 0.5, 0.97])
async def test_a_file_that_is_cut_short_is_not_opened(folder: Path, keep: float) -> None:
    await make_trail(folder)
    size = file_of(folder).stat().st_size
    os.truncate(file_of(folder), int(size * keep))

    with pytest.raises(Corrupted, match="clew doctor"):
        await open_at(folder)


@pytest.mark.parametrize(
    "content",
    [b"not a trail", b"\x00" * 20_000, random.Random(3).randbytes(50_000), b"SQLite format 3\x00" + b"\x7f" * 40_000],
    ids=["text", "zeros", "noise", "noise behind the right beginning"],
)
async def test_a_file_that_is_no_trail_is_neither_opened_nor_changed(folder: Path, content: bytes) -> None:
    file_of(folder).write_bytes(content)

    with pytest.raises(Corrupted):
        await open_at(folder)
    assert file_of(folder).read_bytes() == content


async def test_a_zeroed_page_is_reported_wherever_it_is(folder: Path) -> None:
    notes = await make_trail(folder)
    pages = set(range(1, file_of(folder).stat().st_size // page_size(file_of(folder))))
    assert await unreported(folder, notes, pages - derived_pages(file_of(folder))) == []


async def test_a_zeroed_page_of_what_search_needs_is_reported_too(folder: Path) -> None:
    notes = await make_trail(folder)
    pages = derived_pages(file_of(folder))
    assert pages
    assert await unreported(folder, notes, pages) == []


async def unreported(folder: Path, notes: list[Breadcrumb], pages: set[int]) -> list[int]:
    """The pages that can be zeroed without a report of damage."""
    silent = list[int]()
    for number in sorted(pages):
        damaged = copy_of(folder, str(number))
        zero_page(file_of(damaged), number)
        if not await is_reported(damaged, notes):
            silent.append(number)
        shutil.rmtree(damaged)
    return silent


async def is_reported(folder: Path, notes: list[Breadcrumb]) -> bool:
    """Whether opening or checking a damaged trail says so. Served records must be unchanged, and no record may be
    missing without a report."""
    try:
        trail = await open_at(folder)
    except Corrupted:
        return True
    try:
        missing = [note.id for note in notes if not await is_served(trail, note)]
        found = await trail.upkeep.check()
        assert found or not missing, f"{missing} cannot be read, and nothing is reported"
        return bool(found)
    except Corrupted:
        return True
    finally:
        await trail.close()


async def is_served(trail: Trail, note: Breadcrumb) -> bool:
    try:
        served = await trail.records.get(note.id, by=ME)
    except (StorageError, NotFound):
        return False
    assert content_of(served) == content_of(note)
    return True


@pytest.mark.req("RCR-05")
async def test_no_single_flipped_bit_makes_a_trail_serve_other_content(folder: Path) -> None:
    notes = await make_trail(folder)
    for offset in offsets(file_of(folder), 60):
        damaged = copy_of(folder, str(offset))
        flip(file_of(damaged), offset)
        await is_reported(damaged, notes)
        shutil.rmtree(damaged)


# -- one record -----------------------------------------------------------------------------------------------


@pytest.mark.req("RCR-05")
async def test_a_changed_content_is_found_by_the_check_and_named(folder: Path) -> None:
    notes = await make_trail(folder)
    change_word(folder, notes[3])
    trail = await open_at(folder)
    try:
        [line] = await trail.upkeep.check()
        assert notes[3].id in line
    finally:
        await trail.close()


@pytest.mark.req("RCR-05")
async def test_a_damaged_record_is_refused_and_the_others_are_still_served(folder: Path) -> None:
    notes = await make_trail(folder)
    change_word(folder, notes[3])
    trail = await open_at(folder)
    try:
        for _ in range(2):
            with pytest.raises(Corrupted, match=notes[3].id):
                await trail.records.get(notes[3].id, by=ME)
            for note in (*notes[:3], *notes[4:]):
                assert await trail.records.get(note.id, by=ME) == note
        assert len(await trail.upkeep.check()) == 1, "the check still answers after the damage was met"
        await trail.records.create(draft(RECORDS), by=ME)
    finally:
        await trail.close()


@pytest.mark.req("RCR-05")
async def test_a_damaged_old_version_is_refused_and_the_present_one_served(folder: Path) -> None:
    notes = await make_trail(folder)
    trail = await open_at(folder)
    current = await trail.records.update(notes[1].id, Change(context={"word": "fresh"}), expect=notes[1].version, by=ME)
    await trail.close()
    change_word(folder, notes[1])
    trail = await open_at(folder)
    try:
        with pytest.raises(Corrupted, match="version 1"):
            await trail.records.get(notes[1].id, by=ME, version=1)
        assert await trail.records.get(notes[1].id, by=ME) == current
        [line] = await trail.upkeep.check()
        assert f"{notes[1].id} version 1" in line
    finally:
        await trail.close()


async def test_no_way_of_reading_serves_a_damaged_record(folder: Path) -> None:
    notes = await make_trail(folder)
    bad = notes[3]
    change_word(folder, bad)
    for read in (by_listing, by_searching, by_following, by_claiming):
        trail = await open_at(folder)
        try:
            served = await read(trail)
            assert all(note.id != bad.id for note in served), read.__name__
        except Corrupted:
            pass
        finally:
            await trail.close()


async def by_listing(trail: Trail) -> list[Breadcrumb]:
    return list((await trail.records.list(by=ME, limit=100)).items)


async def by_searching(trail: Trail) -> list[Breadcrumb]:
    return [hit.breadcrumb for hit in (await trail.index.search(SearchRequest(text="Note 3"), by=ME)).hits]


async def by_following(trail: Trail) -> list[Breadcrumb]:
    events, _ = await trail.log.read(0, by=ME, limit=100)
    return [event.breadcrumb for event in events if event.breadcrumb is not None]


async def by_claiming(trail: Trail) -> list[Breadcrumb]:
    await trail.deliveries.register(Consumer(name="all", start="beginning"), by=ME)
    claims = await trail.deliveries.claim("all", by=ME, worker="w", limit=100)
    return [claim.event.breadcrumb for claim in claims if claim.event.breadcrumb is not None]


async def test_the_event_of_a_damaged_record_does_not_hold_up_other_sessions(folder: Path) -> None:
    notes = await make_trail(folder)
    change_word(folder, notes[3])
    trail = await open_at(folder)
    try:
        await trail.deliveries.register(Consumer(name="all", start="beginning"), by=ME)
        claims = await trail.deliveries.claim("all", by=ME, worker="w", limit=100)
        claimed = {claim.event.breadcrumb_id for claim in claims}
        assert claimed >= {note.id for note in (*notes[:3], *notes[4:])}
    finally:
        await trail.close()


async def test_a_deleted_record_leaves_nothing_behind_that_the_check_complains_of(folder: Path) -> None:
    notes = await make_trail(folder)
    trail = await open_at(folder)
    try:
        await trail.records.delete(notes[0].id, by=ME)
        assert await trail.upkeep.check() == []
    finally:
        await trail.close()


# -- clew doctor ----------------------------------------------------------------------------------------------


def doctor(folder: Path) -> tuple[int, str]:
    """The exit code and the words of `clew doctor`."""
    command = [sys.executable, "-m", "clew", "doctor", "--folder", str(folder)]
    environ = {**os.environ, "CLEW_OWNER": ME.owner_id, "CLEW_EMBEDDER": "none"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environ)
    return done.returncode, done.stdout + done.stderr


async def test_the_doctor_finds_nothing_wrong_with_a_whole_trail(folder: Path) -> None:
    await make_trail(folder)
    code, said = doctor(folder)

    assert code == 0, said
    assert f"{RECORDS} breadcrumbs" in said


async def test_the_doctor_reports_a_torn_file(folder: Path) -> None:
    await make_trail(folder)
    os.truncate(file_of(folder), file_of(folder).stat().st_size // 2)
    code, said = doctor(folder)

    assert code == 1, said
    assert "damaged" in said
    assert "Traceback" not in said


async def test_the_doctor_reports_a_file_that_is_no_trail(folder: Path) -> None:
    file_of(folder).write_bytes(random.Random(3).randbytes(50_000))
    code, said = doctor(folder)

    assert code == 1, said
    assert str(file_of(folder)) in said
    assert "Traceback" not in said


async def test_the_doctor_reports_a_zeroed_page(folder: Path) -> None:
    await make_trail(folder)
    zero_page(file_of(folder), file_of(folder).stat().st_size // page_size(file_of(folder)) // 2)
    code, said = doctor(folder)

    assert code == 1, said
    assert "damaged" in said


@pytest.mark.req("RCR-05")
async def test_the_doctor_names_a_record_whose_content_was_changed(folder: Path) -> None:
    notes = await make_trail(folder)
    change_word(folder, notes[3])
    code, said = doctor(folder)

    assert code == 1, said
    assert notes[3].id in said
    assert "checksum" in said
