"""Findings of the doctor."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import apsw
import pytest

from clew.cli.checks.folder_checks import check_installation, check_isolation
from clew.config import Config
from clew.llm.providers import remote_model
from clew.tools.sandbox.levels import Isolation, Level
from tests.cli.conftest import Clew
from tests.consent import trust_all
from tests.telemetry.collector import collecting

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
        "domains",
        "sources",
        "servers",
        "trust",
        "models",
        "agents",
    ]
    assert list(found) == names
    assert {name for name, (level, _) in found.items() if level != "ok"} <= {"isolation", "models"}
    assert found["agents"][1].startswith("3 agents")
    assert "no damage" in found["trail"][1]
    text = clew("doctor")
    assert (text.code, text.err) == (0, "")
    assert [line.split()[1] for line in text.lines] == names


@pytest.mark.req("PLA-25")
def test_it_says_what_holds_tools_of_others(clew: Clew) -> None:
    found = report(clew)
    levels = {level["what"]: level["by"] for level in found["isolation"]["levels"] if level["enforced"]}
    (shown,) = [each["what"] for each in found["findings"] if each["name"] == "isolation"]
    assert {"memory", "time"} <= set(levels)
    assert all(f"{what}: {by}" in shown for what, by in levels.items())


@pytest.mark.req("PLA-25")
def test_it_tries_the_sandbox_of_the_settings(clew: Clew, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    best = report(clew)["isolation"]["wall"]
    (folder / "config.toml").write_text("[adapters]\nsandbox = 'none'\n")
    assert report(clew)["isolation"]["wall"] == best  # it waits for consent
    monkeypatch.setenv("CLEW_ADAPTERS_SANDBOX", "none")
    assert report(clew)["isolation"]["wall"] == "none"
    level, text = findings(clew)["isolation"]
    assert (level, text.endswith(" → Set adapters.sandbox to auto")) == ("note", True)
    monkeypatch.setattr("clew.tools.sandbox.sandbox.find_bubblewrap", lambda: None)
    monkeypatch.setenv("CLEW_ADAPTERS_SANDBOX", "bubblewrap")
    level, text = findings(clew)["isolation"]
    assert (level, "this machine has no bubblewrap for adapters.sandbox" in text) == ("wrong", True)


def test_an_empty_folder_has_no_problems_and_stays_empty(clew: Clew, folder: Path) -> None:
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


def test_a_full_disk_is_reported_before_it_hurts(clew: Clew, put: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    put("here")
    monkeypatch.setattr("clew.cli.checks.folder_checks.LOW_SPACE", 1 << 80)
    level, text = findings(clew)["space"]
    assert (level, "Free some space" in text) == ("wrong", True)


def test_missing_weights_and_packages_are_reported_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.llm.wordllama.find_spec", lambda name: None)
    monkeypatch.setattr("clew.cli.checks.folder_checks._is_installed", lambda name: name != "tantivy")
    found = {each.name: each for each in check_installation(Config())}
    assert (found["embedder"].level, "pip install wordllama" in found["embedder"].what) == ("wrong", True)
    assert (found["packages"].level, found["packages"].what) == ("wrong", "missing: tantivy")


BROKEN = """
[catalog]
domains = ["doctored:domain", "doctored:missing", "nowhere:domain"]

[sources.gone]
kind = "local"
root = "gone"

[sources.tables]
kind = "warehouse"
url = "sqlite:///gone.db"

[sources.pulls]
kind = "github"
repo = "a/b"
token = "NO_SUCH_TOKEN"

[sources.odd]
kind = "github"
rebo = "a/b"

[sources.whole]
kind = "local"
root = "."
domain = "shop"
"""
DOCTORED = """
from clew.catalog.domain import Domain

domain = Domain(name="shop", description="A shop")
"""


def test_problems_of_domains_sources_and_servers_are_listed_one_by_one(
    clew: Clew, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder.parent / "doctored.py").write_text(DOCTORED)
    monkeypatch.syspath_prepend(str(folder.parent))
    folder.mkdir()
    (folder / "config.toml").write_text(BROKEN)
    servers = {
        "lost": {"command": "no-such-program-at-all"},
        "far": {"url": "https://far.example/mcp", "auth": {"type": "oauth"}},
        "off": {"command": "no-such-program-at-all", "enabled": False},
        "here": {"command": "sh"},
    }
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))

    untrusted = {(each["name"], each["level"]) for each in report(clew)["findings"] if "not trusted" in each["what"]}
    assert untrusted == {("domains", "note"), ("servers", "note"), ("sources", "note"), ("trust", "note")}
    clew("trust", "--yes")
    found = [(each["name"], each["level"], each["what"]) for each in report(clew)["findings"]]
    assert ("trust", "ok", "nothing waits for your consent") in found
    told = [(name, level, what.split("/")[0]) for name, level, what in found if name in ("sources", "servers", "names")]
    assert told == [
        ("sources", "wrong", "[sources.gone] there is no "),
        ("sources", "wrong", "[sources.tables] there is no "),
        ("sources", "note", "[sources.pulls] names a secret that is not there"),
        ("sources", "wrong", "[sources.odd] github: there is no option 'rebo'"),
        ("sources", "ok", "1 of 5 sources in order"),
        ("servers", "wrong", "lost: there is no program no-such-program-at-all"),
        ("servers", "note", "far: not logged in"),
        ("servers", "ok", "1 of 3 servers in order"),
        ("names", "wrong", "two domains are named shop"),
    ]
    domains = [(level, what) for name, level, what in found if name == "domains"]
    assert [level for level, _ in domains] == ["wrong", "wrong", "ok"]
    assert "doctored:missing" in domains[0][1]
    assert "shop" in domains[2][1]
    assert not (folder / "trail.db").exists()
    assert "NO_SUCH_TOKEN" not in clew("doctor").out


def test_pending_consent_is_one_line_and_so_is_a_broken_file_of_grants(
    clew: Clew, folder: Path, trust_file: Path
) -> None:
    folder.mkdir()
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"here": {"command": "sh"}}}))
    (folder / "config.toml").write_text("[sources.pulls]\nkind = 'github'\nrepo = 'a/b'\ntoken = 'HOME'\n")
    assert findings(clew)["trust"] == (
        "note",
        "2 things not trusted yet: server here, source pulls → Look at it and agree: clew trust",
    )
    trust_file.write_text("{")
    level, text = findings(clew)["trust"]
    assert (level, "is damaged" in text, "start again with `clew trust`" in text) == ("wrong", True, True)


def test_the_last_refresh_that_failed_is_reported(clew: Clew, folder: Path) -> None:
    folder.mkdir()
    (folder / "config.toml").write_text("[sources.tables]\nkind = 'warehouse'\nurl = 'sqlite:///shop.db'\n")
    (folder.parent / "shop.db").write_bytes(b"this was never a database" * 10)
    assert clew("refresh").code == 1
    wrongs = [each["what"] for each in report(clew)["findings"] if each["level"] == "wrong"]
    assert ["[sources.tables] " in what and "not a database" in what for what in wrongs] == [True]
    assert findings(clew)["sources"] == ("ok", "0 of 1 source in order → ")


KEY = "sk-lab-0123456789abcdef0123"


class Provider(BaseHTTPRequestHandler):
    """Lists two models for whoever has the key. A refusal repeats the key, as some servers do."""

    def do_GET(self) -> None:
        given = self.headers.get("authorization", "")
        is_known = given == f"Bearer {KEY}"
        body = {"data": [{"id": "m-1"}, {"id": "m-2:latest"}]} if is_known else {"error": {"message": f"bad {given}"}}
        content = json.dumps(body).encode()
        self.send_response(200 if self.path == "/v1/models" and is_known else 401)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a provider on this machine."""
    monkeypatch.setattr(remote_model, "is_allowed", True)
    monkeypatch.setenv("LAB_KEY", KEY)
    with ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


def name_model(folder: Path, model: str, address: str) -> None:
    folder.mkdir(exist_ok=True)
    table = f'[providers.lab]\nbase_url = "{address}"\nkey = "env:LAB_KEY"\n'
    (folder / "config.toml").write_text(f'[models]\ndefault = "lab:{model}"\n{table}')
    trust_all(folder)


def test_it_asks_the_provider_of_the_default_model_whether_it_answers(clew: Clew, folder: Path, provider: str) -> None:
    for model in ("m-1", "m-2"):
        name_model(folder, model, provider)
        assert findings(clew)["models"] == ("ok", f"lab:{model} by default; lab answers → ")
    name_model(folder, "m-3", provider)
    level, text = findings(clew)["models"]
    assert (level, text) == ("note", "lab does not list m-3 → Load it there, or name one of m-1, m-2:latest")


def test_a_model_that_cannot_be_reached_or_whose_key_is_refused_is_not_ok(
    clew: Clew, folder: Path, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
    name_model(folder, "m-1", address)
    level, text = findings(clew)["models"]
    assert level == "note"
    assert text.startswith(f"lab cannot be reached at {address} → Check that it runs")
    name_model(folder, "m-1", provider)
    monkeypatch.setenv("LAB_KEY", "sk-lab-9999999999abcdef9999")
    level, text = findings(clew)["models"]
    assert (level, "lab does not accept the key" in text, "9999" in text) == ("wrong", True, False)


@pytest.mark.req("PLA-25")
def test_the_limits_of_a_wall_are_no_ok() -> None:
    level = Level(what="filesystem", enforced=True, by="Landlock")
    languages = ("python", "javascript", "typescript")
    found = check_isolation(Isolation(wall="landlock", levels=(level,), languages=languages, limits=("it leaks",)))
    assert (found.level, found.todo) == ("note", "Install bubblewrap, which has no such limits")
    assert found.what.endswith("; limits: it leaks")


def test_it_asks_the_collector_of_the_environment_whether_it_answers(
    clew: Clew, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "telemetry" not in findings(clew), "nothing is said where none is named"
    with collecting() as (collector, address):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{address}/v1/traces")
        assert findings(clew)["telemetry"] == ("ok", f"the collector at {address}/v1/traces answers → ")
        collector.status = 401
        level, text = findings(clew)["telemetry"]
        assert (level, text.startswith(f"the collector at {address}/v1/traces answers 401 → ")) == ("wrong", True)
    level, text = findings(clew)["telemetry"]
    assert (level, text.startswith(f"the collector at {address}/v1/traces does not answer (")) == ("wrong", True)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    assert findings(clew)["telemetry"][1].startswith("OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not spoken")
