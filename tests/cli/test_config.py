"""`clew config`, and the settings that commands follow."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from clew.app import App
from clew.catalog.operations.answers import Item
from clew.cli import main
from clew.secrecy import MASK
from tests.cli.conftest import COMMAND, Clew

SERVER = Path(__file__).parents[1] / "catalog" / "servers" / "fixtures" / "hostile.py"
SECRET = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
HOOKS = """
from clew.catalog.servers import Hooks

async def note(request):
    with open("requests.txt", "a") as file:
        file.write(request.method + "\\n")
    return request

noting = Hooks(on_request=note)
"""


@pytest.fixture
def toml(folder: Path) -> Path:
    folder.mkdir()
    return folder / "config.toml"


def editor(folder: Path, code: str) -> str:
    """The value of EDITOR: a program that edits the file in its last argument."""
    path = folder.parent / "editor.py"
    path.write_text(f"import pathlib, sys\nfile = pathlib.Path(sys.argv[1])\n{code}\n")
    return f"{sys.executable} {path}"


@pytest.mark.req("PLA-27")
def test_settings_are_shown_with_where_each_comes_from(clew: Clew, toml: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toml.write_text("embedder = 'none'\n\n[scripts]\nexpiration_days = 7\n[[mcp.servers]]\nid = 'geo'\ncommand = 'x'\n")
    (toml.parent / "config.py").write_text("from clew import define_config\nconfig = define_config(agents=False)\n")
    assert clew("trust", "config.py", "--yes").code == 0
    monkeypatch.setenv("CLEW_SERVER_PORT", "9000")
    done = clew("config", "show", "--owner", "ann")
    rows = {row[0]: tuple(row[1:]) for row in done.rows}
    assert rows["owner"] == ("ann", "--owner")
    assert rows["server.port"] == ("9000", "CLEW_SERVER_PORT")
    assert rows["embedder"] == ("hash", "CLEW_EMBEDDER")
    assert rows["scripts.expiration_days"] == ("7", f"{toml}:4")
    assert rows["mcp.servers"] == ("[]", f"default ({toml}:5 waits for your consent: run `clew trust`)")
    assert rows["agents"] == ("false", str(toml.parent / "config.py"))
    assert rows["agent.name"] == ("assistant", "default")
    assert [row[0] for row in clew("config", "show", "scripts").rows] == [
        *("scripts.persistence", "scripts.path", "scripts.expiration_days")
    ]
    (found,) = clew("config", "show", "server.port", "--json").json
    assert found == {
        **{"name": "server.port", "value": 9000, "source": "environment"},
        **{"place": "CLEW_SERVER_PORT", "pending": ""},
    }
    missing = clew("config", "show", "server.prt")
    assert (missing.code, "no setting 'server.prt'. Did you mean server.port?" in missing.err) == (1, True)


def test_a_value_that_waits_for_consent_is_shown_with_its_default(clew: Clew, toml: Path) -> None:
    toml.write_text("[adapters]\nsandbox = 'none'\n")
    waiting = f"default ({toml}:2 waits for your consent: run `clew trust`)"
    assert clew("config", "show", "adapters").rows == [["adapters.sandbox", "auto", waiting]]
    assert "setting adapters.sandbox: 'none': tools run with less isolation" in clew("trust", "--yes").out
    assert clew("config", "show", "adapters").rows == [["adapters.sandbox", "none", f"{toml}:2"]]


PENDING = """
[catalog]
domains = ["pending_pack:pack"]
[permissions]
allow = ["read-file", "exec(*)"]
[mcp]
hooks = ["pending_hooks:noting"]
[[mcp.servers]]
id = "geo"
command = "x"
[sources.far]
kind = "local"
root = "~"
[sources.near]
kind = "local"
root = "docs"
[providers.lab]
base_url = "https://lab.example.org/v1"
"""


@pytest.mark.req("PLA-27")
def test_every_setting_that_waits_for_consent_is_marked(
    clew: Clew, toml: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toml.write_text(PENDING)
    for name in ("pending_pack", "pending_hooks"):
        (toml.parents[1] / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(str(toml.parents[1]))

    def shown() -> dict[str, tuple[str, str]]:
        rows = {row[0]: (row[1], row[2].replace(f"{toml}:", "")) for row in clew("config", "show").rows}
        return {name: row for name, row in rows.items() if row[1] not in ("default", "CLEW_EMBEDDER")}

    waits = "waits for your consent: run `clew trust`"
    near, far = '{"kind":"local","root":"docs"}', '{"kind":"local","root":"~"}'
    lab = '{"base_url":"https://lab.example.org/v1"}'
    assert shown() == {
        "catalog.domains": ("[]", f"default (3 {waits})"),
        "permissions.allow": ('["read-file"]', f"5 (partly {waits})"),
        "mcp.hooks": ("[]", f"default (7 {waits})"),
        "mcp.servers": ("[]", f"default (8 {waits})"),
        "sources.far": (far, f"11 ({waits})"),
        "sources.near": (near, "14"),
        "providers.lab": (lab, f"17 ({waits})"),
    }
    assert clew("trust", "geo", "--yes").code == 0
    assert shown()["mcp.servers"] == ("[]", f"default (8 {waits})")  # for the hooks
    assert clew("trust", "pending_hooks:noting", "--yes").code == 0
    toml.with_name("mcp.json").write_text('{"mcpServers": {"other": {"command": "x"}}}')
    assert shown()["mcp.servers"] == ('["geo"]', "8")
    (found,) = clew("config", "show", "permissions.allow", "--json").json
    assert (found["value"], found["pending"]) == (["read-file"], f"{toml}:5")
    assert clew("trust", "--yes").code == 0
    assert shown() == {
        "catalog.domains": ('["pending_pack:pack"]', "3"),
        "permissions.allow": ('["read-file","exec(*)"]', "5"),
        "mcp.hooks": ('["pending_hooks:noting"]', "7"),
        "mcp.servers": ('["geo"]', "8"),
        "sources.far": (far, "11"),
        "sources.near": (near, "14"),
        "providers.lab": (lab, "17"),
    }


def test_secrets_are_never_shown(clew: Clew, toml: Path) -> None:
    toml.write_text(
        f"[sources.pulls]\nkind = 'github'\nrepo = 'a/b'\ntoken = '{SECRET}'\n"
        f"base_url = 'https://git.example.org/api?key=hunter2x'\n"
        f"[[mcp.servers]]\nid = 'geo'\ncommand = ['x', '--token', '{SECRET}']\nenv = {{ TOKEN = '{SECRET}' }}\n"
        f"[providers.lab]\nkey = 'env:LAB_KEY'\n[models]\nfast = 'lab:{SECRET}'\n"
    )
    for arguments in ((), ("--json",)):
        shown = clew("config", "show", *arguments)
        assert (shown.code, SECRET in shown.out + shown.err) == (0, False)
        assert MASK in shown.out
        assert "env:LAB_KEY" in shown.out
        assert f"https://git.example.org/api?key={MASK}" in shown.out


@pytest.mark.req("PLA-27")
def test_all_problems_are_listed_with_their_places(clew: Clew, toml: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toml.write_text(
        "ownr = 'x'\n[adapters]\nsandbox = 'bwrap'\n[rules]\nroot = 'RULES.md'\n"
        "[[mcp.servers]]\nid = 'a'\ncommand = 'x'\n[[mcp.servers]]\nid = 'b'\n"
    )
    monkeypatch.setenv("CLEW_SERVER_PORT", "x")
    done = clew("config", "check")
    assert (done.code, done.err) == (1, "5 problems.\n")
    assert done.lines == [
        f"{toml}:1: there is no setting 'ownr'. Did you mean owner?",
        f"{toml}:3: there is no adapters.sandbox 'bwrap'. Did you mean bubblewrap?"
        " Choose one of: auto, bubblewrap, landlock, none",
        "CLEW_SERVER_PORT: server.port must be a whole number from 0 to 65535, not 'x'",
        f"{toml}:9: [[mcp.servers]] 'b' needs either a command or a url",
        f"{toml}:5: rules.root: there is no {toml.parents[1] / 'RULES.md'}. Create it, or correct the path",
    ]
    assert clew("config", "check", "--json").json["problems"][0]["hint"] == "Did you mean owner?"
    monkeypatch.delenv("CLEW_SERVER_PORT")
    toml.write_text("owner = 'ann'\n")
    fine = clew("config", "check")
    assert (fine.code, fine.lines, fine.err) == (
        *(0, [f"No problems: 2 settings from {toml.parent} (config.toml)"]),
        "",
    )


@pytest.mark.req("PLA-27")
def test_values_that_no_part_of_clew_can_use_are_problems(clew: Clew, toml: Path) -> None:
    toml.write_text(
        "[permissions]\nallow = ['read-file']\ndeny = ['fetch', 'exec(', 'exec(']\n"
        "[sources.x]\nkind = 'nonsense'\n"
        "[sources.y]\nkind = 'local'\nrot = 'docs'\n"
        "[sources.z]\nkind = 'local'\nroot = 'docs'\ndomain = 'No Domain'\n"
        "[catalog]\ndomains = ['nobody_offers_this', 'no_such_module:x']\n"
        "[models]\ndefault = 'nosuchprovider:m'\nfast = 'default'\ncoding = 'ollama:qwen3'\nann = 'bob'\nbob = 'ann'\n"
        "[providers.lab]\nkind = 'nothing'\n"
        "[knowledge]\nmodel = 'nosuchrole'\n"
    )
    done = clew("config", "check")
    assert (done.code, done.err) == (1, f"{len(done.lines)} problems.\n")
    told = [line.removeprefix(f"{toml}:").partition(": ") for line in done.lines]
    found = [(int(line), text) for line, _, text in told]
    expected = [
        (3, "permissions.deny: 'exec('"),
        (3, "permissions.deny: 'exec('"),
        (4, "[sources.x] there is no source 'nonsense'"),
        (6, "[sources.y] local: there is no option 'rot'. Did you mean root?"),
        (9, "[sources.z] domain: 'No Domain' must be lower-case letters"),
        (14, "catalog.domains: no installed package offers a domain 'nobody_offers_this'"),
        (14, "catalog.domains: Python finds no module for 'no_such_module:x'"),
        (16, "models.default: there is no provider 'nosuchprovider'"),
        (19, "models.ann: the roles bob → ann → bob refer to each other in a circle"),
        (20, "models.bob: the roles ann → bob → ann refer to each other in a circle"),
        (24, "knowledge.model: there is no model or role 'nosuchrole'"),
        (21, "[providers.lab] has the unknown kind 'nothing'"),
    ]
    assert [line for line, _ in found] == [line for line, _ in expected], done.out
    assert all(text.startswith(said) for (_, text), (_, said) in zip(found, expected, strict=True)), done.out


@pytest.mark.req("PLA-27")
def test_a_key_or_consent_that_is_missing_is_no_problem_of_the_settings(
    clew: Clew, toml: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LAB_KEY", raising=False)
    toml.write_text(
        "[models]\ndefault = 'lab:m'\n[providers.lab]\nbase_url = 'https://lab.example.org/v1'\nkey = 'env:LAB_KEY'\n"
        "[sources.pulls]\nkind = 'github'\nrepo = 'a/b'\ntoken = 'NOT_THERE'\n"
    )
    assert (clew("config", "check").code, clew("config", "check").out.startswith("No problems")) == (0, True)


@pytest.mark.req("PLA-27")
def test_the_problems_of_all_servers_are_listed(clew: Clew, toml: Path) -> None:
    toml.write_text(
        "[[mcp.servers]]\nid = 'a'\n[[mcp.servers]]\nid = 'b'\ncommand = 'x'\n[[mcp.servers]]\nid = 'NO'\nurl = 'http://x'\n"
        "[[mcp.servers]]\nid = 'c'\nurl = 'ftp://x'\n[[mcp.servers]]\nid = 'fine'\ncommand = 'x'\n"
    )
    path = toml.with_name("mcp.json")
    path.write_text('{"mcpServers": {"one": {}, "two": {"command": "x", "url": "y"}, "b": {"command": "x"}}}')
    done = clew("config", "check")
    assert done.lines == [
        f"{path}: server 'one' needs either a command or a url",
        f"{path}: server 'two' needs either a command or a url",
        f"{toml}:1: [[mcp.servers]] 'a' needs either a command or a url",
        f"{toml}:3: [[mcp.servers]] 'b': there is a server of that name in {path}. Rename one",
        *[line for line in done.lines if line.startswith(f"{toml}:6: ") and "'NO'" in line],
        f"{toml}:9: server c: url must begin with http:// or https://",
    ]
    assert len(done.lines) == 6


def test_a_broken_file_is_one_problem(clew: Clew, toml: Path) -> None:
    toml.write_text("owner = \n")
    done = clew("config", "check")
    assert (done.code, len(done.lines), "is not TOML: Invalid value (at line 1" in done.out) == (1, 1, True)


@pytest.mark.req("PLA-27")
def test_the_editor_gets_a_new_file_that_is_checked_afterwards(
    clew: Clew, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "text = file.read_text()\nfile.write_text(text + 'agent.name = \"ann\"\\n')"
    monkeypatch.setenv("VISUAL", editor(folder, code))
    done = clew("config", "edit")
    assert (done.code, done.err) == (0, "The settings are fine.\n")
    text = (folder / "config.toml").read_text()
    assert text.splitlines()[0] == "#:schema ./config.schema.json"
    schema = json.loads((folder / "config.schema.json").read_text())
    assert schema == clew("config", "schema").json
    assert jsonschema_rs.is_valid(schema, {"agent": {"name": "ann"}})
    assert clew("config", "show", "agent.name").rows == [
        ["agent.name", "ann", f"{folder / 'config.toml'}:{len(text.splitlines())}"]
    ]
    monkeypatch.setenv("VISUAL", editor(folder, "file.write_text('agnt = 1\\n')"))
    wrong = clew("config", "edit")
    assert (wrong.code, wrong.lines) == (
        1,
        [f"{folder / 'config.toml'}:1: there is no setting 'agnt'. Did you mean agents?"],
    )


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("", "there is no editor. Set VISUAL or EDITOR, or edit "),
        ("no-such-editor", "the editor no-such-editor cannot be started: No such file or directory"),
        ("false", "the editor false ended with exit code 1"),
    ],
)
def test_an_editor_that_cannot_be_used_is_named(
    clew: Clew, folder: Path, monkeypatch: pytest.MonkeyPatch, value: str, said: str
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", value)
    done = clew("config", "edit")
    assert (done.code, done.err.startswith(f"clew: {said}"), done.err.count("\n")) == (1, True, 1)


def test_at_a_terminal_the_file_can_be_edited_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "file.write_text('owner = 1\\n' if 'agents' in file.read_text() else 'owner = \"ann\"\\n')"
    monkeypatch.setenv("EDITOR", editor(folder, code))
    monkeypatch.delenv("VISUAL", raising=False)
    leader, follower = pty.openpty()
    os.write(leader, b"y\n")
    process = subprocess.run(
        [*COMMAND, "config", "edit"], stdin=follower, stdout=follower, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(follower)
    os.close(leader)
    assert process.returncode == 0
    assert "Edit it again? [y/N]" in process.stderr
    assert process.stderr.endswith("The settings are fine.\n")
    assert (folder / "config.toml").read_text() == 'owner = "ann"\n'


@pytest.mark.req("PLA-27")
def test_a_conversation_starts_with_the_agent_of_the_settings(clew: Clew, toml: Path) -> None:
    agents = toml.parent / "agents"
    agents.mkdir()
    (agents / "ann.md").write_text("---\ndescription: Answers shortly.\n---\nBe short.\n")
    script = toml.parents[1] / "script.yaml"
    script.write_text("- say: Good morning.\n")
    toml.write_text("[agent]\nname = 'ann'\n")
    refused = clew("chat", "hello", "--script", str(script))
    assert (refused.code, "the agent ann cannot be talked to" in refused.err) == (1, True)
    assert clew("trust", "--yes").code == 0
    done = clew("chat", "hello", "--script", str(script), "--json")
    assert done.code == 0, done.err
    assert [each["agent"] for each in clew("chat", "--list", "--json").json["items"]] == ["ann"]


@pytest.mark.req("PLA-27")
def test_rules_and_skills_are_read_from_their_roots(clew: Clew, toml: Path) -> None:
    project = toml.parents[1]
    (project / "docs").mkdir()
    (project / "docs" / "house.md").write_text("Use tabs.\n")
    (project / "AGENTS.md").write_text("Use spaces.\n")
    toml.write_text("[rules]\nroot = 'docs/house.md'\n[skills]\nroot = 'team/skills'\n")
    assert [row[1] for row in clew("rules", "for", "src/a.py").rows] == ["docs/house.md"]
    assert [(row[0], row[1]) for row in clew("rules", "ls").rows] == [("docs/house.md", ".")]
    assert "rules docs/house.md: tells agents what to do (1 line): Use tabs." in clew("trust", "--yes").out
    assert clew("skills", "new", "release", "--description", "Tag and publish a release").code == 0
    assert (project / "team/skills/release/SKILL.md").exists()
    assert not (toml.parent / "skills").exists()
    assert [row[0] for row in clew("skills", "list").rows] == ["release"]


@pytest.mark.req("PLA-27")
def test_servers_and_hooks_of_the_settings_wait_for_consent_and_are_used(
    clew: Clew, toml: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = toml.parents[1]
    toml.write_text(
        "[mcp]\nhooks = ['noting_hooks:noting']\n"
        f"[[mcp.servers]]\nid = 'notes'\ncommand = {json.dumps([sys.executable, str(SERVER), 'plain'])}\n"
    )
    (project / "noting_hooks.py").write_text(HOOKS)
    monkeypatch.syspath_prepend(str(project))
    assert clew("mcp", "ls").rows[0][-1] == "not trusted yet: run `clew trust`"
    assert clew("trust", "notes", "--yes").code == 0
    waiting = clew("ask", "something useful", "--cached", "--agent")
    assert "mcp.hooks noting_hooks:noting: not trusted yet: run `clew trust`. Servers wait for them" in waiting.err
    assert "noting_hooks" not in sys.modules
    told = clew("trust", "--yes")
    assert (
        "hook noting_hooks:noting: imports noting_hooks:noting from noting_hooks.py, 1 file of this folder" in told.out
    )
    assert clew("get", "notes://tools/guide").code == 0
    assert "worked" in clew("get", "notes://tools/hidden/work").out
    assert "tools/call" in (project / "requests.txt").read_text().split()
    refused = clew("mcp", "rm", "notes")
    assert (refused.code, "notes is in the settings. Remove it there: clew config edit" in refused.err) == (2, True)
    taken = clew("mcp", "add", "notes", "x")
    assert (taken.code, "notes" in taken.err) == (1, True)


@pytest.mark.req("PLA-27")
def test_hooks_that_are_agreed_to_later_count_without_a_restart(
    clew: Clew, toml: Path, in_trail: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = toml.parents[1]
    toml.write_text(
        "[mcp]\nhooks = ['later_hooks:noting']\n"
        f"[[mcp.servers]]\nid = 'notes'\ncommand = {json.dumps([sys.executable, str(SERVER), 'plain'])}\n"
    )
    (project / "later_hooks.py").write_text(HOOKS)
    monkeypatch.syspath_prepend(str(project))
    monkeypatch.chdir(project)

    async def work(app: App) -> str:
        workspace = await app.workspace()
        assert await asyncio.to_thread(main, ["trust", "notes", "--yes"]) == 0
        await workspace.notice_consent()
        assert "not trusted yet" in workspace.problems["mcp.hooks"]
        assert workspace.waiting.servers == ["notes"]
        assert await asyncio.to_thread(main, ["trust", "--yes"]) == 0
        await workspace.notice_consent()
        assert workspace.tell_problems() == []
        assert await workspace.meet_servers() == {}
        return (await workspace.catalog.get([Item(route="notes://tools/hidden/work")], by=app.me)).markdown

    assert "worked" in in_trail(work)
    assert "tools/call" in (project / "requests.txt").read_text().split()


def test_hooks_are_told_as_pending_until_consent_where_there_is_no_server(
    toml: Path, in_trail: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    toml.write_text("[mcp]\nhooks = ['lone_hooks:noting']\n")
    (toml.parents[1] / "lone_hooks.py").write_text(HOOKS)
    monkeypatch.syspath_prepend(str(toml.parents[1]))

    async def work(app: App) -> list[list[str]]:
        workspace = await app.workspace()
        before = workspace.tell_problems()
        assert await asyncio.to_thread(main, ["trust", "--yes"]) == 0
        await workspace.notice_consent()
        return [before, workspace.tell_problems()]

    told = "mcp.hooks lone_hooks:noting: not trusted yet: run `clew trust`. Servers wait for them"
    assert in_trail(work) == [[told], []]


def test_a_server_that_is_there_twice_is_refused(clew: Clew, toml: Path) -> None:
    toml.write_text("[[mcp.servers]]\nid = 'notes'\ncommand = 'x'\n")
    (toml.parent / "mcp.json").write_text('{"mcpServers": {"notes": {"command": "y"}}}')
    done = clew("config", "check")
    twice = f"there is a server of that name in {toml.with_name('mcp.json')}. Rename one"
    assert (done.code, done.out) == (1, f"{toml}:1: [[mcp.servers]] 'notes': {twice}\n")


@pytest.mark.req("PLA-27")
def test_config_py_runs_after_consent_and_its_changes_need_it_again(clew: Clew, toml: Path) -> None:
    path = toml.parent / "config.py"
    path.write_text("from clew import define_config\nconfig = define_config(owner='py')\n")
    shown = [*COMMAND, "config", "show", "owner"]
    before = subprocess.run(shown, capture_output=True, text=True, check=True)
    assert before.stdout == "setting\tvalue\tfrom\nowner\tlocal\tdefault\n"
    assert before.stderr == f"clew: {path} is ignored: it is code and waits for your consent (`clew trust`)\n"
    agreed = clew("trust", "--yes")
    assert "config config.py: runs .clew/config.py (2 lines) with every command" in agreed.out
    assert clew("config", "show", "owner").rows[0][1:] == ["py", str(path)]
    path.write_text("import os\nconfig = 1 / 0\n")
    assert clew("config", "show", "owner").rows[0][1:] == ["local", "default"]
    assert clew("trust", "--yes").code == 0
    for command in (("config", "check"), ("trail", "ls")):
        wrong = clew(*command)
        assert (wrong.code, f"{path}:2: ZeroDivisionError: division by zero" in wrong.out + wrong.err) == (1, True)
