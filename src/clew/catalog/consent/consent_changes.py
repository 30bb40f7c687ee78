"""Changes in the files behind a wish since the user agreed to it, by file and line."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import msgspec

from clew.catalog.consent.consent_snapshots import Files, FileState
from clew.trust import printable

MAX_SHOWN = 60
"""The maximum number of diff lines that are shown per file. The rest are only counted."""
MAX_COMPARED = 2_000
"""The maximum number of lines for a line-by-line diff. In a longer file, changed lines are only counted."""
MAX_FILES = 100
MAX_LINE = 300

What = Literal["added", "removed", "changed"]


class FileChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The change of one file. `diff` is a unified diff without its header, and `left_out` the number of its lines that
    are not shown. A binary file has no lines. `is_program` is the file's new executable state, or None if that did not
    change."""

    path: str
    what: What
    lines_added: int = 0
    lines_removed: int = 0
    diff: tuple[str, ...] = ()
    left_out: int = 0
    is_program: bool | None = None


def compare(before: Files, now: Files) -> list[FileChange]:
    """The files that differ, in the order of their paths, at most MAX_FILES of them."""
    paths = sorted(path for path in {*before, *now} if before.get(path) != now.get(path))
    return [_change(path, before.get(path), now.get(path)) for path in paths[:MAX_FILES]]


def _change(path: str, before: FileState | None, now: FileState | None) -> FileChange:
    what: What = "added" if before is None else "removed" if now is None else "changed"
    is_program = now.is_program if now is not None and now.is_program != _was_program(before) else None
    change = FileChange(path=printable(path), what=what, is_program=is_program)
    old, new = _lines(before), _lines(now)
    if old is None or new is None:
        return change
    if max(len(old), len(new)) > MAX_COMPARED:
        gone, come = Counter(old) - Counter(new), Counter(new) - Counter(old)
        return msgspec.structs.replace(change, lines_added=come.total(), lines_removed=gone.total())
    found = list(difflib.unified_diff(old, new, lineterm="", n=1))[2:]
    return msgspec.structs.replace(
        change,
        lines_added=sum(line.startswith("+") for line in found),
        lines_removed=sum(line.startswith("-") for line in found),
        diff=tuple(printable(line, MAX_LINE) for line in found[:MAX_SHOWN]),
        left_out=len(found[MAX_SHOWN:]),
    )


def _was_program(seen: FileState | None) -> bool:
    return seen is not None and seen.is_program


def _lines(seen: FileState | None) -> Sequence[str] | None:
    """The lines of a file: empty if the file does not exist, None if its text was not stored."""
    if seen is None:
        return ()
    if seen.lines is None:
        return None
    return seen.lines[:-1] if seen.lines[-1:] == ("",) else seen.lines
