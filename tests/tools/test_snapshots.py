"""An unchanged file is not read again; the cache entry records the time and the hits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clew.clock import ManualClock
from clew.errors import InvalidInput
from clew.tools.files.folder import WorkingFolder
from clew.tools.files.snapshots import MAX_FILE, Snapshots, hash_of
from tests.tools.working_folder import plant


@pytest.mark.req("SYL-107")
def test_an_entry_holds_what_was_read_when_and_how_often(tmp_path: Path, clock: ManualClock) -> None:
    folder = WorkingFolder(plant(tmp_path, {"a.txt": "some words\n"}))
    snapshots = Snapshots(clock)
    assert not snapshots.read(folder, "a.txt").cache_hit
    read_at = clock.now()
    clock.advance(seconds=5)
    again = snapshots.read(folder, "a.txt")
    assert again.cache_hit
    entry = again.snapshot
    assert (entry.path, entry.hash, entry.size) == ("a.txt", hash_of(b"some words\n"), 11)
    assert entry.mod_time.timestamp() == pytest.approx((tmp_path / "a.txt").stat().st_mtime, abs=0.001)
    assert (entry.read_at, entry.hit_count) == (read_at, 1)
    assert entry.token_count > 0
    assert snapshots.find("a.txt") == entry
    stats = snapshots.stats()
    assert (stats.hits, stats.misses, stats.entries, stats.bytes) == (1, 1, 1, 11)


@pytest.mark.req("SYL-107")
def test_another_time_or_another_size_is_a_miss(tmp_path: Path) -> None:
    folder = WorkingFolder(plant(tmp_path, {"a.txt": "one"}))
    snapshots = Snapshots()
    snapshots.read(folder, "a.txt")
    os.utime(tmp_path / "a.txt", ns=(1, 1))
    assert not snapshots.read(folder, "a.txt").cache_hit
    assert snapshots.read(folder, "a.txt").cache_hit
    plant(tmp_path, {"a.txt": "longer"})
    assert snapshots.read(folder, "a.txt").content.text == "longer"


def test_a_change_within_the_same_tick_of_the_clock_is_seen(tmp_path: Path) -> None:
    folder = WorkingFolder(plant(tmp_path, {"a.txt": "one"}))
    snapshots = Snapshots()
    for text in ("two", "six", "ten"):
        snapshots.read(folder, "a.txt")
        (tmp_path / "a.txt").write_text(text)
        assert snapshots.read(folder, "a.txt").content.text == text


def test_a_file_put_in_the_place_of_another_is_a_miss(tmp_path: Path) -> None:
    folder = WorkingFolder(plant(tmp_path, {"a.txt": "one", "b.txt": "two"}))
    for name in ("a.txt", "b.txt"):
        os.utime(tmp_path / name, ns=(10**18, 10**18))
    snapshots = Snapshots()
    snapshots.read(folder, "a.txt")
    (tmp_path / "b.txt").replace(tmp_path / "a.txt")
    assert snapshots.read(folder, "a.txt").content.text == "two"


@pytest.mark.req("O10")
def test_the_oldest_entries_go_when_there_is_no_room(tmp_path: Path) -> None:
    folder = WorkingFolder(plant(tmp_path, {name: name * 40 for name in "abc"}))
    snapshots = Snapshots(max_bytes=100)
    for name in "aba":
        snapshots.read(folder, name)
    snapshots.read(folder, "c")
    assert snapshots.find("b") is None
    assert snapshots.find("a") is not None
    assert snapshots.stats().bytes == 80


def test_a_file_over_the_limit_is_not_taken_whole(tmp_path: Path) -> None:
    folder = WorkingFolder(plant(tmp_path, {"a": "x" * (MAX_FILE + 1)}))
    with pytest.raises(InvalidInput, match="more than 5,000,000 bytes"):
        Snapshots().read(folder, "a")
