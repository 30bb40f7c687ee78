"""Promoted code is available to later runs until it expires."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from clew.clock import ManualClock
from clew.errors import ConfigError, InvalidInput, NotFound, ReadOnly, TooLarge
from clew.skills.scripts import FILE, MAX_CODE, MAX_SCRIPTS, CallbackStore, FileStore, Script, Scripts

CODE = "print('ü', 1 + 1)\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / ".clew" / "scripts.json"


@pytest.fixture
def scripts(file: Path, clock: ManualClock) -> Scripts:
    return Scripts(FileStore(file), clock)


@pytest.mark.req("PLA-28")
def test_a_promoted_script_is_reusable_in_the_next_run_and_gone_after_thirty_days(
    scripts: Scripts, file: Path, clock: ManualClock
) -> None:
    made = scripts.promote("add", "python", CODE, about="add two numbers")
    again = Scripts(FileStore(file), clock)
    assert again.get("add") == made
    assert made.expires_at == made.promoted_at + timedelta(days=30)
    clock.advance(days=30, seconds=-1)
    assert [each.code for each in again.list()] == [CODE]
    clock.advance(seconds=1)
    assert again.list() == []
    assert again.find("add numbers") == []
    with pytest.raises(NotFound):
        again.get("add")


@pytest.mark.req("PLA-28")
def test_the_usual_file_is_in_the_folder_of_clew() -> None:
    assert Path(".clew/scripts.json") == FILE == FileStore().path


@pytest.mark.req("PLA-28")
def test_a_program_may_keep_them_itself(clock: ManualClock) -> None:
    kept: list[Script] = []

    def save(all: object) -> None:
        kept[:] = all  # type: ignore[call-overload]  # a sequence of scripts

    scripts = Scripts(CallbackStore(lambda: kept, save), clock)
    scripts.promote("add", "python", CODE)
    scripts.promote("sub", "python", CODE)
    scripts.drop("add")
    assert [each.name for each in kept] == ["sub"]
    assert Scripts(CallbackStore(lambda: kept, save), clock).get("sub").code == CODE


def test_promoting_again_replaces_and_begins_the_time_anew(scripts: Scripts, clock: ManualClock) -> None:
    first = scripts.promote("add", "python", CODE)
    clock.advance(days=29)
    second = scripts.promote("add", "python", CODE + "#")
    assert scripts.list() == [second]
    assert second.digest != first.digest
    clock.advance(days=29)
    assert scripts.get("add") == second


def test_scripts_are_found_by_what_they_are_for(scripts: Scripts) -> None:
    scripts.promote("count-lines", "python", CODE, about="count the lines of a text file")
    scripts.promote("list-files", "bash", "ls", about="list files by size")
    assert [each.name for each in scripts.find("How many LINES has this file?")] == ["count-lines", "list-files"]
    assert [each.name for each in scripts.find("lines of files", limit=1)] == ["count-lines"]
    assert scripts.find("weather in Kyoto") == []
    assert scripts.find("") == []


def test_code_that_was_changed_in_the_file_is_not_taken_for_what_was_promoted(scripts: Scripts, file: Path) -> None:
    scripts.promote("add", "python", CODE)
    content = json.loads(file.read_text())
    content["scripts"][0]["code"] = "print('something else')"
    file.write_text(json.dumps(content))
    assert scripts.list() == []


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"version": 99}', b"\xff", b"[" * 100_000])
def test_a_damaged_file_is_reported_and_left_as_it_is(scripts: Scripts, file: Path, content: bytes) -> None:
    file.parent.mkdir()
    file.write_bytes(content)
    for call in (scripts.list, lambda: scripts.promote("add", "python", CODE)):
        with pytest.raises(ConfigError) as told:
            call()
        assert str(file) in told.value.message
    assert file.read_bytes() == content


@pytest.mark.parametrize(
    ("name", "language", "code"), [("", "python", "x"), ("../x", "python", "x"), ("x", "", "x"), ("x", "python", "  ")]
)
def test_a_script_that_cannot_be_stored_is_refused(
    scripts: Scripts, file: Path, name: str, language: str, code: str
) -> None:
    with pytest.raises(InvalidInput):
        scripts.promote(name, language, code)
    assert not file.exists()


def test_there_is_an_end_to_how_much_is_kept(scripts: Scripts, file: Path, clock: ManualClock) -> None:
    with pytest.raises(TooLarge):
        scripts.promote("big", "python", "x" * (MAX_CODE + 1))
    with pytest.raises(TooLarge):
        scripts.promote("big", "python", "x", about="y" * 2_000)
    kept: dict[str, Script] = {}
    store = CallbackStore(lambda: list(kept.values()), lambda all: kept.update({each.name: each for each in all}))
    many = Scripts(store, clock)
    first = many.promote("first", "python", "x")
    kept |= {
        f"s{n}": Script(
            name=f"s{n}",
            language="python",
            code="x",
            digest=first.digest,
            promoted_at=first.promoted_at + timedelta(seconds=1),
            expires_at=first.expires_at,
        )
        for n in range(MAX_SCRIPTS)
    }
    saved: list[Script] = []
    Scripts(CallbackStore(lambda: list(kept.values()), saved.extend), clock).promote("last", "python", "x")
    assert len(saved) == MAX_SCRIPTS
    assert "first" not in {each.name for each in saved}
    assert "last" in {each.name for each in saved}


def test_a_place_that_cannot_be_written_is_reported(tmp_path: Path, clock: ManualClock) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ReadOnly):
        Scripts(FileStore(tmp_path / "file" / "scripts.json"), clock).promote("add", "python", CODE)


WRITER = """
import sys
from pathlib import Path
from clew.clock import SystemClock
from clew.skills.scripts import FileStore, Scripts
scripts = Scripts(FileStore(Path(sys.argv[1])), SystemClock())
for number in range(10):
    scripts.promote(f"{sys.argv[2]}-{number}", "python", "print(1)")
"""


@pytest.mark.req("PLA-28")
def test_two_processes_lose_nothing_of_each_other(file: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(file), name]) for name in ("a", "b")]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    names = {each.name for each in FileStore(file).read().values()}
    assert names == {f"{writer}-{number}" for writer in "ab" for number in range(10)}
    assert sorted(each.name for each in file.parent.iterdir()) == ["scripts.json", "scripts.json.lock"]


def test_a_time_without_a_zone_is_told_as_damage(scripts: Scripts, file: Path) -> None:
    scripts.promote("add", "python", CODE)
    content = json.loads(file.read_text())
    content["scripts"][0]["expires_at"] = "2999-01-01T00:00:00"
    file.write_text(json.dumps(content))
    with pytest.raises(ConfigError, match="it is damaged"):
        scripts.list()


def test_a_pipe_in_the_place_of_the_file_is_refused_without_waiting(scripts: Scripts, file: Path) -> None:
    file.parent.mkdir()
    os.mkfifo(file)
    with pytest.raises(ConfigError, match="not a regular file"):
        scripts.list()


def test_a_lock_that_is_a_link_makes_nothing_elsewhere(scripts: Scripts, file: Path, tmp_path: Path) -> None:
    file.parent.mkdir()
    file.with_name("scripts.json.lock").symlink_to(tmp_path / "made")
    with pytest.raises(ReadOnly):
        scripts.promote("add", "python", CODE)
    assert not (tmp_path / "made").exists()
