"""Clients of the TypeScript SDKs, for the handshake era and for the present protocol, use the server."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from clew.access import Principal
from tests.adapters.mcp.catalogs import ME, Gate, fraud_domain, open_catalog, serve_catalog
from tests.adapters.mcp.node import ROOT, find_node, run_node
from tests.servers import PATIENCE

SCRIPT = str(Path(__file__).parent / "clients" / "drive.mjs")
CLIENTS = pytest.mark.parametrize(("sdk", "era"), [("v1", "legacy"), ("v2", "legacy"), ("v2", "2026-07-28")])


def check(seen: dict[str, Any]) -> None:
    assert seen["tools"] == ["ask", "get"]
    assert "fraud://tools/investigate" in seen["asked"]
    # These clients drop a notification that arrives in one read with the answer.
    assert seen["progress"] == [1, 2, 3][: len(seen["progress"])]
    assert seen["summary"] == {"total": 3, "success": 2, "failed": 1}
    assert seen["cancelled"] == "yes"
    assert seen["wrong"]["isError"]
    assert "routes" in seen["wrong"]["text"]
    assert seen["resources"] == ["fraud://resources/handbook"]
    assert "Ask for the receipt first. 日本語 \U0001f9f5" in seen["read"]
    assert seen["absent"] in (-32002, -32602)
    assert "(fraud)" in seen["instructions"]


@CLIENTS
async def test_over_http(tmp_path: Path, sdk: str, era: str) -> None:
    await asyncio.to_thread(find_node)
    gate = Gate()
    async with open_catalog(tmp_path, fraud_domain(gate)) as catalog, serve_catalog(tmp_path, catalog) as door:
        token = door.keys.issue(Principal(owner_id=ME.owner_id, agent_id="typescript")).token
        code, out, err = await run_node(SCRIPT, sdk, era, "http", door.url, token)
        assert code == 0, err
        await asyncio.wait_for(gate.cancelled.wait(), PATIENCE)
    check(json.loads(out))


@CLIENTS
async def test_over_stdio(tmp_path: Path, sdk: str, era: str) -> None:
    await asyncio.to_thread(find_node)
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import runpy; sys.argv[1:] = [{str(tmp_path)!r}]"
    program += "; runpy.run_module('tests.adapters.mcp.stdio_server', run_name='__main__')"
    code, out, err = await run_node(SCRIPT, sdk, era, "stdio", sys.executable, "-c", program)
    assert code == 0, err
    assert "cancelled" in err
    check(json.loads(out))
