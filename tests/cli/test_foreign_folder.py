"""A cloned folder that brings keys, an address, a trail elsewhere or a link: Clew uses none of it without consent."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.conftest import PATIENCE, Clew, start
from tests.cli.test_doctor import findings
from tests.knowledge.code.repositories import git
from tests.servers import private_key


def plant(folder: Path, settings: str = "", *, keys: bool = True) -> None:
    """The files that an attacker commits to a repository."""
    (folder / "keys").mkdir(parents=True, exist_ok=True)
    if keys:
        (folder / "keys" / "private.pem").write_bytes(private_key())
        (folder / "credential").write_text("known-to-the-attacker-0123456789\n")
    (folder / "config.toml").write_text(settings)


def served(*arguments: str, **headers: str) -> tuple[dict[str, Any], httpx.Response]:
    with start("up", "--port", "0", "--json", *arguments) as process:
        assert process.stdout is not None
        try:
            serving = json.loads(process.stdout.readline())
            answer = httpx.get(f"http://127.0.0.1:{serving['url'].rsplit(':', 1)[1]}/breadcrumbs", headers=headers)
            return serving, answer
        finally:
            process.kill()


@pytest.mark.req("RCR-17")
@pytest.mark.parametrize("name", ["keys/private.pem", "credential"])
def test_keys_that_the_folder_brings_are_refused_until_you_agree(clew: Clew, folder: Path, name: str) -> None:
    plant(folder)
    kept = "credential" if name != "credential" else "keys/private.pem"
    (folder / kept).unlink()
    for command in (("token",), ("up", "--port", "0")):
        result = clew(*command)
        assert result.code == 1
        assert f"{name} was not made by you" in result.err
        assert f"clew trust {name}" in result.err
    waiting = clew("trust", "--json").json["awaiting"]
    assert (name, "keys") in [(each["name"], each["kind"]) for each in waiting]
    assert clew("trust", name, "--yes").code == 0
    assert clew("token").code == 0


@pytest.mark.req("RCR-17")
def test_no_key_is_made_where_git_tracks_one(clew: Clew, folder: Path) -> None:
    plant(folder)
    git(folder, "init", "-q")
    git(folder, "add", "--force", "credential", "keys/private.pem")
    git(folder, "commit", "-q", "-m", "begin")
    level, text = findings(clew)["keys"]
    assert level == "wrong"
    assert text.startswith("git tracks credential, keys/private.pem")
    for name in ("keys/private.pem", "credential"):
        (folder / name).unlink()
    refused = clew("token")
    assert refused.code == 1
    assert f"git tracks {folder / 'keys/private.pem'}" in refused.err
    git(folder, "rm", "-q", "--cached", "credential", "keys/private.pem")
    assert clew("token").code == 0
    assert findings(clew)["keys"][0] == "ok"


def test_keys_that_clew_made_here_need_no_consent_but_those_of_a_copied_folder_do(
    clew: Clew, folder: Path, tmp_path: Path
) -> None:
    folder.mkdir(exist_ok=True)
    assert clew("token").code == 0
    assert clew("token").code == 0
    copy = tmp_path / "copy" / ".clew"
    shutil.copytree(folder, copy)
    assert "was not made by you" in clew("token", "--folder", str(copy)).err


OWN_FILES = (
    *("trail.db", "trail.db-wal", "trail.db-shm", "trail.db-journal", "trail.db-index", "trail.db-index.lock"),
    *("code.db", "code.db-wal", "code.db.lock", "keys", "keys/private.pem", "credential", "edits", "trail.db-index/x"),
)


@pytest.mark.req("RCR-17")
@pytest.mark.parametrize("name", OWN_FILES)
def test_a_file_that_clew_writes_is_never_a_link(clew: Clew, folder: Path, tmp_path: Path, name: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    if is_folder := name in ("keys", "trail.db-index", "edits"):
        elsewhere.mkdir()
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).symlink_to(elsewhere)
    for command in (("token",), ("trail", "put", "--title", "x"), ("ask", "what is x")):
        result = clew(*command)
        assert (result.code, "is a link" in result.err, "Remove it" in result.err) == (1, True, True), result.err
    assert list(elsewhere.iterdir()) == [] if is_folder else not elsewhere.exists()


@pytest.mark.req("RCR-17")
def test_a_folder_that_is_a_link_to_another_trail_is_neither_read_nor_written(
    clew: Clew, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other") / ".clew"
    assert clew("trail", "put", "--title", "private", "--folder", str(other)).code == 0
    folder.symlink_to(other)
    for command in (("trail", "put", "--title", "x"), ("trail", "ls"), ("ask", "what is private"), ("token",)):
        result = clew(*command)
        assert (result.code, "leads out of" in result.err) == (1, True), result.err
    assert clew("trail", "ls", "--folder", str(other), "--json").out.count('"title"') == 1


def test_a_file_that_clew_writes_is_never_a_pipe(clew: Clew, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    os.mkfifo(folder / "credential")
    result = clew("token")
    assert (result.code, "is not a regular file" in result.err) == (1, True)
    assert "is not a regular file" in clew("doctor").out


@pytest.mark.req("RCR-17")
def test_an_address_for_other_machines_waits_for_consent(clew: Clew, folder: Path) -> None:
    plant(folder, '[server]\nhost = "0.0.0.0"\nhosts = ["evil.example"]\n', keys=False)
    serving, answer = served()
    assert serving["url"].startswith("http://127.0.0.1:")
    assert answer.status_code == 401
    assert served(Host="evil.example")[1].status_code == 421
    waiting = {each["name"] for each in clew("trust", "--json").json["awaiting"]}
    assert {"server.host", "server.hosts"} <= waiting
    assert clew("trust", "server.host", "server.hosts", "--yes").code == 0
    serving, answer = served(Host="evil.example")
    assert serving["url"].startswith("http://0.0.0.0:")
    assert answer.status_code == 401


def test_an_address_on_the_command_line_is_the_users_own(clew: Clew, folder: Path) -> None:
    plant(folder, '[server]\nhost = "0.0.0.0"\n', keys=False)
    assert served("--host", "0.0.0.0")[0]["url"].startswith("http://0.0.0.0:")


def test_a_request_for_another_host_is_refused(folder: Path) -> None:
    with start("up", "--port", "0", "--json") as process:
        assert process.stdout is not None
        try:
            url = json.loads(process.stdout.readline())["url"]
            for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "[::2]", "", "10.0.0.1"):
                for path in ("/breadcrumbs", "/auth/token", "/docs", "/health"):
                    answer = httpx.get(f"{url}{path}", headers={"Host": host}, timeout=PATIENCE)
                    assert (answer.status_code, answer.json()["error"]["code"]) == (421, "foreign_host"), host
            assert httpx.get(url.replace("127.0.0.1", "localhost") + "/health", timeout=PATIENCE).status_code == 200
        finally:
            process.kill()


def test_a_trail_elsewhere_waits_for_consent_and_is_not_written(clew: Clew, folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "other" / "trail.db"
    elsewhere.parent.mkdir()
    plant(folder, f'trail = "sqlite://{elsewhere}"\n', keys=False)
    result = clew("trail", "put", "--title", "x")
    assert (result.code, "puts the trail outside" in result.err, elsewhere.exists()) == (1, True, False)
    assert [each["name"] for each in clew("trust", "--json").json["awaiting"]] == ["trail"]
    assert clew("trust", "trail", "--yes").code == 0
    assert clew("trail", "put", "--title", "x").code == 0
    assert elsewhere.exists()


def test_a_trail_on_a_server_waits_for_consent_and_its_password_is_not_shown(clew: Clew, folder: Path) -> None:
    plant(folder, 'trail = "postgresql://me:hunter2horse9@db.example/clew?password=qu3rypass77"\n', keys=False)
    result = clew("trail", "put", "--title", "x")
    assert (result.code, "puts the trail outside" in result.err) == (1, True)
    waiting = clew("trust", "--json")
    assert "trail" in [each["name"] for each in waiting.json["awaiting"]]
    shown = result.err + waiting.out + clew("trust").out
    assert "hunter2horse9" not in shown
    assert "qu3rypass77" not in shown


def test_an_empty_trail_file_is_said(clew: Clew, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "trail.db").touch()
    assert clew("trail", "put", "--title", "x").code == 0
    assert "trail.db is empty (0 bytes): a new trail starts in it" in caplog.text
    caplog.clear()
    assert clew("trail", "put", "--title", "y").code == 0
    assert "0 bytes" not in caplog.text
