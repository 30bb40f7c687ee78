"""`clew uninstall` removes only what Clew wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.trust import Trust
from tests.cli.conftest import Clew

AGENT = "---\nname: purser\ndescription: Answers passengers.\n---\nBe brief.\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user of whom Clew knows nothing yet."""
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.setenv("CLEW_TRUST", str(place / ".config" / "clew" / "trust.json"))
    return place


@pytest.fixture
def used(clew: Clew, folder: Path, home: Path) -> Path:
    """A folder with a trail, an index, consent, two connections and an agent of the user's."""
    (folder.parent / "notes.md").write_text("# Notes\n\nThe ferry leaves at noon.\n")
    (folder.parent / ".mcp.json").write_text('{\n  "mcpServers": {}\n}\n')
    assert clew("trail", "put", "--title", "a note").code == 0
    (folder / "agents").mkdir()
    (folder / "agents" / "purser.md").write_text(AGENT)
    assert clew("trust", "--yes").code == 0
    assert clew("connect", "claude-code").code == 0
    assert clew("connect", "windsurf").code == 0
    return folder


def test_everything_that_clew_wrote_goes_and_the_users_files_stay(clew: Clew, used: Path, home: Path) -> None:
    shown = clew("uninstall", "--yes")
    assert shown.code == 0
    for word in ("Claude Code", "Windsurf", "consent to purser", "you made trail.db", "kept, since you wrote them"):
        assert word in shown.out
    assert "pip uninstall clew" in shown.err
    assert [each.name for each in used.iterdir()] == ["agents"]
    assert (used.parent / ".mcp.json").read_text() == '{\n  "mcpServers": {}\n}\n'
    assert (used.parent / "notes.md").exists()
    assert Trust.open().grants(used.parent) == []
    assert not [path for path in home.rglob("*") if path.is_file() and b"clew mcp" in path.read_bytes()]
    again = clew("uninstall", "--yes")
    assert (again.code, "agents" in again.out) == (0, True)


def test_keys_that_you_made_are_no_consent(clew: Clew, folder: Path, home: Path) -> None:
    assert (clew("trail", "put", "--title", "x").code, clew("token").code) == (0, 0)
    shown = clew("uninstall", "--yes").out
    assert "the record that you made credential, keys/private.pem" in shown
    assert "consent" not in shown


def test_with_all_the_folder_goes(clew: Clew, used: Path) -> None:
    assert clew("uninstall", "--yes", "--all").code == 0
    assert not used.exists()
    assert "Clew wrote nothing" in clew("uninstall", "--yes").err


def test_everywhere_means_every_folder_that_clew_knows(clew: Clew, used: Path, home: Path) -> None:
    assert (home / ".config" / "clew").is_dir()
    found = clew("uninstall", "--everywhere", "--yes", "--json").json
    (one,) = found["folders"]
    assert one["folder"] == str(used)
    assert {each["client"] for each in one["connections"]} == {"claude-code", "windsurf"}
    assert str(home / ".config" / "clew" / "trust.json") in found["user_files"]
    assert not (home / ".config" / "clew").exists()


def test_everywhere_includes_this_folder_when_only_the_users_files_are_left(clew: Clew, used: Path) -> None:
    assert clew("uninstall", "--yes").code == 0
    assert clew("uninstall", "--everywhere", "--all", "--yes").code == 0
    assert not used.exists()


def test_changed_settings_are_the_users(clew: Clew, used: Path) -> None:
    config = used / "config.toml"
    config.write_text(config.read_text() + 'owner = "ann"\n')
    assert clew("uninstall", "--yes").code == 0
    assert {each.name for each in used.iterdir()} == {"agents", "config.toml"}


def test_nothing_goes_without_a_yes(clew: Clew, used: Path) -> None:
    before = sorted(used.rglob("*"))
    refused = clew("uninstall")
    assert refused.code == 2
    assert "--yes" in refused.err
    assert "Nothing was removed" in refused.err
    assert sorted(used.rglob("*")) == before


def test_a_link_out_of_the_project_is_not_followed(clew: Clew, used: Path, tmp_path: Path) -> None:
    treasure = tmp_path / "elsewhere"
    treasure.mkdir()
    (treasure / "trail.db").write_text("precious")
    (used / "edits-link").symlink_to(treasure)
    assert clew("uninstall", "--yes", "--all").code == 0
    assert (treasure / "trail.db").read_text() == "precious"


def test_other_files_beside_the_consent_of_the_user_stay(
    clew: Clew, used: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = home / "src" / "clew"
    checkout.mkdir(parents=True)
    (checkout / "main.py").write_text("print()")
    (home / ".config" / "clew" / "trust.json").rename(checkout / "trust.json")
    monkeypatch.setenv("CLEW_TRUST", str(checkout / "trust.json"))
    shown = clew("uninstall", "--everywhere", "--yes")
    assert (shown.code, str(checkout / "trust.json") in shown.out) == (0, True)
    assert [path.name for path in checkout.iterdir()] == ["main.py"]


@pytest.mark.parametrize("target", [".", "src"])
def test_a_folder_that_is_not_clews_own_is_left_alone(clew: Clew, folder: Path, target: str) -> None:
    project = folder.parent
    (project / "src").mkdir()
    (project / "src" / "uv.lock").write_text("mine")
    folder.symlink_to(target)
    linked = clew("uninstall", "--yes", "--all")
    named = clew("uninstall", "--yes", "--folder", str(project / "src"))
    for refused in (linked, named):
        assert (refused.code, "nothing is removed there" in refused.err) == (1, True), refused.err
    assert (project / "src" / "uv.lock").read_text() == "mine"
