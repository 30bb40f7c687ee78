"""Logging in to a foreign server by command, with a simulated browser."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.catalog.servers.fixtures.authority import Authority, running_authority
from tests.cli.conftest import PATIENCE, Clew, start


@pytest.fixture
def authority() -> Iterator[Authority]:
    with running_authority() as one:
        yield one


@pytest.fixture
def configured(folder: Path, authority: Authority) -> Path:
    write(folder, {"url": authority.url, "auth": {"type": "oauth"}})
    return folder


def write(folder: Path, entry: dict[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"notes": entry}}))


def agree_to(*arguments: str) -> tuple[int, str, str]:
    """Run the login, open what it prints, and wait for its end."""
    running = start("mcp", "login", "notes", *arguments)
    assert running.stderr is not None
    try:
        said, address = _read_address(running)
        assert "close this window" in httpx.get(address, follow_redirects=True, timeout=PATIENCE).text
        out, err = running.communicate(timeout=PATIENCE)
    finally:
        running.kill()
        running.wait()
    return running.returncode, out, said + err


def _read_address(running: subprocess.Popen[str]) -> tuple[str, str]:
    said = ""
    assert running.stderr is not None
    for line in running.stderr:
        said += line
        if found := re.search(r"http://\S+/authorize\S+", line):
            return said, found.group()
    raise AssertionError(said)


@pytest.mark.req("PLA-24")
def test_a_person_logs_in_uses_the_server_and_logs_out(clew: Clew, configured: Path, authority: Authority) -> None:
    before = clew("get", "notes://tools/hidden/work")
    assert before.code == 1
    code, out, err = agree_to()
    assert (code, out) == (0, ""), err
    assert "Open this address to log in to notes:" in err
    assert err.endswith("Logged in to notes, which has 1 tool.\n")
    assert "worked" in clew("get", "notes://tools/hidden/work").out
    assert clew("secret", "ls").lines == ["mcp-oauth-notes"]

    gone = clew("mcp", "logout", "notes")
    assert (gone.code, gone.out, gone.err) == (0, "", "Logged out of notes.\n")
    assert clew("mcp", "logout", "notes", "--json").json == {"server": "notes", "logged_out": False}
    refused = clew("get", "notes://tools/hidden/work")
    assert refused.code == 1
    assert "clew mcp login notes" in refused.out + refused.err
    files = b"".join(path.read_bytes() for path in configured.rglob("*") if path.is_file())
    for secret in authority.issued:
        assert secret.encode() not in files
        assert secret not in out + err + refused.out + refused.err


def test_a_program_gets_json_on_its_own_stream(configured: Path) -> None:
    code, out, err = agree_to("--json", "--no-browser")
    assert (code, json.loads(out)) == (0, {"server": "notes", "tools": 1, "problem": ""})
    assert "/authorize?" in err


def test_a_login_that_nobody_agrees_to_ends_with_one_line(clew: Clew, configured: Path) -> None:
    late = clew("mcp", "login", "notes", "--wait", "1")
    assert (late.code, late.out) == (1, "")
    assert late.err.splitlines()[-1] == "clew: notes: the login was not approved in time"


@pytest.mark.parametrize("seconds", ["0", "-1", "3601", "soon"])
def test_a_time_that_cannot_be_is_wrong_usage(clew: Clew, configured: Path, seconds: str) -> None:
    assert clew("mcp", "login", "notes", f"--wait={seconds}").code == 2


def test_a_login_that_is_refused_is_told_on_one_line(clew: Clew, configured: Path, authority: Authority) -> None:
    authority.refusal = "access_denied"
    code, _, err = agree_to()
    assert code == 1
    assert err.splitlines()[-1] == "clew: notes: the login was refused (access_denied)"
    assert clew("secret", "ls").lines == []


@pytest.mark.parametrize("command", ["login", "logout"])
def test_a_server_that_is_not_there_is_reported_with_where_to_look(clew: Clew, folder: Path, command: str) -> None:
    missing = clew("mcp", command, "nowhere")
    assert missing.code == 1
    assert missing.err.splitlines()[-1].startswith("clew: no server 'nowhere'. `clew mcp ls` lists them")


def test_a_server_without_oauth_is_told_what_to_write(clew: Clew, folder: Path) -> None:
    write(folder, {"url": "http://127.0.0.1:1/mcp"})
    refused = clew("mcp", "login", "notes")
    assert refused.code == 1
    assert 'Give it a url and "auth": {"type": "oauth"} in .clew/mcp.json' in refused.err
