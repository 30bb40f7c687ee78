"""Full disks, limits and missing permissions: a clear error, no loss, and no restart needed afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults import errands
from tests.faults.processes import Child

SIZE = "4m"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of four megabytes."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("a small disk can be mounted by root only: full disks are NOT tested here")
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted, so full disks are NOT tested here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def own_folder() -> Iterator[Path]:
    """A folder that belongs to nobody, below folders that everybody may enter."""
    folder = Path(tempfile.mkdtemp(prefix="clew-faults-"))
    if os.geteuid() == 0:
        os.chown(folder, errands.NOBODY, errands.NOBODY)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def send_on(errand: errands.Errand, folder: Path, *, unprivileged: bool = False) -> Any:
    with Child(errands.run_errand, folder, errand, unprivileged) as child:
        seen = child.hear()
        assert child.wait() == 0
        return seen


# -- a full disk ----------------------------------------------------------------------------------------------


def test_a_full_disk_is_named_loses_nothing_and_is_over_when_there_is_room(small_disk: Path) -> None:
    seen = send_on(errands.fill_up_and_free, small_disk)

    assert len(seen["refused"]) == 5
    for message in (*seen["refused"], seen["batch"]):
        assert message.startswith("StorageFull: no space left for")
        assert "Free some space" in message
    assert seen["counted"] == seen["listed"] == seen["events"] == seen["expected"] > 10
    assert seen["readable"]
    assert seen["after"] == "ok"
    assert seen["damage"] == []
    assert seen["reopened"] == seen["expected"] + 1


def test_events_accepted_before_the_disk_was_full_are_handled_once_afterwards(small_disk: Path) -> None:
    seen = send_on(errands.work_through_a_full_disk, small_disk)

    assert len(seen["accepted"]) == 20
    assert (seen["copied"], seen["dead"]) == (seen["accepted"], 0)


def test_search_goes_on_while_the_disk_is_full(small_disk: Path) -> None:
    assert send_on(errands.search_while_full, small_disk) == ["heron"]


def test_opening_a_trail_on_a_full_disk_says_so_and_works_when_there_is_room(small_disk: Path) -> None:
    seen = send_on(errands.open_while_full, small_disk)

    assert seen["opened"].startswith("StorageFull")
    assert seen["new"].startswith("StorageFull")
    assert (seen["counted"], seen["written"]) == (1, "ok")


def test_a_limit_on_file_sizes_is_an_error_of_the_storage_and_is_over_when_lifted(tmp_path: Path) -> None:
    seen = send_on(errands.write_over_a_size_limit, tmp_path)

    assert "trail.db" in seen["refused"], "the message names the file"
    assert (seen["lost"], seen["after"], seen["damage"]) == (0, "ok", [])


# -- permissions ----------------------------------------------------------------------------------------------


def test_a_read_only_file_is_read_and_searched_and_refuses_writes(own_folder: Path) -> None:
    seen = send_on(errands.write_to_a_read_only_file, own_folder, unprivileged=True)

    assert seen["written"].startswith("ReadOnly:")
    assert "Check the permissions" in seen["written"]
    assert (seen["read"], seen["found"], seen["listed"]) == ("heron", ["heron"], 1)


def test_a_file_that_becomes_writable_is_written_without_opening_it_again(own_folder: Path) -> None:
    assert send_on(errands.write_to_a_read_only_file, own_folder, unprivileged=True)["after"] == "ok"


def test_a_file_that_became_writable_is_written_when_opened_again(own_folder: Path) -> None:
    assert send_on(errands.write_to_a_read_only_file, own_folder, unprivileged=True)["reopened"] == "ok"


def test_a_read_only_folder_gives_a_clear_error_and_is_over_when_writable(own_folder: Path) -> None:
    seen = send_on(errands.open_in_a_read_only_folder, own_folder, unprivileged=True)

    for place in ("old", "new file", "new folder"):
        assert seen[place].startswith("ReadOnly:"), place
        assert str(own_folder) in seen[place]
    assert seen["after"] == "ok"


def test_a_file_that_may_not_be_read_gives_a_clear_error(own_folder: Path) -> None:
    seen = send_on(errands.open_an_unreadable_file, own_folder, unprivileged=True)

    assert seen["opened"].startswith(("ReadOnly:", "StorageError:"))
    assert str(own_folder) in seen["opened"]
    assert seen["after"] == "ok"


def test_an_index_folder_that_cannot_be_written_does_not_stop_the_search(own_folder: Path) -> None:
    index = own_folder / "trail.db-index"
    index.mkdir()
    (index / "foreign").write_text("not of this trail")
    index.chmod(0o555)
    seen = send_on(errands.search_beside_a_foreign_index, own_folder, unprivileged=True)
    index.chmod(0o755)

    assert seen == {"first": ["heron"], "later": ["egret"], "written": "ok"}
    assert (index / "foreign").exists()
