"""The handshake of `clew mcp` is answered before the SDK is loaded, and once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clew.adapters.mcp.handshake import MAX_LINE, NOT_OPEN, VERSIONS, initialize_result, plain_initialize
from tests.servers import PATIENCE

CLIENT = {"name": "test", "version": "1"}
PING = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
HEAVY = ("mcp", "mcp_types", "pydantic", "anyio", "starlette", "numpy", "apsw", "clew.catalog", "clew.knowledge")


def initialize(
    version: str = VERSIONS[-1], *, id: Any = 0, client: Any = CLIENT, **capabilities: Any
) -> dict[str, Any]:
    params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": client}
    return {"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CLEW_FOLDER", raising=False)
    monkeypatch.setenv("CLEW_EMBEDDER", "hash")
    (tmp_path / "shop").mkdir()
    return tmp_path / "shop"


def talk(folder: Path, *messages: dict[str, Any]) -> list[dict[str, Any]]:
    """Send messages to `clew mcp` in a folder, close its input, and return its answers."""
    done = subprocess.run(
        [sys.executable, "-m", "clew", "mcp"],
        input="".join(f"{json.dumps(each)}\n" for each in messages),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=folder,
        check=True,
    )
    assert done.stderr == ""
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_answering_the_handshake_loads_no_heavy_library() -> None:
    program = "import sys, clew.cli.servers.mcp, clew.adapters.mcp.handshake, clew.adapters.mcp.sdk\n"
    program += f"sys.exit(str([name for name in {HEAVY} if name in sys.modules] or ''))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr.strip()) == (1, "")


@pytest.mark.req("BEY-11")
@pytest.mark.parametrize("version", VERSIONS)
def test_the_answer_is_the_one_of_the_sdk(folder: Path, version: str) -> None:
    plain = initialize(version, id="a", roots={"listChanged": True})
    unusual = initialize(version, id="a", roots={"listChanged": True}, client=CLIENT | {"icons": []})
    assert plain_initialize(json.dumps(plain).encode()) == plain
    assert plain_initialize(json.dumps(unusual).encode()) is None
    expected = [{"jsonrpc": "2.0", "id": "a", "result": initialize_result(version)}]
    assert talk(folder, unusual) == expected, "by the SDK"
    if version == VERSIONS[-1]:
        assert talk(folder, plain) == expected, "before the SDK is loaded"


def test_the_session_goes_on_after_an_early_answer(folder: Path) -> None:
    first, second = talk(folder, initialize(), READY, PING)
    assert first["result"]["instructions"] == NOT_OPEN
    assert second == {"jsonrpc": "2.0", "id": 7, "result": {}}


def test_a_client_that_says_nothing_ends_it(folder: Path) -> None:
    assert talk(folder) == []


@pytest.mark.parametrize(
    "message",
    [
        PING,
        READY,
        initialize("2026-07-28"),
        initialize("1.0"),
        initialize(id=None),
        initialize(id=True),
        initialize(client=[]),
        initialize(client={"name": "test"}),
        initialize(roots=True),
        initialize(roots={"listChanged": {}}),
        initialize(sampling={"tools": 1}),
        initialize(listChanged=True),
        initialize() | {"extra": 1},
        initialize() | {"params": []},
    ],
    ids=str,
)
def test_anything_else_is_left_to_the_sdk(message: dict[str, Any]) -> None:
    assert plain_initialize(json.dumps(message).encode()) is None


@pytest.mark.parametrize("line", [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b" " * (MAX_LINE + 1)], ids=len)
def test_a_line_that_is_no_request_is_left_to_the_sdk(line: bytes) -> None:
    assert plain_initialize(line) is None


@pytest.mark.parametrize(
    "capabilities",
    [
        {},
        {"roots": {}},
        {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {"form": {}, "url": {}}},
        {"tasks": {"list": {}, "cancel": {}, "requests": {"sampling": {"createMessage": {}}}}},
    ],
    ids=str,
)
def test_usual_clients_are_answered_at_once(capabilities: dict[str, Any]) -> None:
    assert plain_initialize(json.dumps(initialize(**capabilities)).encode()) is not None


def test_a_byte_order_mark_and_deep_capabilities_are_left_to_the_sdk() -> None:
    line = json.dumps(initialize()).encode()
    assert plain_initialize(line) is not None
    assert plain_initialize(b"\xef\xbb\xbf" + line) is None
    deep: dict[str, Any] = {}
    for _ in range(450):
        deep = {"x": deep}
    message = initialize()
    message["params"] = message["params"] | {"capabilities": deep}
    assert plain_initialize(json.dumps(message).encode()) is None
