"""The commands of a check: which tools the project uses, and how each is called so that it changes nothing and reports
in a form that can be parsed."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from clew.knowledge.project.tool_scan import ProjectFiles, describe_tool, scan_project
from clew.knowledge.project.tools import (
    DiscoveredTool,
    ToolCategory,
    default_toolsets,
    known_tools,
    language_by_extension,
)
from clew.team.evidence.found_tests import is_test_file

Discover = Callable[[Path, ToolCategory], Awaitable[Sequence[DiscoveredTool]]]
"""Finds the tools of one category in a folder."""
Report = Literal["recorded", "go", "jest", "mocha", "cargo", "tap", "unittest", "none"]

LINT: tuple[ToolCategory, ...] = ("linter", "formatter", "type_checker")
MAX_PATHS = 400
"""If more files than this have changed, the whole project is checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCommand:
    """One command. `report` is the format of its test report. The command writes the report to $CLEW_REPORT or prints
    it, or the test host records it."""

    tool: str
    category: ToolCategory
    command: str
    program: str
    report: Report = "none"


_LINT_COMMANDS: dict[tuple[str, ToolCategory], str] = {
    ("ruff", "linter"): "ruff check --no-fix --force-exclude --output-format=concise {path}",
    ("ruff", "formatter"): "ruff format --check --force-exclude {path}",
    ("black", "formatter"): "black --check --quiet --diff {path}",
    ("mypy", "type_checker"): "mypy --no-pretty --show-column-numbers --no-error-summary {path}",
    ("tsc", "type_checker"): "tsc --noEmit --pretty false",
    ("eslint", "linter"): "eslint --format json {path}",
    ("gofmt", "formatter"): "! gofmt -l {path} | grep .",
    ("gofumpt", "formatter"): "! gofumpt -l {path} | grep .",
    ("clippy", "linter"): "cargo clippy --offline --message-format=short -- -D warnings",
    ("cargo check", "type_checker"): "cargo check --offline --message-format=short",
    ("rubocop", "formatter"): "rubocop --only Layout {path}",
    ("php-cs-fixer", "formatter"): "php-cs-fixer fix --dry-run {path}",
    ("ktlint", "formatter"): "ktlint",
    ("clang-format", "formatter"): "clang-format --dry-run -Werror {path}",
    ("dotnet format", "formatter"): "dotnet format --verify-no-changes",
    ("dart format", "formatter"): "dart format --output none --set-exit-if-changed {path}",
    ("swift-format", "formatter"): "swift-format lint --strict -r {path}",
    ("golangci-lint", "linter"): "golangci-lint run --out-format line-number",
}
"""Commands that replace those of the table of tools: they change nothing and print one finding per line."""

_TEST_COMMANDS: dict[str, tuple[str, Report]] = {
    "pytest": ("pytest -q -p no:cacheprovider -p pytest_recorder {path}", "recorded"),
    "unittest": ("python -m unittest -v {modules}", "unittest"),
    "go test": ("go test -json {packages}", "go"),
    "jest": ("jest --ci --json --outputFile={REPORT} {path}", "jest"),
    "vitest": ("vitest run --reporter=json --outputFile={REPORT} {path}", "jest"),
    "mocha": ("mocha --reporter json {path}", "mocha"),
    "cargo test": ("cargo test --offline", "cargo"),
    "bats": ("bats --tap {path}", "tap"),
}


async def scan_tools(root: Path, category: ToolCategory) -> Sequence[DiscoveredTool]:
    """The tools that a folder configures or names; without any, the usual test runner of its language if it has
    tests."""
    return await asyncio.to_thread(_scan, str(root), category)


def _scan(root: str, category: ToolCategory) -> Sequence[DiscoveredTool]:
    files = ProjectFiles(os.path.realpath(root), "")
    scan = scan_project(files, category)
    if scan.tools or category != "test_framework" or not has_test_files(root):
        return scan.tools
    if npm_test(Path(root), has_tests=True):
        return ()
    usual = default_toolsets().get(scan.open_language, {}).get(category, "")
    return (describe_tool(root, usual, category, scan.open_language, ""),) if usual else ()


def lint_command(tool: DiscoveredTool, files: Sequence[str]) -> CheckCommand | None:
    """The command of a linter, formatter or type checker for these files, or for all files if the list is empty. None
    if the tool handles none of the files."""
    known = known_tools().get(tool.name)
    pattern = _LINT_COMMANDS.get((tool.name, tool.category)) or (known.run.get(tool.category, "") if known else "")
    if tool.source == "user_choice" or not pattern:
        pattern = tool.run_command
    pattern = pattern.removeprefix("npx ").removeprefix("vendor/bin/")
    own = [path for path in files if known is None or known.serves(language_by_extension(path))]
    if files and not own:
        return None
    command = pattern.replace("{path}", quote_paths(own))
    return CheckCommand(tool=tool.name, category=tool.category, command=command.strip(), program=program_of(pattern))


def runner_command(tool: DiscoveredTool, files: Sequence[str]) -> CheckCommand:
    """The command of a test runner for these test files, or for all tests if the list is empty."""
    pattern, form = _TEST_COMMANDS.get(tool.name, (tool.run_command.removeprefix("npx "), "none"))
    if tool.source == "user_choice" and tool.name not in _TEST_COMMANDS:
        pattern, form = tool.run_command, "none"
    packages = sorted({f"./{os.path.dirname(path)}" if os.path.dirname(path) else "." for path in files})
    modules = [path.removesuffix(".py").replace("/", ".") for path in files]
    command = (
        pattern.replace("{REPORT}", '"$CLEW_REPORT"')
        .replace("{path}", quote_paths(files) if files else "")
        .replace("{packages}", " ".join(map(shlex.quote, packages)) or "./...")
        .replace("{modules}", " ".join(map(shlex.quote, modules)) or "discover")
    )
    return CheckCommand(
        tool=tool.name, category="test_framework", command=command.strip(), program=program_of(pattern), report=form
    )


def npm_test(project: Path, *, has_tests: bool) -> list[CheckCommand]:
    """The test script of a package.json, for projects whose test runner is not known."""
    try:
        scripts = json.loads((project / "package.json").read_text()).get("scripts") if has_tests else None
    except (OSError, ValueError, AttributeError):
        scripts = None
    if not isinstance(scripts, dict) or not scripts.get("test"):
        return []
    return [
        CheckCommand(
            tool="npm test", category="test_framework", command="npm test --silent", program="npm", report="tap"
        )
    ]


def has_test_files(root: str) -> bool:
    """Whether a folder has tests: files of tests, or Rust files with tests in them."""
    files = walk_files(root)
    if any(is_test_file(path) and not path.endswith("conftest.py") for path in files):
        return True
    sources = (Path(root, path) for path in files if path.endswith(".rs"))
    return any("#[test]" in path.read_text(errors="replace") for path in sources if path.is_file())


def report_form(tool: str) -> Report:
    """The form of a test runner's report."""
    if tool == "npm test":
        return "tap"
    return _TEST_COMMANDS[tool][1] if tool in _TEST_COMMANDS else "none"


def quote_paths(paths: Sequence[str]) -> str:
    """Paths as arguments of a shell command; one with a leading dash is not an option."""
    if not paths or len(paths) > MAX_PATHS:
        return "."
    return " ".join(shlex.quote(f"./{path}" if path.startswith("-") else path) for path in paths)


def program_of(command: str) -> str:
    """The program that a command starts."""
    words = command.removeprefix("! ").split()
    return words[0] if words else ""


def walk_files(root: str, limit: int = 20_000) -> list[str]:
    """Relative paths of the files in a folder, without hidden folders, libraries and caches."""
    skipped = {"node_modules", "vendor", "venv", "__pycache__", "target", "dist", "build", "site-packages"}
    found: list[str] = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in skipped and not name.startswith("."))
        inner = os.path.relpath(folder, root)
        found += [name if inner == "." else f"{inner}/{name}" for name in names]
        if len(found) > limit:
            break
    return found[:limit]
