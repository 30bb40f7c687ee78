"""Output of linters and reports of test runners, as the tools print them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clew.knowledge.project.tools import DiscoveredTool, ToolCategory
from clew.team.evidence.check_commands import Report, lint_command, runner_command
from clew.team.evidence.issue_parsers import parse_issues
from clew.team.evidence.receipts import MAX_LOG, bounded_log
from clew.team.evidence.report_parsers import parse_report, parse_summary

LINES: dict[str, tuple[str, ToolCategory, str, tuple[str, int, int, str, str]]] = {
    "ruff": ("ruff", "linter", "a/b.py:3:7: F401 `os` imported", ("a/b.py", 3, 7, "error", "F401 `os` imported")),
    "flake8": ("flake8", "linter", "./b.py:3:7: E501 line", ("b.py", 3, 7, "error", "E501 line")),
    "mypy": ("mypy", "type_checker", "b.py:3:7: error: Bad  [x]", ("b.py", 3, 7, "error", "Bad  [x]")),
    "mypy without a column": ("mypy", "type_checker", "b.py:3: error: Bad", ("b.py", 3, 0, "error", "Bad")),
    "tsc": ("tsc", "type_checker", "s/a.ts(3,7): error TS2322: No", ("s/a.ts", 3, 7, "error", "TS2322: No")),
    "pyright": ("pyright", "type_checker", "  /p/a.py:3:7 - error: No", ("/p/a.py", 3, 7, "error", "No")),
    "go vet": ("go vet", "linter", "./a.go:3:7: unreachable", ("a.go", 3, 7, "error", "unreachable")),
    "cargo": ("clippy", "linter", "src/a.rs:3:7: warning: unused", ("src/a.rs", 3, 7, "warning", "unused")),
    "shellcheck": ("shellcheck", "linter", "a.sh:3:7: warning: Quote", ("a.sh", 3, 7, "warning", "Quote")),
    "a file with spaces": ("flake8", "linter", "a b/c d.py:3:7: E1 x", ("a b/c d.py", 3, 7, "error", "E1 x")),
}
FORMATTED: dict[str, tuple[str, str, str]] = {
    "ruff": ("ruff", "Would reformat: a/b.py\n1 file would be reformatted", "a/b.py"),
    "ruff with a diff": ("ruff", "unformatted: File would be reformatted\n --> a/b.py:2:1\n  |", "a/b.py"),
    "black": ("black", "would reformat a/b.py\nAll done!", "a/b.py"),
    "prettier": ("prettier", "Checking formatting...\n[warn] a/b.js\n[warn] Code style issues found", "a/b.js"),
    "rustfmt": ("rustfmt", "Diff in src/a.rs:3:\n-x", "src/a.rs"),
    "gofmt": ("gofmt", "a.go", "a.go"),
}
JEST = json.dumps(
    {
        "testResults": [
            {
                "name": "/p/a.test.js",
                "status": "failed",
                "assertionResults": [
                    {"fullName": "adds", "status": "passed"},
                    {"fullName": "subtracts", "status": "failed", "failureMessages": ["Expected: 1\nReceived: 2"]},
                    {"fullName": "later", "status": "pending"},
                ],
            },
            {"name": "/p/b.test.js", "status": "failed", "message": "SyntaxError", "assertionResults": []},
        ]
    }
)
GO = "\n".join(
    json.dumps(each)
    for each in (
        {"Action": "output", "Package": "p", "Test": "TestA", "Output": "a_test.go:3: got 1\n"},
        {"Action": "fail", "Package": "p", "Test": "TestA"},
        {"Action": "pass", "Package": "p", "Test": "TestB"},
        {"Action": "skip", "Package": "p", "Test": "TestC"},
        {"Action": "fail", "Package": "p"},
    )
)
MOCHA = json.dumps(
    {"passes": [{"fullTitle": "a"}], "failures": [{"fullTitle": "b", "err": {"message": "no"}}], "pending": []}
)
UNITTEST = "test_a (t.A.test_a) ... ok\ntest_b (t.A.test_b) ... FAIL\ntest_c (t.A) ... skipped 'x'\n\nRan 3 tests"
CARGO = "running 3 tests\ntest a::one ... ok\ntest a::two ... FAILED\ntest three ... ignored\n"
TAP = "TAP version 13\nok 1 - a\nnot ok 2 - b\nok 3 - c # SKIP slow\n1..3\n"


@pytest.mark.parametrize("name", LINES)
def test_an_issue_has_file_line_and_message(name: str) -> None:
    tool, category, line, expected = LINES[name]
    (found,) = parse_issues(tool, category, f"{line}\nFound 1 error.\n", "", "/q")
    assert (found.file, found.line, found.column, found.severity, found.message) == expected


@pytest.mark.parametrize("name", FORMATTED)
def test_a_file_that_is_not_formatted_is_an_issue(tmp_path: Path, name: str) -> None:
    tool, output, path = FORMATTED[name]
    (tmp_path / "a.go").touch()
    assert [each.file for each in parse_issues(tool, "formatter", output, "", str(tmp_path))] == [path]


def test_the_report_of_eslint_is_read(tmp_path: Path) -> None:
    message = {"ruleId": "no-undef", "severity": 2, "message": "x", "line": 3, "column": 7}
    messages = [message, {**message, "severity": 1, "line": 4}]
    printed = json.dumps([{"filePath": str(tmp_path / "a.js"), "messages": messages}])
    found = parse_issues("eslint", "linter", printed, "", str(tmp_path))
    assert [(each.file, each.line, each.severity) for each in found] == [("a.js", 3, "error"), ("a.js", 4, "warning")]


@pytest.mark.parametrize(
    "text", ["", "All checks passed!", "note: x", "b.py:3: note: see", "see https://x.y:80: z", "::::"]
)
def test_other_output_is_no_issue(text: str) -> None:
    assert parse_issues("mypy", "type_checker", text, "", "/p") == ()


@pytest.mark.parametrize(
    ("form", "report", "stdout", "stderr", "expected"),
    [
        ("jest", JEST, "", "", (3, 1, 2, 1)),
        ("go", "", GO, "", (2, 1, 1, 1)),
        ("mocha", "", f"noise\n{MOCHA}", "", (2, 1, 1, 0)),
        ("unittest", "", "", UNITTEST, (2, 1, 1, 1)),
        ("cargo", "", CARGO, "", (2, 1, 1, 1)),
        ("tap", "", TAP, "", (2, 1, 1, 1)),
    ],
)
def test_a_report_is_counted(
    tmp_path: Path, form: Report, report: str, stdout: str, stderr: str, expected: tuple[int, int, int, int]
) -> None:
    (tmp_path / "report").write_text(report)
    counts = parse_report(form, tmp_path / "report", stdout, stderr).counts
    assert counts.is_counted
    assert (counts.run, counts.passed, counts.failed, counts.skipped) == expected


def test_a_failure_has_the_values_that_were_compared(tmp_path: Path) -> None:
    (tmp_path / "jest").write_text(JEST)
    states = {"passed": 1, "failed": 1, "skipped": 0}
    failed = {"test": "tests/test_a.py::test_two", "file": "tests/test_a.py", "message": "assert 1 == 2", "trace": ""}
    first = parse_summary({"states": states, "failures": [failed], "problems": []}).failures[0]
    assert (first.test_name, first.file, first.expected, first.actual) == (
        "tests.test_a.test_two",
        "tests/test_a.py",
        "2",
        "1",
    )
    second = parse_report("jest", tmp_path / "jest", "", "").failures[0]
    assert (second.expected, second.actual) == ("1", "2")


@pytest.mark.parametrize("form", ["jest", "go", "mocha", "unittest", "cargo", "tap", "none"])
@pytest.mark.parametrize("text", ["", "nonsense", "{", "<a", '<!DOCTYPE x [<!ENTITY a "b">]><a/>', "[]", "null"])
def test_nonsense_is_not_counted(tmp_path: Path, form: Report, text: str) -> None:
    (tmp_path / "report").write_text(text)
    assert not parse_report(form, tmp_path / "report", text, text).counts.is_counted
    assert not parse_report(form, tmp_path / "missing", "", "").counts.is_counted


def test_commands_only_look_and_name_only_files_of_their_language() -> None:
    ruff = DiscoveredTool(name="ruff", category="formatter", language="python")
    found = lint_command(ruff, ("a b.py", "-x.py", "c.js"))
    assert found is not None
    assert found.command == "ruff format --check --force-exclude 'a b.py' ./-x.py"
    assert lint_command(ruff, ("c.js",)) is None
    every = lint_command(ruff, ())
    assert every is not None
    assert every.command.endswith(" .")
    eslint = lint_command(DiscoveredTool(name="eslint", category="linter", language="javascript"), ("a.js",))
    assert eslint is not None
    assert (eslint.program, eslint.command) == ("eslint", "eslint --format json a.js")
    go = runner_command(DiscoveredTool(name="go test", category="test_framework", language="go"), ("a/b_test.go",))
    assert go.command == "go test -json ./a"


def test_a_long_log_keeps_its_beginning_and_its_end() -> None:
    log = bounded_log("begin" + "x" * 100_000, "end")
    assert log.startswith("begin")
    assert log.endswith("end")
    assert len(log) < MAX_LOG + 200
