"""The conformance suite of the protocol's authors, scenario by scenario, on both eras.

General scenarios run against a server over a real catalog; those that need tools and prompts of given names run against
a fixture behind the same application.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache

import pytest
import yaml

from tests.adapters.mcp.node import ROOT, SUITE, Check, find_node, read_checks, run_node

Judge = Callable[[str, str], dict[str, list[Check]]]
OLD, NEW = "2025-11-25", "2026-07-28"

REAL = {
    OLD: (
        "server-initialize",
        "server-session-lifecycle",
        "ping",
        "tools-list",
        "server-sse-multiple-streams",
        "resources-list",
        "dns-rebinding-protection",
    ),
    NEW: (
        "server-stateless",
        "tools-list",
        "server-sse-multiple-streams",
        "resources-list",
        "sep-2164-resource-not-found",
        "dns-rebinding-protection",
        "caching",
        "http-header-validation",
        "input-required-result-unsupported-methods",
    ),
}

_ON_BOTH = (
    "completion-complete",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "json-schema-2020-12",
    "server-sse-multiple-streams",
    "resources-list",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
    "dns-rebinding-protection",
)

FIXTURE = {
    OLD: (
        *_ON_BOTH,
        "server-initialize",
        "server-session-lifecycle",
        "ping",
        "logging-set-level",
        "tools-call-with-logging",
        "tools-call-sampling",
        "tools-call-elicitation",
        "elicitation-sep1034-defaults",
        "elicitation-sep1330-enums",
        "resources-subscribe",
        "resources-unsubscribe",
    ),
    NEW: (
        *_ON_BOTH,
        "server-stateless",
        "sep-2164-resource-not-found",
        "caching",
        "http-header-validation",
        "http-custom-header-server-validation",
        "input-required-result-basic-elicitation",
        "input-required-result-basic-sampling",
        "input-required-result-basic-list-roots",
        "input-required-result-request-state",
        "input-required-result-multiple-input-requests",
        "input-required-result-multi-round",
        "input-required-result-missing-input-response",
        "input-required-result-non-tool-request",
        "input-required-result-result-type",
        "input-required-result-unsupported-methods",
        "input-required-result-tampered-state",
        "input-required-result-capability-check",
        "input-required-result-ignore-extra-params",
        "input-required-result-validate-input",
    ),
}

ABSENT = {
    "caching": {"sep-2549-prompts-list-caching-hints"},
    "server-stateless": {
        "sep-2575-server-rejects-undeclared-capability",
        "sep-2575-missing-capability-http-400",
        "sep-2575-http-server-no-independent-requests-on-stream",
        "sep-2575-server-no-log-without-loglevel",
    },
}
"""Checks by scenario that the suite reports as failed on the real server, since they ask for prompts or for a
diagnostic tool, which a server of exactly two tools does not have. They are counted apart; the fixture passes them."""

CASES = [
    pytest.param(kind, era, scenario, id=f"{kind}-{era}-{scenario}")
    for kind, scenarios in (("real", REAL), ("fixture", FIXTURE))
    for era, names in scenarios.items()
    for scenario in names
]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The addresses of both servers."""
    find_node()
    started: dict[str, subprocess.Popen[str]] = {}
    for kind in ("real", "fixture"):
        program = (sys.executable, "-m", "tests.adapters.mcp.conformance_server", kind)
        command = (*program, str(tmp_path_factory.mktemp(kind)))
        pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
        started[kind] = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=nowhere, text=True)
    try:
        yield {kind: each.stdout.readline().strip() for kind, each in started.items() if each.stdout}
    finally:
        for each in started.values():
            each.communicate()


@pytest.fixture(scope="module")
def judge(servers: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """What the suite finds on a server, scenario by scenario. All scenarios of an era are run at once."""

    @cache
    def run(kind: str, era: str) -> dict[str, list[Check]]:
        folder = tmp_path_factory.mktemp("suite")
        options = ("--suite", "all", "--spec-version", era, "-o", str(folder))
        command = run_node(str(SUITE / "dist" / "index.js"), "server", "--url", servers[kind], *options, timeout=300)
        _, out, err = asyncio.run(command)
        found = read_checks(folder)
        assert set((REAL if kind == "real" else FIXTURE)[era]) <= set(found), out + err
        return found

    return run


@pytest.mark.req("ERN-07")
@pytest.mark.parametrize(("kind", "era", "scenario"), CASES)
def test_the_suite_finds_nothing_wrong(
    judge: Judge, kind: str, era: str, scenario: str, record_property: Callable[[str, object], None]
) -> None:
    checks = judge(kind, era)[scenario]
    passed = [each["id"] for each in checks if each["status"] == "SUCCESS"]
    unwell = [each for each in checks if each["status"] in ("FAILURE", "WARNING")]
    expected = ABSENT.get(scenario, set()) if kind == "real" else set()
    absent = [each["id"] for each in unwell if each["id"] in expected]
    failed = [each for each in unwell if each["id"] not in expected]
    for name, found in (("passed", passed), ("failed", failed), ("absent", absent)):
        record_property(name, len(found))
    print(f"{kind} {era} {scenario}: {len(passed)} passed, {len(failed)} failed, {len(absent)} need what is absent")
    assert passed
    assert failed == []
    assert sorted(absent) == sorted(expected)


@pytest.mark.parametrize("era", [OLD, NEW])
def test_every_scenario_that_an_era_requires_is_run(era: str) -> None:
    find_node()
    required = yaml.safe_load((SUITE / "requirements" / f"{era}.yaml").read_text())["server"]
    assert set(required) - set(FIXTURE[era]) == set()
