"""What the doctor finds."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from clew.cli.checks import check_installation
from clew.config import Config
from tests.cli.conftest import Clew

Put = Callable[..., str]


def findings(clew: Clew, *arguments: str) -> dict[str, tuple[str, str]]:
    """Name → level and text of the last finding of that name."""
    return {
        each["name"]: (each["level"], f"{each['what']} → {each['todo']}")
        for each in report(clew, *arguments)["findings"]
    }


def report(clew: Clew, *arguments: str) -> Any:
    result = clew("doctor", "--json", *arguments)
    assert result.code == (0 if result.json["healthy"] else 1)
    return result.json


def test_a_healthy_trail_has_nothing_wrong(clew: Clew, put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_EMBEDDER", "wordllama")
    monkeypatch.setenv("CLEW_SERVER_PORT", "0")
    put("here")
    clew("trail", "search", "here")
    clew("token")
    found = findings(clew)
    names = [
        "python",
        "packages",
        "sqlite",
        "embedder",
        "isolation",
        "config",
        "folder",
        "keys",
        "space",
        "port",
        "trail",
        "index",
    ]
    assert list(found) == names
    assert {name: level for name, (level, _) in found.items() if level != "ok"} == {"isolation": "note"}
    assert "no code execution" in found["isolation"][1]
    assert "no damage" in found["trail"][1]
    text = clew("doctor")
    assert (text.code, text.err) == (0, "")
    assert [line.split()[1] for line in text.lines] == names


def test_where_there_is_nothing_yet_nothing_is_wrong_and_nothing_is_made(clew: Clew, folder: Path) -> None:
    found = findings(clew)
    assert (found["folder"][0], found["trail"][0]) == ("note", "note")
    assert "clew up" in found["trail"][1]
    assert not folder.exists()


@pytest.mark.req("RCR-05")
def test_a_changed_record_is_found_by_its_checksum(clew: Clew, put: Put, folder: Path) -> None:
    ids = [put("honest", context={"n": at}) for at in range(3)]
    clew("trail", "edit", ids[0], "--set", "n=7")
    connection = apsw.Connection(str(folder / "trail.db"))
    connection.execute("UPDATE breadcrumbs SET title = 'forged' WHERE id = ?", (ids[1],))
    connection.execute("UPDATE versions SET context = '{}'")
    connection.close()
    texts = [each["what"] for each in report(clew)["findings"] if each["level"] == "wrong"]
    assert len(texts) == 2
    assert any(f"{ids[1]} version 1" in text for text in texts)
    assert any(f"{ids[0]} version 1" in text for text in texts)
    result = clew("doctor")
    assert result.code == 1
    assert "put back a copy" in result.out
    assert result.err.startswith("clew: 2 of ")
    refused = clew("trail", "show", ids[1])
    assert (refused.code, "clew doctor" in refused.err) == (1, True)


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def scribble(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.seek(4096)
        opened.write(b"\xa5" * 16_384)


def replace(file: Path) -> None:
    file.write_bytes(b"this was never a database" * 100)


@pytest.mark.parametrize("damage", [cut, scribble, replace])
def test_a_damaged_file_is_reported_and_not_served(
    clew: Clew, put: Put, folder: Path, damage: Callable[[Path], None]
) -> None:
    for at in range(30):
        put(f"t{at}", context={"text": "x" * 500})
    damage(folder / "trail.db")
    level, text = findings(clew)["trail"]
    assert level == "wrong"
    assert "put back a copy" in text
    for arguments in (["trail", "ls"], ["trail", "put", "--title", "x"], ["up", "--port", "0"]):
        result = clew(*arguments)
        assert (result.code, result.out) == (1, "")
        assert "clew doctor" in result.err
        assert len(result.err.splitlines()) == 1


@pytest.mark.parametrize("name", ["keys/private.pem", "credential", "trail.db.key"])
def test_a_key_that_others_can_read_is_wrong(clew: Clew, put: Put, folder: Path, name: str) -> None:
    put("here")
    clew("token")
    clew("secret", "put", "x", stdin=b"y")
    assert findings(clew)["keys"] == ("ok", "3 private files, readable by you only → ")
    (folder / name).chmod(0o644)
    assert findings(clew)["keys"] == (
        "wrong",
        f"{folder / name} can be read by others (644) → chmod 600 {folder / name}",
    )


def test_settings_that_cannot_be_read_are_named(clew: Clew, put: Put, folder: Path) -> None:
    put("here")
    (folder / "config.toml").write_text("[server]\nport = 'eight'")
    level, text = findings(clew)["config"]
    assert level == "wrong"
    assert "server.port" in text


def test_a_port_in_use_is_noted(clew: Clew, put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    put("here")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("CLEW_SERVER_PORT", str(taken.getsockname()[1]))
        assert findings(clew)["port"][0] == "note"


def test_a_full_disk_is_told_before_it_hurts(clew: Clew, put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    put("here")
    monkeypatch.setattr("clew.cli.checks.LOW_SPACE", 1 << 80)
    level, text = findings(clew)["space"]
    assert (level, "Free some space" in text) == ("wrong", True)


def test_missing_weights_and_packages_are_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.llm.wordllama.find_spec", lambda name: None)
    monkeypatch.setattr("clew.cli.checks._is_installed", lambda name: name != "tantivy")
    found = {each.name: each for each in check_installation(Config())}
    assert (found["embedder"].level, "pip install wordllama" in found["embedder"].what) == ("wrong", True)
    assert (found["packages"].level, found["packages"].what) == ("wrong", "missing: tantivy")
