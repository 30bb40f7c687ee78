"""The derived index only proposes candidates, and can be lost at any time."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from clew.access import Principal
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.query import SearchRequest
from clew.trail.search.postings import TermPostings
from clew.trail.store import Trail

# -- the index alone --------------------------------------------------------------------------------------


def mark(seq: int) -> str:
    return f"mark of {seq}"


def postings(folder: Path, trail: str = "one", mark_of: Callable[[int], str] = mark) -> TermPostings:
    return TermPostings(folder, trail, mark_of)


def test_records_are_found_by_their_terms_those_with_most_of_them_first(tmp_path: Path) -> None:
    index = postings(tmp_path / "index")
    assert (index.seq, index.find([1, 2], 10)) == (0, [])
    index.update([(7, "1 2 3"), (8, "2 9"), (9, "4")], [], 3, mark(3))
    assert index.find([1, 2], 10) == [7, 8]
    assert index.find([4], 10) == [9]
    assert index.find([5], 10) == []
    assert len(index.find([1, 2, 4], 2)) == 2
    assert index.seq == 3


def test_a_record_can_be_replaced_and_removed(tmp_path: Path) -> None:
    index = postings(tmp_path / "index")
    index.update([(7, "1"), (8, "1")], [], 2, mark(2))
    index.update([(7, "2")], [8], 4, mark(4))
    assert (index.find([1], 10), index.find([2], 10)) == ([], [7])


def test_an_index_is_opened_again_where_it_stood(tmp_path: Path) -> None:
    postings(tmp_path / "index").update([(7, "1")], [], 3, mark(3))
    again = postings(tmp_path / "index")
    assert (again.seq, again.find([1], 10)) == (3, [7])


@pytest.mark.parametrize(
    "why", ["another trail", "restored trail", "another format", "no note", "torn note", "odd note"]
)
def test_an_index_that_may_not_fit_is_begun_anew(tmp_path: Path, why: str) -> None:
    folder = tmp_path / "index"
    postings(folder).update([(7, "1")], [], 3, mark(3))
    note = folder / "clew.json"
    if why == "another format":
        note.write_text(json.dumps({**json.loads(note.read_text()), "format": 0}))
    elif why == "no note":
        note.unlink()
    elif why == "torn note":
        note.write_text(note.read_text()[:10])
    elif why == "odd note":
        note.write_text("[1, 2]")
    trail = "two" if why == "another trail" else "one"
    again = postings(folder, trail, (lambda seq: "restored") if why == "restored trail" else mark)
    assert (again.seq, again.find([1], 10)) == (0, [])
    again.update([(8, "1")], [], 1, mark(1))
    assert again.find([1], 10) == [8]


@pytest.mark.parametrize("content", [b"", b"not json", b"\x00" * 1_000])
def test_an_index_whose_files_are_damaged_is_begun_anew(tmp_path: Path, content: bytes) -> None:
    folder = tmp_path / "index"
    postings(folder).update([(7, "1")], [], 3, mark(3))
    (folder / "meta.json").write_bytes(content)
    again = postings(folder)
    assert (again.seq, again.find([1], 10)) == (0, [])


@pytest.mark.parametrize("suffix", [".fast", ".fieldnorm", ".idx", ".pos", ".store", ".term"])
def test_an_index_with_an_altered_file_of_the_same_length_is_begun_anew(tmp_path: Path, suffix: str) -> None:
    folder = tmp_path / "index"
    postings(folder).update([(number, f"1 {number}") for number in range(300)], [], 3, mark(3))
    (file,) = folder.glob(f"*{suffix}")
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 0xFF
    file.unlink()
    file.write_bytes(content)
    again = postings(folder)
    assert (again.seq, again.find([1], 10)) == (0, [])


def test_an_index_whose_folder_cannot_be_made_is_in_memory(tmp_path: Path) -> None:
    (tmp_path / "in the way").write_text("")
    index = postings(tmp_path / "in the way" / "index")
    index.update([(7, "1")], [], 3, mark(3))
    assert index.find([1], 10) == [7]


def test_other_users_cannot_read_the_folder(tmp_path: Path) -> None:
    postings(tmp_path / "index")
    assert (tmp_path / "index").stat().st_mode & 0o077 == 0


def test_a_second_writer_sees_what_the_first_has_done(tmp_path: Path) -> None:
    first, second = postings(tmp_path / "index"), postings(tmp_path / "index")
    first.update([(7, "1")], [], 3, mark(3))
    assert second.find([1], 10) == []
    second.refresh()
    assert (second.seq, second.find([1], 10)) == (3, [7])
    second.update([(8, "1")], [], 5, mark(5))
    first.refresh()
    assert sorted(first.find([1], 10)) == [7, 8]


@pytest.mark.parametrize("before", ["nothing", "damaged"])
def test_those_who_begin_an_index_at_once_have_one_index(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, before: str
) -> None:
    for number in range(6):
        folder = tmp_path / f"index {number}"
        if before == "damaged":
            postings(folder).update([(7, "1")], [], 3, mark(3))
            (folder / "meta.json").write_bytes(b"not json")
        started = Barrier(4)

        def opened_together(folder: Path = folder, started: Barrier = started) -> TermPostings:
            started.wait()
            return postings(folder)

        with ThreadPoolExecutor(4) as threads:
            opened = [each.result() for each in [threads.submit(opened_together) for _ in range(4)]]
        opened[0].update([(8, "2")], [], 4, mark(4))
        for each in opened:
            each.refresh()
        assert [(each.seq, each.find([1], 10), each.find([2], 10)) for each in opened] == [(4, [], [8])] * 4
    assert "in memory" not in caplog.text


# -- the index beside a trail -----------------------------------------------------------------------------

CROWD = 2_600
"""More records than a full scan reads, and enough pending ones that the index adds them."""


async def opened(folder: Path) -> Trail:
    return await open_trail(f"sqlite://{folder}/trail.db")


async def crowd(folder: Path, by: Principal, word: str) -> None:
    """A trail whose index has taken in all its records."""
    folder.mkdir(exist_ok=True)
    trail = await opened(folder)
    drafts = [
        Draft(title=f"{word} {number}" if number % 100 == 0 else f"note {number}", context={})
        for number in range(CROWD)
    ]
    await trail.records.create_many(drafts, by=by)
    await trail.index.warm()
    await found(trail, by, word)
    await trail.close()


async def found(trail: Trail, by: Principal, text: str) -> set[str]:
    hits = (await trail.index.search(SearchRequest(text=text, limit=100), by=by)).hits
    return {hit.breadcrumb.title for hit in hits}


def index_of(folder: Path) -> Path:
    return folder / "trail.db-index"


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory, me: Principal) -> Path:
    """A trail that is written once; each test works on a copy."""
    folder = tmp_path_factory.mktemp("crowded") / "here"
    asyncio.run(crowd(folder, me, "thread"))
    return folder


@pytest.fixture
def place(crowded: Path, tmp_path: Path) -> Path:
    return shutil.copytree(crowded, tmp_path / "here")


WANTED = {f"thread {number}" for number in range(0, CROWD, 100)}


async def test_the_index_serves_a_reopened_trail(place: Path, me: Principal) -> None:
    note = json.loads((index_of(place) / "clew.json").read_text())
    assert note["seq"] == CROWD
    trail = await opened(place)
    assert await found(trail, me, "thread") == WANTED
    await trail.close()


@pytest.mark.parametrize("damage", ["deleted", "emptied", "segments gone", "segments zeroed", "segments cut", "a file"])
async def test_a_lost_or_damaged_index_costs_no_hit(place: Path, me: Principal, damage: str) -> None:
    folder = index_of(place)
    segments = [file for file in folder.iterdir() if file.suffix not in (".json", ".lock", ".tmp")]
    assert segments
    if damage in ("deleted", "a file", "emptied"):
        shutil.rmtree(folder)
    if damage == "a file":
        folder.write_text("in the way")
    elif damage == "emptied":
        folder.mkdir()
    for file in segments if damage.startswith("segments") else []:
        content = file.read_bytes()
        file.unlink()  # a new file: cutting one that this process has mapped would end the process
        if damage != "segments gone":
            file.write_bytes(bytes(len(content)) if damage == "segments zeroed" else content[: len(content) // 2])
    trail = await opened(place)
    assert await found(trail, me, "thread") == WANTED
    await trail.records.create(Draft(title="thread anew", context={}), by=me)
    assert await found(trail, me, "thread") == WANTED | {"thread anew"}
    await trail.close()
    again = await opened(place)
    assert await found(again, me, "thread") == WANTED | {"thread anew"}
    await again.close()


async def test_the_index_of_another_trail_is_not_believed(place: Path, me: Principal, tmp_path: Path) -> None:
    other = tmp_path / "there"
    await crowd(other, me, "wool")
    shutil.rmtree(index_of(place))
    shutil.copytree(index_of(other), index_of(place))
    trail = await opened(place)
    assert await found(trail, me, "thread") == WANTED
    assert await found(trail, me, "wool") == set()
    await trail.close()


async def test_an_index_that_is_ahead_of_a_restored_trail_is_not_believed(place: Path, me: Principal) -> None:
    """The file comes back from a copy, the index beside it knows events that never were."""
    copy = (place / "trail.db").read_bytes()
    trail = await opened(place)
    await trail.records.create_many([Draft(title=f"lost {number}", context={}) for number in range(600)], by=me)
    assert len(await found(trail, me, "lost")) == 100
    await trail.close()
    for companion in ("trail.db-wal", "trail.db-shm"):
        (place / companion).unlink(missing_ok=True)
    (place / "trail.db").write_bytes(copy)
    restored = await opened(place)
    assert await found(restored, me, "lost") == set()
    await restored.records.create_many([Draft(title=f"ship {number}", context={}) for number in range(40)], by=me)
    assert await found(restored, me, "ship") == {f"ship {number}" for number in range(40)}
    assert await found(restored, me, "thread") == WANTED
    await restored.close()
    again = await opened(place)
    assert await found(again, me, "ship") == {f"ship {number}" for number in range(40)}
    await again.close()


async def test_two_open_trails_share_an_index(place: Path, me: Principal) -> None:
    first, second = await opened(place), await opened(place)
    for round_ in range(3):
        writer = first if round_ % 2 else second
        drafts = [Draft(title=f"ship {round_} {number}", context={}) for number in range(600)]
        await writer.records.create_many(drafts, by=me)
        for trail in (first, second):
            assert len(await found(trail, me, f"ship {round_}")) == 100
            assert await found(trail, me, "thread") == WANTED
    await first.close()
    await second.close()


def test_an_index_without_a_folder_is_in_memory_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    index = TermPostings(None, "one", mark)
    index.update([(7, "1 2"), (8, "1")], [], 3, mark(3))
    index.update([(7, "1")], [8], 5, mark(5))
    assert (index.seq, index.find([1], 10), index.find([2], 10)) == (5, [7], [])
    assert list(tmp_path.iterdir()) == []
    assert not caplog.records
