"""Test results from the reports of test runners: the number of tests, and the failed ones with their messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from clew.team.evidence.check_commands import Report
from clew.team.evidence.receipts import TestCounts, shorten
from clew.team.messages.payloads import TestFailure

MAX_FAILURES = 50
MAX_REPORT = 30_000_000
MAX_TRACE = 4_000
_EXPECTED = re.compile(r"(?im)^E?\s*(?:expected|wanted)\s*[:=]\s*(?P<value>.+)$")
_ACTUAL = re.compile(r"(?im)^E?\s*(?:actual|received|got)\s*[:=]\s*(?P<value>.+)$")
_COMPARED = re.compile(r"(?m)^E?\s*(?:AssertionError:\s*)?assert (?P<actual>.+?) == (?P<expected>.+)$")
_UNITTEST = re.compile(
    r"^(?P<name>\w+) \((?P<owner>[\w.]+)\).*? \.\.\. (?P<state>ok|FAIL|ERROR|skipped|expected failure)"
)
_CARGO = re.compile(r"^test (?P<name>\S+)(?: - should panic)? \.\.\. (?P<state>ok|FAILED|ignored)")
_CARGO_PLAN = re.compile(r"(?m)^running (?P<count>\d+) tests?$")
_UNITTEST_END = re.compile(r"(?m)^Ran (?P<count>\d+) tests? in .*(?:\n+(?:OK|FAILED)\b)")
_TAP = re.compile(r"^\s*(?P<bad>not )?ok\b\s*\d*\s*-?\s*(?P<name>[^#]*)(?:#\s*(?P<mark>SKIP|TODO)\b)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TestOutcome:
    """One test of a report: passed, failed or skipped."""

    __test__ = False

    name: str
    state: str
    file: str = ""
    message: str = ""
    trace: str = ""


class ParsedReport(msgspec.Struct, frozen=True, kw_only=True):
    """Counts and failures of a run. Without a readable report nothing is counted. `problem` says why the report cannot
    be trusted."""

    counts: TestCounts
    failures: tuple[TestFailure, ...] = ()
    problem: str = ""


def parse_report(form: Report, report: Path, stdout: str, stderr: str) -> ParsedReport:
    """Read the report of a test run, from the report file or from the output, depending on `form`."""
    outcomes: list[TestOutcome] | None
    announced: int | None = None
    match form:
        case "jest":
            outcomes = _read_jest(report)
        case "mocha":
            outcomes = _read_mocha(stdout)
        case "go":
            outcomes = _read_go(stdout)
        case "cargo":
            outcomes = _by_lines(stdout, _CARGO, {"ok": "passed", "FAILED": "failed", "ignored": "skipped"})
            announced = sum(int(match["count"]) for match in _CARGO_PLAN.finditer(stdout))
        case "unittest":
            states = {"ok": "passed", "FAIL": "failed", "ERROR": "failed", "expected failure": "skipped"}
            outcomes = _by_lines(stderr, _UNITTEST, states)
            announced = sum(int(match["count"]) for match in _UNITTEST_END.finditer(stderr))
        case "tap":
            outcomes = _read_tap(stdout)
        case _:
            return ParsedReport(counts=TestCounts())
    if outcomes is None:
        return ParsedReport(counts=TestCounts(), problem="" if form == "tap" else "it left no report of its tests")
    found = _summarise(outcomes)
    if announced is not None and announced != len(outcomes):
        problem = f"it counts {announced} tests and reports {len(outcomes)}"
        return msgspec.structs.replace(found, problem=problem)
    return found


def parse_summary(summary: dict[str, Any] | None) -> ParsedReport:
    """Read the summary that the host of the tests printed."""
    if summary is None:
        return ParsedReport(counts=TestCounts(), problem="the process that records the tests was ended")
    states = summary["states"]
    passed, failed, skipped = (int(states[name]) for name in ("passed", "failed", "skipped"))
    failures = [
        TestOutcome(
            name=each["test"].removesuffix(".py").replace(".py::", ".").replace("::", ".").replace("/", "."),
            state="failed",
            file=each["file"],
            message=each["message"],
            trace=each["trace"],
        )
        for each in summary["failures"]
    ]
    return ParsedReport(
        counts=TestCounts(run=passed + failed, passed=passed, failed=failed, skipped=skipped, is_counted=True),
        failures=tuple(map(_failure, failures)),
        problem="; ".join(summary["problems"]),
    )


def _summarise(outcomes: Iterable[TestOutcome]) -> ParsedReport:
    listed = list(outcomes)
    states = [each.state for each in listed]
    passed, failed, skipped = (states.count(each) for each in ("passed", "failed", "skipped"))
    counts = TestCounts(run=passed + failed, passed=passed, failed=failed, skipped=skipped, is_counted=True)
    failures = [_failure(each) for each in listed if each.state == "failed"]
    return ParsedReport(counts=counts, failures=tuple(failures[:MAX_FAILURES]))


def _failure(outcome: TestOutcome) -> TestFailure:
    text = f"{outcome.message}\n{outcome.trace}"
    compared, expected, actual = _COMPARED.search(text), _EXPECTED.search(text), _ACTUAL.search(text)
    return TestFailure(
        test_name=outcome.name,
        file=outcome.file,
        message=shorten(outcome.message),
        expected=shorten(expected["value"] if expected else compared["expected"] if compared else "", 300),
        actual=shorten(actual["value"] if actual else compared["actual"] if compared else "", 300),
        stack_trace=outcome.trace[-MAX_TRACE:],
    )


def _read_text(report: Path) -> str | None:
    try:
        return report.read_text(errors="replace") if report.stat().st_size <= MAX_REPORT else None
    except OSError:
        return None


def _read_jest(report: Path) -> list[TestOutcome] | None:
    parsed = _parse_json(_read_text(report) or "")
    if parsed is None:
        return None
    states = {"passed": "passed", "failed": "failed"}
    found = []
    for file in parsed.get("testResults", ()):
        cases = file.get("assertionResults") or ()
        if not cases and file.get("status") == "failed":
            name = str(file.get("name", ""))
            found.append(TestOutcome(name=name, state="failed", file=name, message=str(file.get("message", ""))))
        for each in cases:
            trace = "\n".join(map(str, each.get("failureMessages") or ()))
            found.append(
                TestOutcome(
                    name=str(each.get("fullName") or each.get("title")),
                    state=states.get(str(each.get("status")), "skipped"),
                    file=str(file.get("name", "")),
                    message=trace.partition("\n")[0],
                    trace=trace,
                )
            )
    return found


def _read_mocha(stdout: str) -> list[TestOutcome] | None:
    parsed = _parse_json(stdout[stdout.find("{") :])
    if parsed is None:
        return None
    states = (("passes", "passed"), ("failures", "failed"), ("pending", "skipped"))
    return [
        TestOutcome(
            name=str(each.get("fullTitle")),
            state=state,
            file=str(each.get("file") or ""),
            message=str((each.get("err") or {}).get("message", "")),
            trace=str((each.get("err") or {}).get("stack", "")),
        )
        for group, state in states
        for each in parsed.get(group, ())
    ]


def _read_go(stdout: str) -> list[TestOutcome] | None:
    events = [each for line in stdout.splitlines() if (each := _parse_json(line)) is not None]
    if not events:
        return None
    printed: dict[tuple[str, str], str] = {}
    found: list[TestOutcome] = []
    for each in events:
        key = (str(each.get("Package", "")), str(each.get("Test", "")))
        if each.get("Action") == "output":
            printed[key] = (printed.get(key, "") + str(each.get("Output", "")))[-MAX_TRACE:]
        state = {"pass": "passed", "fail": "failed", "skip": "skipped"}.get(str(each.get("Action")), "")
        if state and (key[1] or (state == "failed" and not any(known.state == "failed" for known in found))):
            text = printed.get(key, "").strip()
            name = ".".join(filter(None, key))
            found.append(TestOutcome(name=name, state=state, message=text.partition("\n")[0], trace=text))
    return found


def _by_lines(text: str, pattern: re.Pattern[str], states: Mapping[str, str]) -> list[TestOutcome] | None:
    """Read a report with one test per line; None if no line matches."""
    matches = [match for line in text.splitlines() if (match := pattern.match(line))]
    found = [
        TestOutcome(
            name=".".join(filter(None, (match.groupdict().get("owner"), match["name"]))),
            state=states.get(match["state"], "skipped"),
        )
        for match in matches
    ]
    return found or None


def _read_tap(stdout: str) -> list[TestOutcome] | None:
    return list(_tap_lines(stdout)) or None


def _tap_lines(stdout: str) -> Iterator[TestOutcome]:
    for line in stdout.splitlines():
        match = _TAP.match(line)
        if match is not None:
            state = "skipped" if match["mark"] else "failed" if match["bad"] else "passed"
            yield TestOutcome(name=match["name"].strip(), state=state)


def _parse_json(text: str) -> dict[str, Any] | None:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None
