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
OLD, NEW, EXTENSION = "2025-11-25", "2026-07-28", "extension"

AUTH = (
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
)
NEW_AUTH = (
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
    "auth/authorization-server-migration",
    "auth/iss-supported",
    "auth/iss-not-advertised",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
)
SCENARIOS = {
    OLD: (
        "initialize",
        "tools_call",
        "elicitation-sep1034-client-defaults",
        "sse-retry",
        "json-schema-2020-12-preservation",
        *AUTH,
    ),
    NEW: (
        "tools_call",
        "request-metadata",
        "sep-2322-client-request-state",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
        "json-schema-2020-12-preservation",
        *AUTH,
        *NEW_AUTH,
    ),
    EXTENSION: ("auth/client-credentials-basic", "auth/client-credentials-jwt"),
}

NOT_OFFERED = {
    "auth/enterprise-managed-authorization": "identity assertions of a company's own login",
    "auth/wif-jwt-bearer": "assertions of a workload's platform as the grant",
    "auth/dpop": "tokens bound to a key",
    "auth/dpop-nonce": "tokens bound to a key",
}
"""Scenarios of optional extensions that the client does not declare, and what it would have to have."""

CASES = [pytest.param(era, name, id=f"{era}-{name}") for era, names in SCENARIOS.items() for name in names]


@pytest.mark.parametrize(("era", "scenario"), CASES)
async def test_the_suite_finds_nothing_wrong(era: str, scenario: str, tmp_path: Path, record_property: Any) -> None:
    command = shlex.join([sys.executable, "-m", "tests.adapters.mcp.conformance_client"])
    arguments = ["client", "--command", command, "--scenario", scenario, "-o", str(tmp_path)]
    arguments += ["--spec-version", era] if era != EXTENSION else []
    code, out, err = await run_node(str(SUITE / "dist" / "index.js"), *arguments, cwd=ROOT)
    (file,) = tmp_path.rglob("checks.json")
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
def test_every_scenario_that_an_era_requires_is_run(era: str) -> None:
    find_node()
    suite = yaml.safe_load((SUITE / "requirements" / f"{era}.yaml").read_text())
    assert [each for each in suite["client"] if each not in SCENARIOS[era]] == []
    unscored = {each["scenario"] for each in suite["not_scored"] if each["leg"] == "client"}
    assert unscored - {*SCENARIOS[era], *SCENARIOS[EXTENSION]} == set(NOT_OFFERED)
