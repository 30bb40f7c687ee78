"""Telling coding agents about the server of this folder, in files below a home that is not the tester's."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from clew.cli.servers.clients import CLIENTS, ClientFile
from tests.cli.conftest import COMMAND, PATIENCE, Clew


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "home of ann"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    return place


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest) -> ClientFile:
    found: ClientFile = request.param
    return found


def file_of(client: ClientFile, folder: Path, home: Path) -> Path:
    return client.path(folder.parent, home)


def test_an_entry_is_shown_as_a_diff_and_written_once(clew: Clew, folder: Path, home: Path, client: ClientFile) -> None:
    path = file_of(client, folder, home)
    first = clew("connect", client.name)
    assert first.code == 0
    assert any(line.startswith("+") and "clew" in line for line in first.lines)
    assert str(path) in first.err
    written = path.read_bytes()
    again = clew("connect", client.name)
    assert (again.code, again.out) == (0, "")
    assert "is already connected" in again.err
    assert path.read_bytes() == written
    assert not folder.exists()
    assert os.listdir(path.parent) == [path.name] or client.name == "claude-code"


def test_a_dry_run_writes_nothing(clew: Clew, folder: Path, home: Path, client: ClientFile) -> None:
    shown = clew("connect", client.name, "--dry-run")
    assert (shown.code, "+" in shown.out) == (0, True)
    assert "Nothing was written" in shown.err
    path = file_of(client, folder, home)
    assert not path.exists()
    assert not path.parent.exists() or client.name == "claude-code"


def test_json_tells_what_was_done(clew: Clew, folder: Path, home: Path, client: ClientFile) -> None:
    path = file_of(client, folder, home)
    told = clew("connect", client.name, "--dry-run", "--json").json
    assert (told["client"], told["file"], told["changed"], told["written"]) == (client.name, str(path), True, False)
    done = clew("connect", client.name, "--json").json
    assert (done["changed"], done["written"]) == (True, True)
    assert done["content"] == told["content"] == path.read_text()
    assert clew("connect", client.name, "--json").json["changed"] is False


def test_agents_of_a_project_find_its_folder_and_others_are_told_it(clew: Clew, folder: Path, home: Path) -> None:
    clew("connect", "claude-code")
    assert json.loads((folder.parent / ".mcp.json").read_text()) == {
        "mcpServers": {"clew": {"type": "stdio", "command": "clew", "args": ["mcp"]}}
    }
    clew("connect", "codex", "--owner", "ann", "--scopes", "finance,hr")
    codex = tomllib.loads((home / ".codex" / "config.toml").read_text())["mcp_servers"]["clew"]
    assert codex["args"] == ["mcp", "--folder", str(folder), "--owner", "ann", "--scopes", "finance,hr"]
    clew("connect", "goose")
    goose = yaml.safe_load((home / ".config" / "goose" / "config.yaml").read_text())["extensions"]["clew"]
    assert goose["args"] == ["mcp", "--folder", str(folder)]
    other = folder.parent / "shop" / "trail"
    clew("connect", "cursor", "--folder", str(other))
    cursor = json.loads((folder.parent / "shop" / ".cursor" / "mcp.json").read_text())["mcpServers"]["clew"]
    assert cursor["args"] == ["mcp", "--folder", str(other)]


def test_a_file_that_is_no_json_is_left_alone_and_the_entry_shown(clew: Clew, folder: Path) -> None:
    path = folder.parent / ".zed" / "settings.json"
    path.parent.mkdir()
    path.write_text('// Zed settings\n{"theme": One}\n')
    result = clew("connect", "zed")
    assert result.code == 1
    assert result.err == f"clew: {path}: not JSON at line 2: add the entry by hand\n"
    assert json.loads(result.out)["context_servers"]["clew"]["args"] == ["mcp"]
    assert path.read_text() == '// Zed settings\n{"theme": One}\n'
    assert os.listdir(path.parent) == ["settings.json"]


SETTINGS = """\
// how I like it
{
    /* looks */ "theme":   "One",
    "fonts": [ "a",
        "b" ],   // two

    "context_servers": {
        // "off": {"command": "y"},
        "other": { "command": "x",  "args": [] }, // mine
    },
}
"""


def test_only_our_own_lines_of_a_file_change(clew: Clew, folder: Path) -> None:
    path = folder.parent / ".zed" / "settings.json"
    path.parent.mkdir()
    path.write_text(SETTINGS)
    shown = clew("connect", "zed")
    assert shown.code == 0
    assert [line for line in shown.lines if line.startswith("-")] == [f"--- {path}"]
    mine = '        "other": { "command": "x",  "args": [] }, // mine\n'
    ours = """\
        "clew": {
            "source": "custom",
            "command": "clew",
            "args": [
                "mcp"
            ],
            "env": {}
        },
"""
    assert path.read_text() == SETTINGS.replace(mine, mine + ours)
    changed = clew("connect", "zed", "--owner", "ann")
    assert [line for line in changed.lines if line.startswith("-")] == [f"--- {path}", '-                "mcp"']


def test_what_a_user_added_to_our_entry_stays(clew: Clew, folder: Path) -> None:
    path = folder.parent / ".mcp.json"
    own = {"command": "old", "args": [], "env": {"PYTHONPATH": "src"}, "disabled": True}
    path.write_text(json.dumps({"mcpServers": {"clew": own}}, indent=1))
    clew("connect", "claude-code")
    now = json.loads(path.read_text())["mcpServers"]["clew"]
    assert now == own | {"type": "stdio", "command": "clew", "args": ["mcp"]}


def test_an_entry_to_add_by_hand_can_be_copied(clew: Clew, home: Path, folder: Path) -> None:
    codex, goose = home / ".codex" / "config.toml", home / ".config" / "goose" / "config.yaml"
    for path, text in ((codex, "broken = "), (goose, "extensions: {}\n")):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    shown = clew("connect", "codex")
    assert (shown.code, tomllib.loads(shown.out)["mcp_servers"]["clew"]["command"]) == (1, "clew")
    shown = clew("connect", "goose")
    assert (shown.code, yaml.safe_load(shown.out)["extensions"]["clew"]["cmd"]) == (1, "clew")
    assert (codex.read_text(), goose.read_text()) == ("broken = ", "extensions: {}\n")


def test_a_link_stays_a_link_and_permissions_stay(clew: Clew, folder: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "mcp.json"
    real.parent.mkdir()
    real.write_text('{"mcpServers": {"other": {"command": "x"}}}')
    real.chmod(0o600)
    link = folder.parent / ".mcp.json"
    link.symlink_to(real)
    assert clew("connect", "claude-code").code == 0
    assert link.is_symlink()
    assert set(json.loads(real.read_text())["mcpServers"]) == {"other", "clew"}
    assert stat.S_IMODE(real.stat().st_mode) == 0o600


def test_line_ends_of_windows_stay(clew: Clew, folder: Path) -> None:
    path = folder.parent / ".mcp.json"
    path.write_bytes(b'{\r\n    "a": 1\r\n}\r\n')
    clew("connect", "claude-code")
    assert b"\n" not in path.read_bytes().replace(b"\r\n", b"")
    assert path.read_bytes().startswith(b'{\r\n    "a": 1,\r\n')
    mixed = b'{\r\n    "a": 1,\n    "b": 2\r\n}\r\n'
    path.write_bytes(mixed)
    clew("connect", "claude-code")
    assert path.read_bytes().startswith(b'{\r\n    "a": 1,\n    "b": 2,')
    assert path.read_bytes().endswith(b"}\r\n")


def test_files_that_cannot_be_used_are_told_in_one_line(clew: Clew, folder: Path, home: Path) -> None:
    path = folder.parent / ".mcp.json"

    def told() -> str:
        result = clew("connect", "claude-code")
        assert (result.code, len(result.err.splitlines())) == (1, 1), result.err
        assert "unforeseen" not in result.err
        return result.err

    path.write_text("{}")
    path.chmod(0o444)
    assert "read-only" in told()
    assert path.read_text() == "{}"
    path.chmod(0o644)
    path.write_bytes(b"\xff\xfe{}")
    assert "UTF-8" in told()
    path.unlink()
    path.mkdir()
    assert "Is a directory" in told()
    (folder.parent / ".cursor").write_text("a file where a folder belongs")
    result = clew("connect", "cursor")
    assert (result.code, "unforeseen" in result.err) == (1, False)


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_regular_file_is_refused_without_waiting(folder: Path, kind: str) -> None:
    path = folder.parent / ".mcp.json"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/null")
    command = [*COMMAND, "connect", "claude-code", "--dry-run"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (1, f"clew: {path} is not a regular file\n")


def test_a_file_of_many_megabytes_is_refused(clew: Clew, folder: Path) -> None:
    path = folder.parent / ".mcp.json"
    with path.open("wb") as sparse:
        sparse.truncate(100_000_000)
    result = clew("connect", "claude-code")
    assert (result.code, result.err) == (1, f"clew: {path} is over the limit of 4,000,000 bytes\n")


def test_an_empty_file_is_a_beginning(clew: Clew, folder: Path) -> None:
    (folder.parent / ".mcp.json").write_text("")
    assert clew("connect", "claude-code").code == 0
    assert json.loads((folder.parent / ".mcp.json").read_text())["mcpServers"]["clew"]


def test_an_unknown_agent_is_wrong_usage_that_names_the_others(clew: Clew) -> None:
    result = clew("connect", "emacs")
    assert result.code == 2
    assert "goose" in result.err


def test_settings_of_the_project_that_are_a_link_out_of_it_stay_as_they_are(
    clew: Clew, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    target = tmp_path_factory.mktemp("target") / "kept"
    target.write_text("{}")
    (folder.parent / ".mcp.json").symlink_to(target)
    refused = clew("connect", "claude-code")
    assert (refused.code, "leads out of" in refused.err) == (1, True)
    assert target.read_text() == "{}"
