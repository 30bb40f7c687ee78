"""The client side of the conformance suite, against the connection by which the registry reaches foreign servers."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.adapters.mcp.node import MODULES, ROOT, find_node, run_node

SUITE = MODULES / "@modelcontextprotocol" / "conformance"
OLD, NEW = "2025-11-25", "2026-07-28"

SCENARIOS = {
    OLD: ("initialize", "tools_call", "sse-retry", "json-schema-2020-12-preservation"),
    NEW: (
        "tools_call",
        "request-metadata",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
        "json-schema-2020-12-preservation",
    ),
}

NOT_OFFERED = ("auth/", "elicitation-", "sep-2322-client-request-state")
"""Scenarios of what the client does not declare: asking the user for input, and an OAuth flow of its own. A token comes
from the configuration or from the hook `on_auth`."""

CASES = [pytest.param(era, name, id=f"{era}-{name}") for era, names in SCENARIOS.items() for name in names]


@pytest.mark.parametrize(("era", "scenario"), CASES)
async def test_the_suite_finds_nothing_wrong(era: str, scenario: str, tmp_path: Path, record_property: Any) -> None:
    command = shlex.join([sys.executable, "-m", "tests.adapters.mcp.conformance_client"])
    arguments = ["client", "--command", command, "--scenario", scenario, "--spec-version", era, "-o", str(tmp_path)]
    code, out, err = await run_node(str(SUITE / "dist" / "index.js"), *arguments, cwd=ROOT)
    (file,) = tmp_path.glob("*/checks.json")
    checks = json.loads(file.read_text())
    passed = [each["id"] for each in checks if each["status"] == "SUCCESS"]
    failed = [each for each in checks if each["status"] in ("FAILURE", "WARNING")]
    record_property("passed", len(passed))
    record_property("failed", len(failed))
    print(f"client {era} {scenario}: {len(passed)} passed, {len(failed)} failed")
    assert passed, out + err
    assert failed == []
    assert code == 0, out + err


@pytest.mark.parametrize("era", [OLD, NEW])
def test_every_scenario_that_an_era_requires_is_run_or_known_not_to_apply(era: str) -> None:
    find_node()
    required = yaml.safe_load((SUITE / "requirements" / f"{era}.yaml").read_text())["client"]
    assert [each for each in required if each not in SCENARIOS[era] and not each.startswith(NOT_OFFERED)] == []
