"""Foreign MCP servers by command: import, list, approve and remove."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from clew.app import open_app
from clew.config import read_config
from tests.cli.conftest import Clew

pytestmark = pytest.mark.usefixtures("home")

HOSTILE = Path(__file__).parents[1] / "catalog" / "servers" / "fixtures" / "hostile.py"
TOKEN = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"


def entry(*arguments: str, **more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(HOSTILE), *arguments], **more}


def offer(folder: Path, **servers: Any) -> Path:
    """The settings of another client."""
    path = folder.parent / "home" / ".claude.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


@pytest.mark.req("PLA-22")
def test_servers_are_taken_over_looked_at_used_and_forgotten(clew: Clew, folder: Path) -> None:
    offer(folder, notes=entry("plain"), clew={"command": "clew", "args": ["mcp"]})
    dry = clew("mcp", "import", "--dry-run")
    assert (dry.code, folder.exists()) == (0, False)
    assert dry.out.startswith("+ notes  stdio  python")
    assert "Nothing was written" in dry.err

    taken = clew("mcp", "import", "--json")
    assert taken.code == 0, taken.err
    assert [each["id"] for each in taken.json["found"]] == ["notes"]
    assert any("Clew itself" in each["reason"] for each in taken.json["skipped"])
    assert list(json.loads((folder / "mcp.json").read_text())["mcpServers"]) == ["notes"]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert "*.db*" in (folder / ".gitignore").read_text()

    (listed,) = clew("mcp", "ls", "--json").json
    assert (listed["id"], listed["known"], listed["tools"], listed["changed"]) == ("notes", True, 1, [])
    assert clew("mcp", "ls").rows[0][-1] == "ready"
    assert "notes://tools/guide" in clew("ask", "something useful", "--cached", "--agent").out
    guided = clew("get", "notes://tools/guide", "--json").json["results"][0]["data"]["guidance"]
    assert [step["route"] for step in guided] == ["notes://tools/hidden/work"]
    assert "worked" in clew("get", "notes://tools/hidden/work").out

    again = clew("mcp", "import")
    assert "No new servers were found." in again.err
    assert "is the same as notes" in again.err
    assert clew("mcp", "rm", "notes", "notes", "--json").json == {"removed": ["notes"]}
    assert clew("mcp", "ls", "--json").json == []
    assert json.loads((folder / "mcp.json").read_text()) == {"mcpServers": {}}
    assert "notes" not in clew("ask", "something useful", "--cached", "--agent").out
    assert clew("get", "notes://tools/hidden/work").code == 1


def test_secrets_stay_where_they_are(clew: Clew, folder: Path) -> None:
    server = entry("plain", env={"API_TOKEN": TOKEN})
    far = {"type": "http", "url": "https://example.invalid/mcp", "headers": {"Authorization": f"Bearer {TOKEN}"}}
    offer(folder, notes=server, far=far)
    outputs = [clew("mcp", "import", "--dry-run"), clew("mcp", "import", "--no-look")]
    outputs += [clew("mcp", "ls"), clew("mcp", "ls", "--json"), clew("domains", "--json")]
    assert all(TOKEN not in each.out + each.err for each in outputs)
    assert TOKEN not in (folder / "mcp.json").read_text()
    assert "set API_TOKEN before you use it" in outputs[1].err
    assert stat.S_IMODE((folder / "mcp.json").stat().st_mode) == 0o600
    assert [row[-1] for row in outputs[2].rows] == ["not looked at yet", "not looked at yet"]


def test_secrets_that_are_kept_are_still_not_shown(clew: Clew, folder: Path) -> None:
    offer(folder, notes=entry("plain", env={"API_TOKEN": TOKEN}))
    kept = clew("mcp", "import", "--keep-secrets", "--no-look", "--json")
    assert TOKEN not in kept.out + kept.err
    assert TOKEN in (folder / "mcp.json").read_text()


def test_a_server_that_cannot_be_looked_at_is_reported_and_kept(clew: Clew, folder: Path) -> None:
    offer(folder, broken={"command": "no-such-program-at-all"})
    result = clew("mcp", "import")
    assert result.code == 1
    assert "! broken: " in result.err
    assert clew("mcp", "import", "--json").json["problems"] == {}
    (listed,) = clew("mcp", "ls", "--json").json
    assert (listed["id"], listed["known"]) == ("broken", False)


def test_a_server_with_the_name_of_a_domain_locks_nobody_out(clew: Clew, folder: Path) -> None:
    offer(folder, repo=entry("plain"))
    result = clew("mcp", "import")
    assert "left out repo: has the name of a domain" in result.err
    assert not (folder / "mcp.json").exists()
    assert clew("ask", "anything").code == 0


def test_a_tool_that_changed_waits_for_approval(clew: Clew, folder: Path, tmp_path: Path) -> None:
    async def look() -> None:
        async with open_app(read_config(folder, os.environ)) as app:
            await (await app.workspace()).servers.refresh("pages")

    text = tmp_path / "description.txt"
    text.write_text("Reads a page.")
    offer(folder, pages=entry("changing", str(text)))
    assert clew("mcp", "import").code == 0
    assert "No tool of pages has changed." in clew("mcp", "approve", "pages").err

    text.write_text("Sends all your files away.")
    asyncio.run(look())
    (listed,) = clew("mcp", "ls", "--json").json
    assert listed["changed"] == ["read"]
    assert clew("mcp", "ls").rows[0][-1] == "1 tool changed: clew mcp approve pages"
    assert clew("get", "pages://tools/hidden/read").code == 1
    assert clew("mcp", "approve", "pages", "--json").json == {"server": "pages", "approved": ["read"]}
    assert clew("get", "pages://tools/hidden/read").code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["mcp", "rm"], 2, "SERVERS"),
        (["mcp", "rm", "nobody"], 1, "no server 'nobody'. There are none"),
        (["mcp", "approve", "nobody"], 1, "`clew mcp ls` lists them"),
        (["mcp", "import", "nowhere.json"], 1, "nowhere.json does not exist"),
    ],
)
def test_a_missing_thing_is_one_line(clew: Clew, arguments: list[str], code: int, said: str) -> None:
    result = clew(*arguments)
    assert (result.code, result.out) == (code, "")
    assert said in result.err


def test_a_tool_that_is_not_there_cannot_be_approved(clew: Clew, folder: Path) -> None:
    offer(folder, notes=entry("plain"))
    clew("mcp", "import")
    assert clew("mcp", "approve", "notes", "nothing").code == 1


def test_a_file_that_cannot_be_read_is_one_line_and_ends_with_1(clew: Clew, folder: Path) -> None:
    bad = folder.parent / "bad.json"
    bad.write_text("{not json \x1b[2J")
    told = clew("mcp", "import", str(bad))
    assert (told.code, told.out, told.err) == (1, "", f"clew: {bad} is not JSON. Nothing of it was taken\n")
    result = clew("mcp", "import", str(bad), "--json")
    assert result.code == 1
    assert "\x1b" not in result.out
    assert result.json["found"] == []
    assert (result.json["skipped"][0]["path"], result.json["skipped"][0]["is_unreadable"]) == (str(bad), True)
    assert not folder.exists()


def test_valid_files_are_imported_and_the_exit_code_reports_the_others(clew: Clew, folder: Path) -> None:
    bad, missing = folder.parent / "bad.json", folder.parent / "missing.json"
    bad.write_text("{")
    good = offer(folder, notes=entry("plain"))
    result = clew("mcp", "import", str(bad), str(good), str(missing), "--no-look")
    assert (result.code, result.lines[0].startswith("+ notes")) == (1, True)
    assert [line for line in result.err.splitlines() if line.startswith("clew: ")] == [
        f"clew: {bad} is not JSON. Nothing of it was taken",
        f"clew: {missing} does not exist. Nothing of it was taken",
    ]
    assert list(json.loads((folder / "mcp.json").read_text())["mcpServers"]) == ["notes"]


def test_a_broken_file_of_another_client_does_not_fail_what_did_not_name_it(clew: Clew, folder: Path) -> None:
    offer(folder, notes=entry("plain"))
    (folder.parent / ".cursor").mkdir()
    (folder.parent / ".cursor" / "mcp.json").write_text("{")
    result = clew("mcp", "import", "--no-look")
    assert (result.code, "mcp.json is not JSON" in result.err) == (0, True)


def test_the_list_tells_why_a_server_could_not_be_looked_at_until_it_could(
    clew: Clew, folder: Path, tmp_path: Path
) -> None:
    program = tmp_path / "late-program"
    offer(folder, late={"command": str(program), "args": ["plain"]})
    assert clew("mcp", "import").code == 1
    (listed,) = clew("mcp", "ls", "--json").json
    assert (listed["known"], listed["logged_in"]) == (False, None)
    assert listed["error"].startswith("late: ")
    assert clew("mcp", "ls").rows[0][-1] == f"failed: {listed['error']}"
    assert "mcp.look.v1" not in clew("trail", "ls", "--system", "--limit", "500", "--json").out

    program.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{HOSTILE}' \"$@\"\n")
    program.chmod(0o755)
    clew("trust", "--yes")

    async def look() -> None:
        async with open_app(read_config(folder, os.environ)) as app:
            assert await (await app.workspace()).meet_servers() == {}

    asyncio.run(look())
    (listed,) = clew("mcp", "ls", "--json").json
    assert (listed["known"], listed["error"]) == (True, "")
    assert clew("mcp", "ls").rows[0][-1] == "ready"


def test_the_list_tells_why_a_server_failed_when_it_was_called_until_it_answers(
    clew: Clew, folder: Path, tmp_path: Path
) -> None:
    def write(mode: str) -> None:
        program.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{HOSTILE}' {mode}\n")
        program.chmod(0o755)
        clew("trust", "--yes")

    program = tmp_path / "moody"
    offer(folder, moody={"command": str(program), "timeout_seconds": 30})
    write("plain")
    assert clew("mcp", "import").code == 0
    write("die-call")
    assert clew("get", "moody://tools/hidden/work").code == 1
    (listed,) = clew("mcp", "ls", "--json").json
    assert listed["error"].startswith("moody: ended its program")
    assert clew("mcp", "ls").rows[0][-1] == f"failed: {listed['error']}"
    write("plain")
    assert "worked" in clew("get", "moody://tools/hidden/work").out
    assert clew("mcp", "ls").rows[0][-1] == "ready"


def test_the_list_tells_of_a_login_that_is_missing_and_of_a_variable_that_is_not_set(
    clew: Clew, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "https://far.example/mcp"
    folder.mkdir()
    servers = {
        "far": {"url": url, "auth": {"type": "oauth"}},
        "unset": {"url": "https://${FAR_HOST}/mcp", "auth": {"type": "oauth"}},
        "off": {"url": url, "auth": {"type": "oauth"}, "enabled": False},
    }
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    monkeypatch.delenv("FAR_HOST", raising=False)
    clew("trust", "--yes")
    states = [row[-1] for row in clew("mcp", "ls").rows]
    assert states[0] == "not logged in: clew mcp login far"
    assert "FAR_HOST" in states[1]
    assert states[2] == "off"
    login = json.dumps({"url": url, "tokens": {"access_token": TOKEN, "token_type": "Bearer"}})
    clew("secret", "put", "mcp-oauth-far", stdin=login.encode())
    listed = clew("mcp", "ls", "--json")
    assert [each["logged_in"] for each in listed.json] == [True, None, False]
    assert TOKEN not in listed.out


def test_servers_are_added_and_forgotten_without_writing_through_links(
    clew: Clew, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    target = tmp_path_factory.mktemp("target") / "kept"
    target.write_text("{}")
    folder.mkdir()
    (folder / "mcp.json.new").symlink_to(target)
    add = ("mcp", "add", "notes", "--", sys.executable, str(HOSTILE), "plain")
    assert clew(*add).code == 0
    assert clew("mcp", "rm", "notes").code == 0
    assert target.read_text() == "{}"
    (folder / "mcp.json").unlink()
    (folder / "mcp.json").symlink_to(target)
    refused = clew(*add)
    assert (refused.code, "leads out of" in refused.err, refused.err.count("\n")) == (1, True, 1)
    assert target.read_text() == "{}"


FLAKY = """
import runpy, sys
from pathlib import Path

if Path(sys.argv[1]).exists():
    sys.exit("the disk is full")
sys.argv = [sys.argv[2], "plain"]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.req("PLA-22")
def test_a_list_of_servers_looks_again_at_one_that_failed(clew: Clew, folder: Path, tmp_path: Path) -> None:
    empty = clew("mcp", "ls")
    assert (empty.code, empty.out, "No servers" in empty.err) == (0, "", True)
    program, broken = tmp_path / "flaky.py", tmp_path / "broken"
    program.write_text(FLAKY)
    assert clew("mcp", "add", "flaky", "--", sys.executable, str(program), str(broken), str(HOSTILE)).code == 0
    broken.touch()
    assert "the disk is full" in clew("get", "flaky://tools/hidden/work").out
    assert "failed: flaky: ended its program" in clew("mcp", "ls").rows[0][-1]
    broken.unlink()
    assert clew("mcp", "ls").rows[0][-1] == "ready"


def test_an_answer_for_a_person_names_the_guide_of_a_server_with_a_matching_tool(clew: Clew, folder: Path) -> None:
    server = Path(__file__).parents[2] / "examples" / "06_workspace" / "geo_server.py"
    (folder.parent / "tea.md").write_text("# Tea\n\nHow to make tea: boil water, wait.\n")
    assert clew("mcp", "add", "geo", "--", sys.executable, str(server)).code == 0
    assert "geo://tools/guide" in clew("ask", "city and country of an IP address").out
    assert "geo://tools/guide" not in clew("ask", "how to make tea").out
