"""Commands work on the project around the current folder. They read neither a whole machine nor a very large folder
without asking."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import COMMAND, PATIENCE, Clew

MANY = "5"


@pytest.fixture
def unnamed(folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody names a folder."""
    monkeypatch.delenv("CLEW_FOLDER")


@pytest.fixture
def large(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with more files than are read unasked."""
    monkeypatch.setenv("CLEW_CATALOG_MAX_FILES", MANY)
    root = folder.parent
    for number in range(int(MANY) + 1):
        (root / f"page{number}.md").write_text(f"# Page {number}\n\nAll about kettle {number}.\n")
    return root


@pytest.mark.req("BEY-11")
@pytest.mark.usefixtures("unnamed")
@pytest.mark.parametrize(
    "command",
    [
        ["ask", "x"],
        ["index"],
        ["brief"],
        ["chat", "x"],
        ["trail", "put", "--title", "x"],
        ["up"],
        ["connect", "claude-code"],
        ["connect", "codex", "--dry-run"],
        ["mcp", "add", "geo", "--", "geo-server"],
        ["mcp", "import"],
        ["skills", "import", "skills"],
    ],
)
def test_the_home_folder_is_refused_unless_it_is_named(
    clew: Clew, home: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.chdir(home)
    result = clew(*command)
    assert (result.code, result.out) == (1, "")
    place = home / ".clew"
    assert (
        result.err == f"clew: {home} is not a project. Go to one (cd PROJECT), or name this folder: --folder {place}\n"
    )
    assert not place.exists()


@pytest.mark.usefixtures("unnamed")
@pytest.mark.parametrize("place", ["/", "/tmp", "/var/tmp"])
def test_the_root_and_temporary_folders_are_refused(clew: Clew, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.chdir(place)
    assert clew("ask", "x").err.startswith(f"clew: {place} is not a project. ")


@pytest.mark.usefixtures("unnamed")
def test_the_folder_of_the_system_for_temporary_files_is_refused(
    clew: Clew, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv("TMPDIR", str(own))
    monkeypatch.chdir(own)
    assert clew("ask", "x").err.startswith(f"clew: {own} is not a project. ")


def test_a_home_folder_that_is_named_is_read(clew: Clew, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    (folder.parent / "kettle.md").write_text("# Kettle\n\nHow to look after the kettle.\n")
    assert "kettle.md:1" in clew("ask", "look after the kettle", "--folder", str(folder)).out


@pytest.mark.usefixtures("unnamed")
def test_a_stray_folder_above_a_repository_is_not_taken(
    clew: Clew, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".clew").mkdir()
    deep = tmp_path / "shop" / "src"
    deep.mkdir(parents=True)
    (tmp_path / "shop" / ".git").mkdir()
    monkeypatch.chdir(deep)
    assert clew("trail", "put", "--title", "here").code == 0
    assert (tmp_path / "shop" / ".clew" / "trail.db").exists()
    assert not list((tmp_path / ".clew").iterdir())


@pytest.mark.parametrize("command", [["ask", "kettle"], ["index"], ["locate", "kettle"], ["brief"]])
def test_a_folder_with_too_many_files_is_refused_where_nobody_can_be_asked(
    clew: Clew, large: Path, folder: Path, command: list[str]
) -> None:
    result = clew(*command)
    assert (result.code, result.out) == (1, "")
    assert result.err == (
        f"clew: {large} has more than {MANY} files. Run `clew index --yes` there to read them all, choose a smaller"
        " folder, or set catalog.max_files\n"
    )
    assert not folder.exists()


def test_a_folder_is_read_after_the_user_agreed(clew: Clew, large: Path) -> None:
    assert clew("index", "--yes").code == 0
    assert "page3.md:1" in clew("ask", "kettle 3").out


def test_files_that_git_ignores_do_not_count(clew: Clew, large: Path) -> None:
    (large / ".gitignore").write_text("page*.md\n")
    (large / "lamp.md").write_text("# Lamp\n\nHow to light the lamp.\n")
    assert "lamp.md:1" in clew("ask", "light the lamp").out


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1)])
def test_a_person_is_asked_first(large: Path, folder: Path, answer: str, code: int) -> None:
    leader, follower = pty.openpty()
    command = [*COMMAND, "ask", "kettle 3"]
    with subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, cwd=large) as process:
        os.close(follower)
        shown = b""
        while b"[y/N]" not in shown:
            shown += os.read(leader, 65_536)
        assert f"{large} has more than {MANY} files. Read them all? [y/N]" in shown.decode()
        os.write(leader, f"{answer}\n".encode())
        try:
            while chunk := os.read(leader, 65_536):
                shown += chunk
        except OSError:  # the process has ended
            pass
        assert process.wait(PATIENCE) == code
    os.close(leader)
    assert ("page3.md" in shown.decode()) is (answer == "y")
    assert folder.exists() is (answer == "y")


def test_a_folder_that_is_named_wrongly_makes_no_trail(clew: Clew, tmp_path: Path) -> None:
    wrong = tmp_path / "nowhere" / "deep"
    result = clew("ask", "hello", "--folder", str(wrong / ".clew"))
    assert result.code == 1
    assert f"there is no folder {wrong}" in result.err
    assert not wrong.exists()
