"""`clew connect` in the settings of coding agents, below a temporary home folder."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import sysconfig
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


FORMATS = [each for each in CLIENTS if each.name in ("claude-code", "codex", "goose")]
"""One for each file format."""


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
    assert os.listdir(path.parent) == [path.name] or path.parent == folder.parent


@pytest.mark.parametrize("client", FORMATS, indirect=True, ids=lambda client: client.name)
def test_a_dry_run_writes_nothing(clew: Clew, folder: Path, home: Path, client: ClientFile) -> None:
    shown = clew("connect", client.name, "--dry-run")
    assert (shown.code, "+" in shown.out) == (0, True)
    assert "Nothing was written" in shown.err
    path = file_of(client, folder, home)
    assert not path.exists()
    assert not path.parent.exists() or path.parent == folder.parent


@pytest.mark.parametrize("client", FORMATS, indirect=True, ids=lambda client: client.name)
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
    codex = tomllib.loads((folder.parent / ".codex" / "config.toml").read_text())["mcp_servers"]["clew"]
    assert codex["args"] == ["mcp", "--owner", "ann", "--scopes", "finance,hr"]
    clew("connect", "goose")
    (goose,) = yaml.safe_load((home / ".config" / "goose" / "config.yaml").read_text())["extensions"].values()
    assert goose["args"] == ["mcp", "--folder", str(folder)]
    clew("connect", "cursor")
    cursor = json.loads((folder.parent / ".cursor" / "mcp.json").read_text())["mcpServers"]["clew"]
    assert cursor["args"] == ["mcp", "--folder", "${workspaceFolder}/.clew"]
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


def test_keys_that_a_user_added_to_the_entry_stay(clew: Clew, folder: Path) -> None:
    path = folder.parent / ".mcp.json"
    own = {"command": "old", "args": [], "env": {"PYTHONPATH": "src"}, "disabled": True}
    path.write_text(json.dumps({"mcpServers": {"clew": own}}, indent=1))
    clew("connect", "claude-code")
    now = json.loads(path.read_text())["mcpServers"]["clew"]
    assert now == own | {"type": "stdio", "command": "clew", "args": ["mcp"]}


def test_an_entry_to_add_by_hand_can_be_copied(clew: Clew, home: Path, folder: Path) -> None:
    codex, goose = folder.parent / ".codex" / "config.toml", home / ".config" / "goose" / "config.yaml"
    for path, text in ((codex, "broken = "), (goose, "extensions: {}\n")):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    shown = clew("connect", "codex")
    assert (shown.code, tomllib.loads(shown.out)["mcp_servers"]["clew"]["command"]) == (1, "clew")
    shown = clew("connect", "goose")
    assert (shown.code, [entry["cmd"] for entry in yaml.safe_load(shown.out)["extensions"].values()]) == (1, ["clew"])
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
def test_devices_and_pipes_are_refused_without_waiting(folder: Path, kind: str) -> None:
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


SHARED = [client for client in CLIENTS if client.is_global]
BEFORE = {
    ".json": b'{\r\n  "theme": "One", // mine\r\n}\r\n',
    ".toml": b"model = 'x' # mine\n",
    ".yaml": b"GOOSE_MODEL: x\n",
}


def test_removing_the_entry_restores_every_byte(clew: Clew, folder: Path, home: Path, client: ClientFile) -> None:
    path = file_of(client, folder, home)
    clew("connect", client.name)
    assert clew("connect", client.name, "--remove").code == 0
    assert (path.exists(), path.parent.exists()) == (False, path.parent == folder.parent)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(BEFORE[path.suffix])
    clew("connect", client.name)
    clew("connect", client.name, "--owner", "ann")
    shown = clew("connect", client.name, "--remove", "--dry-run")
    assert any(line.startswith("-") and "clew" in line for line in shown.lines)
    assert b"clew" in path.read_bytes()
    assert clew("connect", client.name, "--remove").code == 0
    assert path.read_bytes() == BEFORE[path.suffix]
    again = clew("connect", client.name, "--remove")
    assert (again.code, "is not connected" in again.err) == (0, True)


def test_later_edits_of_the_user_stay_when_the_entry_is_removed(
    clew: Clew, folder: Path, home: Path, client: ClientFile
) -> None:
    path = file_of(client, folder, home)
    clew("connect", client.name)
    added = {".json": b"// later\n", ".toml": b"\n[later]\nkey = 1\n", ".yaml": b"later: 1\n"}[path.suffix]
    path.write_bytes(path.read_bytes() + added)
    assert clew("connect", client.name, "--remove").code == 0
    assert added.strip() in path.read_bytes()
    assert not client.format.entries(path.read_text())


@pytest.mark.parametrize("shared", SHARED, ids=lambda client: client.name)
def test_two_projects_have_an_entry_each(clew: Clew, folder: Path, home: Path, shared: ClientFile) -> None:
    others = [folder.parent / place / "shop" / ".clew" for place in ("one", "two")]
    for place in (folder, *others):
        place.parent.mkdir(parents=True, exist_ok=True)
        assert clew("connect", shared.name, "--folder", str(place)).code == 0
    entries = shared.format.entries(shared.path(folder.parent, home).read_text())
    folders = [launch.args[2] for launch in entries.values() if launch is not None]
    assert folders == [str(place) for place in (folder, *others)] or sorted(folders) == sorted(
        map(str, (folder, *others))
    )
    assert "clew-shop" in entries
    clew("connect", shared.name, "--folder", str(others[0]), "--remove")
    left = shared.format.entries(shared.path(folder.parent, home).read_text())
    assert set(left) == set(entries) - {"clew-shop"}


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (2, 1, 0)], ids=str)
@pytest.mark.parametrize("shared", SHARED, ids=lambda client: client.name)
def test_projects_that_share_a_file_leave_no_trace_in_any_order_of_removal(
    clew: Clew, folder: Path, home: Path, shared: ClientFile, order: tuple[int, ...]
) -> None:
    places = [folder.parent / name / ".clew" for name in ("one", "two", "three")]
    path = shared.path(folder.parent, home)
    for before in (None, BEFORE[path.suffix]):
        if before is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(before)
        for place in places:
            place.parent.mkdir(parents=True, exist_ok=True)
            assert clew("connect", shared.name, "--folder", str(place)).code == 0
        for at in order:
            assert clew("connect", shared.name, "--folder", str(places[at]), "--remove").code == 0
        assert (path.read_bytes() if path.exists() else None) == before
        assert before is not None or not path.parent.exists()


def test_a_file_that_is_committed_names_no_path_of_this_machine(
    clew: Clew, folder: Path, home: Path, client: ClientFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", [str(folder.parent / ".venv" / "bin" / "clew")])
    clew("connect", client.name)
    text = file_of(client, folder, home).read_text()
    assert (str(folder.parent) in text) is client.is_global


def test_a_damaged_log_of_connections_is_named(clew: Clew, folder: Path, trust_file: Path) -> None:
    clew("connect", "claude-code")
    log = trust_file.with_name("connections.json")
    log.write_text("{")
    refused = clew("connect", "claude-code", "--remove")
    assert (refused.code, len(refused.err.splitlines())) == (1, 1)
    assert str(log) in refused.err
    log.unlink()
    assert clew("connect", "claude-code", "--remove").code == 0
    assert json.loads((folder.parent / ".mcp.json").read_text()) == {"mcpServers": {}}


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program `clew` in a folder of the PATH, as an installed one is."""
    place = tmp_path / "bin" / "clew"
    place.parent.mkdir()
    place.write_text(f'#!/bin/sh\nexec {sys.executable} -m clew "$@"\n')
    place.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place.parent}{os.pathsep}{os.environ['PATH']}")
    return place


@pytest.mark.req("BEY-11")
@pytest.mark.parametrize("name", ["claude-code", "opencode", "goose"])
def test_a_check_starts_the_server_as_the_client_does(
    clew: Clew, folder: Path, home: Path, program: Path, name: str
) -> None:
    (folder.parent / "README.md").write_text("# Shop\n\nThis project is about selling books by post.\n")
    missing = clew("connect", name, "--check")
    assert (missing.code, f"run `clew connect {name}`" in missing.err) == (1, True)
    clew("connect", name)
    found = clew("connect", name, "--check", "--json")
    assert found.code == 0, found.err
    assert (found.json["client"], found.json["tools"]) == (name, 2)
    assert found.json["answer"].startswith("README.md:1  Shop")
    assert "selling books" in found.json["answer"]


@pytest.mark.parametrize("has_place", [True, False], ids=["folder of the user", "any folder"])
def test_a_user_of_a_virtual_environment_is_told_the_command_that_puts_clew_on_the_path(
    clew: Clew, folder: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_place: bool
) -> None:
    place = home / ".local" / "bin" if has_place else tmp_path / "some where"
    place.mkdir(parents=True)
    monkeypatch.setenv("PATH", os.pathsep.join((sysconfig.get_path("scripts"), str(place), "/usr/bin", "/bin")))
    told = clew("connect", "claude-code").err.splitlines()
    assert told[-2] == "Claude Code does not find `clew` outside of this virtual environment. Put it on your PATH:"
    refused = clew("connect", "claude-code", "--check").err
    assert told[-1].strip() in refused
    subprocess.run(told[-1].strip(), shell=True, check=True)
    assert (place / "clew").is_symlink()
    assert clew("connect", "claude-code", "--check").code == 0
    assert "does not find" not in clew("connect", "claude-code").err
    assert sysconfig.get_path("scripts") not in (folder.parent / ".mcp.json").read_text()


def test_a_check_names_what_does_not_work(clew: Clew, folder: Path, program: Path) -> None:
    clew("connect", "claude-code")
    program.write_text("#!/bin/sh\necho no such module >&2\nexit 3\n")
    broken = clew("connect", "claude-code", "--check")
    assert (broken.code, "no such module" in broken.err) == (1, True)
    program.unlink()
    lost = clew("connect", "claude-code", "--check")
    assert (lost.code, "does not find the program" in lost.err) == (1, True)
    both = clew("connect", "claude-code", "--check", "--remove")
    assert (both.code, "cannot be used with --remove" in both.err) == (2, True)


def test_an_older_entry_of_clew_does_not_come_back_when_it_is_removed(clew: Clew, folder: Path) -> None:
    path = folder.parent / ".mcp.json"
    path.write_text('{"mcpServers": {"clew": {"command": "/old/bin/clew", "args": ["mcp"]}, "x": {"command": "y"}}}')
    clew("connect", "claude-code")
    assert clew("connect", "claude-code", "--remove").code == 0
    assert set(json.loads(path.read_text())["mcpServers"]) == {"x"}


def test_keys_that_the_user_added_to_toml_and_yaml_stay(clew: Clew, folder: Path, home: Path) -> None:
    clew("connect", "codex")
    codex = folder.parent / ".codex" / "config.toml"
    codex.write_text(codex.read_text() + "startup_timeout_sec = 60\n\n[mcp_servers.clew.env]\nA = 'b'\n")
    before = codex.read_text()
    assert clew("connect", "codex").code == 0
    assert codex.read_text() == before
    clew("connect", "codex", "--owner", "ann")
    entry = tomllib.loads(codex.read_text())["mcp_servers"]["clew"]
    assert (entry["startup_timeout_sec"], entry["env"], entry["args"]) == (60, {"A": "b"}, ["mcp", "--owner", "ann"])
    assert clew("connect", "codex", "--remove").code == 0
    assert "clew" not in codex.read_text()
    clew("connect", "goose")
    goose = home / ".config" / "goose" / "config.yaml"
    goose.write_text(goose.read_text().replace("enabled: true", "enabled: false"))
    clew("connect", "goose", "--owner", "ann")
    (entry,) = yaml.safe_load(goose.read_text())["extensions"].values()
    assert (entry["enabled"], entry["args"][-1]) == (False, "ann")


def test_a_check_starts_nothing_that_a_cloned_folder_names(clew: Clew, folder: Path) -> None:
    sign = folder.parent / "started"
    script = folder.parent / "clew"
    script.write_text(f"#!/bin/sh\ntouch '{sign}'\n")
    script.chmod(0o755)
    for command, args in (("sh", ["-c", f"touch '{sign}'"]), (str(script), ["mcp"]), ("clew", ["trust", "--yes"])):
        entry = {"mcpServers": {"clew": {"command": command, "args": args}}}
        (folder.parent / ".mcp.json").write_text(json.dumps(entry))
        refused = clew("connect", "claude-code", "--check")
        assert (refused.code, "does not start Clew" in refused.err) == (1, True), refused.err
    assert not sign.exists()


def test_the_guide_names_every_client_with_its_file_and_the_source_of_the_format(client: ClientFile) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "mcp.md").read_text("utf-8")
    place = f"~/{client.place}" if client.is_global else client.place
    assert f"| `{client.name}` ({client.title}) | `{place}` | <{client.source}> |" in guide
