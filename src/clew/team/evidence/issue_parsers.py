"""Line-level issues in the output of linters, formatters and type checkers."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any

from clew.knowledge.project.tools import ToolCategory
from clew.team.evidence.receipts import CodeIssue, IssueCategory, Severity, shorten

MAX_ISSUES = 300
_CATEGORY: dict[str, IssueCategory] = {"linter": "lint", "formatter": "format", "type_checker": "type"}
_AT_LINE = re.compile(
    r"^\s*(?:-->\s*)?(?P<file>(?:[A-Za-z]:)?[^\s:()][^:()\n]*?)"
    r"(?::(?P<line>\d+)(?::(?P<column>\d+))?|\((?P<line2>\d+),(?P<column2>\d+)\))"
    r"(?:-\d+(?::\d+)?)?\s*(?::|-)\s*(?P<message>\S.*)$"
)
"""`path:line:col: message` of most tools, `path(line,col): message` of TypeScript, `path:line:col - message`."""
_SEVERITY = re.compile(r"^(?P<word>error|warning|note|info|help|fatal error|information)\b(?:\[\w+\])?\s*:?\s*", re.I)
_REFORMAT = re.compile(
    r"^(?:Would reformat: |would reformat |\[warn\] |Diff in |--- |\s*--> )(?P<file>[^\t\n]+?)"
    r"(?:(?::| at line )(?P<line>\d+)(?::\d*)?)?(?:\t.*)?$"
)
_NOT_FILES = re.compile(r"Code style issues|All matched files|^\d+ files?|^/dev/null|^Run |\.{3}$")


def parse_issues(tool: str, category: ToolCategory, stdout: str, stderr: str, root: str) -> tuple[CodeIssue, ...]:
    """The issues that a tool printed, with paths relative to the project. Notes are left out."""
    kind = _CATEGORY.get(category, "lint")
    if tool == "eslint" and stdout.lstrip().startswith("["):
        found = _parse_eslint(stdout, root)
    elif category == "formatter":
        found = _parse_formatter(f"{stdout}\n{stderr}", root)
    else:
        found = _parse_lines(f"{stdout}\n{stderr}", kind, root)
    unique = {(each.file, each.line, each.column, each.message): each for each in found}
    return tuple(unique.values())[:MAX_ISSUES]


def _parse_lines(text: str, category: IssueCategory, root: str) -> Iterator[CodeIssue]:
    for line in text.splitlines():
        match = _AT_LINE.match(line)
        if match is None or "://" in match["file"]:
            continue
        severity, message = _read_severity(match["message"])
        if severity is not None:
            yield CodeIssue(
                file=_relative(match["file"], root),
                line=int(match["line"] or match["line2"]),
                column=int(match["column"] or match["column2"] or 0),
                category=category,
                severity=severity,
                message=shorten(message),
            )


def _read_severity(message: str) -> tuple[Severity | None, str]:
    """The severity and the rest of a message; none for a note."""
    match = _SEVERITY.match(message)
    if match is None:
        return "error", message
    word = match["word"].lower()
    if word in ("note", "help", "info", "information"):
        return None, message
    return ("warning" if word == "warning" else "error"), message[match.end() :] or message


def _parse_formatter(text: str, root: str) -> Iterator[CodeIssue]:
    """Files that are not formatted: listed one a line, or with a few words before."""
    for line in map(str.rstrip, text.splitlines()):
        match = _REFORMAT.match(line)
        name = match["file"] if match else line if _is_path(line, root) else ""
        if not name or _NOT_FILES.search(name):
            continue
        at = int(match["line"] or 0) if match else 0
        if not match and (located := _AT_LINE.match(line)):
            name, at = located["file"], int(located["line"] or 0)
        message = "The file is not formatted"
        yield CodeIssue(file=_relative(name, root), line=at, category="format", message=message, suggestion="Format it")


def _is_path(line: str, root: str) -> bool:
    return 0 < len(line) < 500 and " " not in line.strip() and os.path.isfile(os.path.join(root, line.strip()))


def _parse_eslint(text: str, root: str) -> Iterator[CodeIssue]:
    try:
        files: list[dict[str, Any]] = json.loads(text)
    except ValueError:
        return
    for file in files:
        for each in file.get("messages", ()):
            rule = each.get("ruleId") or "error"
            yield CodeIssue(
                file=_relative(str(file.get("filePath", "")), root),
                line=int(each.get("line") or 0),
                column=int(each.get("column") or 0),
                severity="error" if each.get("severity") == 2 else "warning",
                message=shorten(f"{rule} {each.get('message', '')}"),
            )


def _relative(path: str, root: str) -> str:
    path = path.strip().strip("\"'")
    if os.path.isabs(path):
        real = os.path.relpath(os.path.realpath(path), os.path.realpath(root))
        return path if real.startswith("..") else real
    return os.path.normpath(path)
