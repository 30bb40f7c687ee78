"""The client side of the conformance suite, against the connection by which the registry reaches foreign servers."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.adapters.mcp.conformance_client import Client
from tests.adapters.mcp.node import ROOT, SUITE, Check, find_node, read_checks, run_node

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
"""Scenarios of optional extensions that the client does not declare, each with the required feature."""

REFUSED = (
    "auth/scope-retry-limit",
    "auth/resource-mismatch",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
)
"""Scenarios with an untrustworthy server, or one that always asks for more: the client must end with an error."""


async def run_suite(era: str, folder: Path) -> dict[str, str]:
    """Run all scenarios of an era; how the client ended in each."""
    client = Client()
    which = ("--suite", "extensions") if era == EXTENSION else ("--suite", "all", "--spec-version", era)
    async with client.listening() as port:
        relay = shlex.join([sys.executable, "-S", str(Path(__file__).with_name("conformance_relay.py")), str(port)])
        options = ("client", "--command", relay, *which, "--timeout", "300000", "-o", str(folder))
        _, out, err = await run_node(str(SUITE / "dist" / "index.js"), *options, cwd=ROOT, timeout=300)
    assert set(SCENARIOS[era]) <= set(client.ended), out + err
    return client.ended


@pytest.mark.parametrize("era", SCENARIOS)
def test_the_suite_finds_nothing_wrong(
    era: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    ended = asyncio.run(run_suite(era, tmp_path))
    found, number = read_checks(tmp_path), 0
    problems: dict[str, list[Check]] = {}
    for scenario in SCENARIOS[era]:
        passed = [each for each in found[scenario] if each["status"] == "SUCCESS"]
        failed = [each for each in found[scenario] if each["status"] in ("FAILURE", "WARNING")]
        assert passed, scenario
        assert bool(ended[scenario]) == (scenario in REFUSED), f"{scenario}: {ended[scenario]}"
        problems |= {scenario: failed} if failed else {}
        number += len(passed)
    record_property("passed", number)
    print(f"client {era}, {len(SCENARIOS[era])} scenarios: {number} checks passed")
    assert problems == {}


@pytest.mark.parametrize("era", [OLD, NEW])
def test_every_scenario_that_an_era_requires_is_run(era: str) -> None:
    find_node()
    suite = yaml.safe_load((SUITE / "requirements" / f"{era}.yaml").read_text())
    assert [each for each in suite["client"] if each not in SCENARIOS[era]] == []
    unscored = {each["scenario"] for each in suite["not_scored"] if each["leg"] == "client"}
    assert unscored - {*SCENARIOS[era], *SCENARIOS[EXTENSION]} == set(NOT_OFFERED)
