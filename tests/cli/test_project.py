"""The folder that `clew up` makes."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from pathlib import Path

import msgspec
import pytest

from clew.cli.project import IGNORE, prepare_folder, render_settings, trail_file
from clew.config import Config, read_config
from clew.config.descriptions import ABOUT
from clew.errors import ConfigError, ReadOnly
from tests.cli.conftest import Clew


def test_the_settings_show_every_default_and_change_nothing(tmp_path: Path) -> None:
    prepare_folder(tmp_path / ".clew")
    assert read_config(tmp_path / ".clew") == Config(folder=tmp_path / ".clew", is_named=True)
    uncommented = "\n".join(
        line.removeprefix("# ") if " = " in line else line for line in render_settings().splitlines()
    )
    (tmp_path / ".clew" / "config.toml").write_text(uncommented)
    settings = tomllib.loads(uncommented)
    written = read_config(tmp_path / ".clew")
    assert msgspec.structs.replace(written, from_file=frozenset(), is_named=False) == Config(folder=tmp_path / ".clew")
    assert written.from_file == set(ABOUT)
    flat = {f"{name}.{inner}" for name, value in settings.items() if isinstance(value, dict) for inner in value}
    assert flat | {name for name, value in settings.items() if not isinstance(value, dict)} == set(ABOUT)


@pytest.mark.parametrize("guide", ["chat.md", "agents.md"])
def test_the_models_of_the_guides_can_be_pasted_into_the_settings(tmp_path: Path, guide: str) -> None:
    text = (Path(__file__).parents[2] / "docs/guides" / guide).read_text()
    block = text[text.index("[models]") :].partition("```")[0]
    prepare_folder(tmp_path / ".clew")
    written = (tmp_path / ".clew/config.toml").read_text()
    for pasted in (f"{written}\n{block}", written.replace("# models.default", f"{block}\n# models.default")):
        (tmp_path / ".clew/config.toml").write_text(pasted)
        assert read_config(tmp_path / ".clew").models.default == "ollama:qwen3"


def test_a_table_that_is_there_twice_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[models]\nfast = "a:b"\n[models]\ndefault = "a:b"\n')
    with pytest.raises(ConfigError, match="Two tables have one name: put all their settings below the first"):
        read_config(tmp_path)


def test_existing_settings_stay(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('owner = "ann"')
    prepare_folder(tmp_path)
    assert (tmp_path / "config.toml").read_text() == 'owner = "ann"'


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_git_sees_the_settings_and_neither_the_trail_nor_the_keys(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    folder = tmp_path / ".clew"
    prepare_folder(folder)
    (folder / "keys").mkdir()
    (folder / "trail.db-index").mkdir()
    trail = ("trail.db", "trail.db-wal", "trail.db.key", "trail.db-index/x")
    code = ("code.db", "code.db.lock", "code.db-wal", "code.db-shm")
    for name in (*trail, *code, "credential", "keys/private.pem", "config.toml.lock"):
        (folder / name).touch()
    shown = subprocess.run(
        ["git", "-C", str(tmp_path), "status", "--porcelain", "-uall"], check=True, capture_output=True, text=True
    )
    assert sorted(line[3:] for line in shown.stdout.splitlines()) == [".clew/.gitignore", ".clew/config.toml"]


OLDER = "# What belongs to this machine only: the trail, keys.\ntrail.db*\nkeys/\ncredential\n"


def test_an_older_ignore_file_gets_what_it_lacks_once_when_the_folder_is_opened(clew: Clew, folder: Path) -> None:
    clew("trail", "put", "--title", "first")
    (folder / ".gitignore").write_text(f"{OLDER}mine\n")
    clew("trail", "ls")
    mended = (folder / ".gitignore").read_text()
    assert mended.startswith(f"{OLDER}mine\n")
    assert "/*.db*" in mended.splitlines()
    clew("trail", "ls")
    assert (folder / ".gitignore").read_text() == mended


SECRETS = ("trail.db", "code.db", "monday.db", "monday.db.key", "keys/private.pem", "credential")


def untracked(project: Path) -> set[str]:
    """The files in `.clew` that `git add` would take."""
    shown = subprocess.run(
        ["git", "-C", str(project), "status", "--porcelain", "-uall"], check=True, capture_output=True, text=True
    )
    return {line[3:].removeprefix(".clew/") for line in shown.stdout.splitlines()}


@pytest.mark.parametrize("text", ["*\n", "/*\n"])
def test_an_ignore_file_that_ignores_everything_stays(clew: Clew, folder: Path, text: str) -> None:
    clew("trail", "put", "--title", "first")
    (folder / ".gitignore").write_text(text)
    clew("trail", "ls")
    assert (folder / ".gitignore").read_text() == text


@pytest.mark.parametrize(
    "text",
    [
        *("", "# my own\ntrail.db*\n", f"{IGNORE}!/trail.db\n", f"{IGNORE}!keys\n!/credential", "*\n!credential\n"),
        *(f"{IGNORE}!*\r\n", " /credential*\n", "\xff\n", "#" * 1_000_000),
    ],
)
@pytest.mark.parametrize("command", [("trail", "put", "--title", "x"), ("token",)])
def test_an_ignore_file_of_a_clone_cannot_bring_secrets_into_a_commit(
    clew: Clew, folder: Path, text: str, command: tuple[str, ...]
) -> None:
    subprocess.run(["git", "-C", str(folder.parent), "init", "-q"], check=True)
    folder.mkdir(exist_ok=True)
    (folder / ".gitignore").write_text(text, encoding="latin-1")
    assert clew(*command).code == 0
    for name in SECRETS:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    assert untracked(folder.parent).isdisjoint(SECRETS)
    mended = (folder / ".gitignore").read_bytes()
    assert text in mended.decode("latin-1") or len(text) > len(mended)
    assert clew(*command).code == 0
    assert (folder / ".gitignore").read_bytes() == mended


def test_an_ignore_file_that_is_a_link_is_replaced(clew: Clew, folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine\n")
    folder.mkdir(exist_ok=True)
    (folder / ".gitignore").symlink_to(target)
    assert clew("trail", "put", "--title", "x").code == 0
    assert (target.read_text(), (folder / ".gitignore").is_symlink()) == ("mine\n", False)
    assert (folder / ".gitignore").read_text() == IGNORE


def test_an_ignore_file_that_is_a_folder_is_refused(clew: Clew, folder: Path) -> None:
    (folder / ".gitignore").mkdir(parents=True)
    result = clew("token")
    assert (result.code, ".gitignore is a folder" in result.err) == (1, True)
    assert not (folder / "credential").exists()


def test_others_cannot_look_into_a_new_folder(tmp_path: Path) -> None:
    prepare_folder(tmp_path / "deep" / ".clew")
    assert (tmp_path / "deep" / ".clew").stat().st_mode & 0o077 == 0


def test_a_place_where_no_folder_can_be_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ReadOnly, match="cannot be set up"):
        prepare_folder(tmp_path / "file" / ".clew")


@pytest.mark.parametrize(
    ("address", "file"),
    [("", Path(".clew/trail.db")), ("sqlite:///var/x.db", Path("/var/x.db")), ("sqlite://:memory:", None)],
)
def test_the_file_of_a_trail_is_known(address: str, file: Path | None) -> None:
    assert trail_file(msgspec.structs.replace(Config(), trail=address)) == file


def test_commands_work_from_any_folder_of_the_project(
    clew: Clew, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clew("trail", "put", "--title", "here")
    monkeypatch.delenv("CLEW_FOLDER")
    monkeypatch.setenv("HOME", str(folder.parent.parent))
    deep = folder.parent / "src" / "deep"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert clew("trail", "ls").rows[0][3] == "here"
    assert clew("trail", "put", "--title", "there").code == 0
    assert len(clew("trail", "ls", "--folder", str(folder)).rows) == 2
    assert not (deep / ".clew").exists()
    found = {each["name"]: each["what"] for each in clew("doctor", "--json").json["findings"]}
    assert found["folder"] == f"{folder} (of the project above this folder)"
    monkeypatch.chdir(folder.parent)
    found = {each["name"]: each["what"] for each in clew("doctor", "--json").json["findings"]}
    assert found["folder"] == str(folder)


def test_a_new_trail_is_reported_with_its_place(clew: Clew, folder: Path) -> None:
    assert clew("trail", "put", "--title", "first").err == f"A new trail: {folder / 'trail.db'}\n"
    assert clew("trail", "put", "--title", "second").err == ""


def test_no_file_is_made_through_a_link_that_leads_nowhere(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    target = tmp_path_factory.mktemp("target") / "made"
    (tmp_path / ".clew").mkdir()
    (tmp_path / ".clew" / "config.toml").symlink_to(target)
    prepare_folder(tmp_path / ".clew")
    assert not target.exists()


def test_a_folder_that_is_a_link_out_of_its_project_is_not_written(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    target = tmp_path_factory.mktemp("target")
    (tmp_path / ".clew").symlink_to(target)
    with pytest.raises(ReadOnly, match="leads out of"):
        prepare_folder(tmp_path / ".clew")
    assert list(target.iterdir()) == []


def test_a_relative_trail_in_the_settings_begins_at_the_folder_of_the_project(
    clew: Clew, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text('trail = "sqlite://notes.db"\n')
    assert clew("trust", "--yes").code == 0
    below = folder.parent / "below"
    below.mkdir()
    for place, title in ((folder.parent, "one"), (below, "two")):
        monkeypatch.chdir(place)
        assert clew("trail", "put", "--title", title).code == 0
    listed = clew("trail", "ls").out
    assert "one" in listed
    assert "two" in listed
    assert [each.parent for each in folder.parent.rglob("notes.db")] == [folder.parent]


def test_a_path_is_an_address_of_a_trail(clew: Clew, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_TRAIL", str(folder.parent / "moved.db"))
    assert clew("trail", "put", "--title", "one").code == 0
    assert (folder.parent / "moved.db").exists()
