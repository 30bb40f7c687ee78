"""Automatic fixes: they replace lines of definition files, each file completely or not at all."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

import msgspec

from clew.errors import FormatError, ReadOnly
from clew.skills.checks.problems import Fix, Problem
from clew.skills.definitions.manifest_builder import build
from clew.skills.files.document import MAX_BYTES
from clew.skills.formats.collection import Collected
from clew.skills.formats.safe_open import Root
from clew.tools.tool import Tool

MAX_ROUNDS = 20
_LINE_END = re.compile(rb"\r\n|\r|\n")


class FixReport(msgspec.Struct, frozen=True, kw_only=True):
    """The problems that were fixed, and those that remain."""

    mended: tuple[Problem, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that were changed, in order."""
        return tuple(sorted({each.path for each in self.mended}))


def fix(root: Path, tools: Iterable[Tool] = (), found: Collected | None = None) -> FixReport:
    """Apply fixes and check again, until nothing is left or nothing changes. The problems in `found` are not updated.
    Raises ReadOnly if a file cannot be written."""
    given = tuple(tools)
    mended: list[Problem] = []
    problems = build(root, given, found).problems
    for _ in range(MAX_ROUNDS):
        done = apply_fixes(root, problems)
        if not done:
            break
        mended += done
        problems = build(root, given, found).problems
    return FixReport(mended=tuple(mended), problems=problems)


def apply_fixes(root: Path, problems: Iterable[Problem]) -> list[Problem]:
    """Apply the fixes of these problems that do not overlap, and return them.

    A file is replaced atomically, with its line ends and permissions. Only regular files below the root are changed,
    and only if the lines have not changed since. Raises ReadOnly if a file cannot be written.
    """
    base = Root(os.fspath(root))
    by_path: dict[str, list[tuple[Fix, Problem]]] = {}
    for problem in problems:
        if problem.fix is not None:
            by_path.setdefault(problem.path, []).append((problem.fix, problem))
    return [made for path in sorted(by_path) for made in _fix_file(base, path, by_path[path])]


def _fix_file(root: Root, path: str, fixes: list[tuple[Fix, Problem]]) -> list[Problem]:
    try:
        real = root.resolve(path)
        raw = root.read(real, MAX_BYTES)
    except FormatError:
        return []
    lines = _split(raw)
    made: list[Problem] = []
    above = len(lines) + 1
    for wanted, problem in sorted(fixes, key=lambda each: (each[0].first, each[0].last), reverse=True):
        if max(wanted.last, wanted.first - 1) < above and _fix_lines(lines, wanted):
            above = wanted.first
            made.append(problem)
    mended = b"".join(text + end for text, end in lines)
    if mended == raw:
        return []
    _write(Path(root.absolute(real)), path, mended)
    return list(reversed(made))


def _split(raw: bytes) -> list[tuple[bytes, bytes]]:
    """Split into lines, each with its line end."""
    ends = _LINE_END.findall(raw)
    return list(zip(_LINE_END.split(raw), [*ends, b""], strict=True))


def _fix_lines(lines: list[tuple[bytes, bytes]], wanted: Fix) -> bool:
    """Apply a fix to lines. Returns False if the lines have changed since."""
    first, last = wanted.first - 1, wanted.last
    if first < 0 or max(first, last) > len(lines):
        return False
    was = [text.removeprefix(b"\xef\xbb\xbf") for text, _ in lines[first:last]]
    if wanted.was is not None and was != [each.encode() for each in wanted.was]:
        return False
    _replace_lines(lines, first, max(first, last), [each.encode() for each in wanted.text])
    return True


def _replace_lines(lines: list[tuple[bytes, bytes]], first: int, last: int, texts: list[bytes]) -> None:
    """Replace lines by texts, and keep the line ends. The last line of a file may have none."""
    usual = next((end for _, end in lines if end), b"\n")
    ends = [end for _, end in lines[first:last]]
    lines[first:last] = [(text, ends[number] if number < len(ends) else usual) for number, text in enumerate(texts)]
    lines[:] = [(text, end or usual) for text, end in lines]
    if lines:
        lines[-1] = (lines[-1][0], b"")


def _write(file: Path, path: str, content: bytes) -> None:
    """Replace a file atomically."""
    fresh = ""
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
        handle, fresh = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
        with os.fdopen(handle, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        os.chmod(fresh, mode)
        os.replace(fresh, file)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(fresh)
        raise ReadOnly(f"{path}: the file cannot be written: {error.strerror}") from None
