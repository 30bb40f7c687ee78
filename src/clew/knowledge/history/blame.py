"""Which commits a line comes from. Only what is committed is given to git, so no filter of a repository is run; where
the line is in the file on disk is found out by comparing the two."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path

import msgspec

from clew.errors import InvalidInput, NotFound
from clew.knowledge.history.anchors import parse_ref
from clew.knowledge.history.commits import Commit, read_commits
from clew.knowledge.history.git_commands import GitFailed, folder_in_repository, run_git

MAX_LINES = 200_000
_CLOSELY = 5_000
"""More changed lines than that are compared without those that occur again and again."""
_HISTORY_TIMEOUT = 20.0


class LineOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a line was written: the commit, and what file and line it was there. `sha` is empty for a line that is not
    committed yet."""

    text: str
    sha: str = ""
    path: str = ""
    line: int = 0


def find_origin(root: Path, path: str, line: int) -> LineOrigin:
    """The commit that a line of a file on disk comes from. Raises NotFound for a file or a line that there is not,
    SourceError when git cannot say."""
    place = parse_ref(path).path
    present = _read_lines(root, place)
    if not 1 <= line <= len(present):
        raise NotFound("line", f"{place}:{line}")
    text = present[line - 1]
    committed = _committed_lines(root, place)
    at = _line_before(committed, present, line)
    if not at:
        return LineOrigin(text=text)
    found = run_git(root, ["blame", "--porcelain", "--no-textconv", f"-L{at},{at}", "HEAD", "--", place]).decode(
        errors="replace"
    )
    sha, original = found.split(" ", 2)[:2]
    named = next((told[9:] for told in found.splitlines() if told.startswith("filename ")), place)
    prefix = folder_in_repository(root)
    return LineOrigin(text=text, sha=sha.lstrip("^"), path=named.removeprefix(prefix), line=int(original))


def read_line_history(root: Path, origin: LineOrigin, *, limit: int = 10) -> list[Commit]:
    """The commits that made a line what it is, newest first: the one that wrote it, and those that wrote what stood
    there before. Only the first where git takes too long over the others."""
    if not origin.sha:
        return []
    newest = list(read_commits(root, [origin.sha], limit=1))
    arguments = ["log", "-s", "--format=%H", "--no-textconv", "--no-ext-diff", f"--max-count={limit}"]
    arguments += [f"-L{origin.line},{origin.line}:{origin.path}", origin.sha, "--"]
    try:
        older = run_git(root, arguments, timeout=_HISTORY_TIMEOUT).decode().split()
    except GitFailed:
        older = []
    others = [sha for sha in dict.fromkeys(older) if sha != origin.sha][: limit - 1]
    return [*newest, *(commit for sha in others for commit in read_commits(root, [sha], limit=1))]


def _read_lines(root: Path, path: str) -> list[str]:
    try:
        lines = (root / path).read_bytes().decode(errors="replace").splitlines()
    except (OSError, ValueError):
        raise NotFound("file", path) from None
    if len(lines) > MAX_LINES:
        raise InvalidInput("path", f"{path} has over {MAX_LINES:,} lines")
    return lines


def _committed_lines(root: Path, path: str) -> list[str]:
    """The file as it was committed; empty when it is new."""
    name = f"HEAD:{folder_in_repository(root)}{path}"
    try:
        return run_git(root, ["cat-file", "blob", name]).decode(errors="replace").splitlines()
    except GitFailed:
        return []


def _line_before(committed: list[str], present: list[str], line: int) -> int:
    """Which committed line a present one is, 0 for one that is new."""
    for was, now, size in _equal_parts(committed, present):
        if now < line <= now + size:
            return was + line - now
    return 0


def _equal_parts(committed: list[str], present: list[str]) -> Iterator[tuple[int, int, int]]:
    """The same beginning and the same end at once, and only what lies between compared closely."""
    least = min(len(committed), len(present))
    start = next((at for at in range(least) if committed[at] != present[at]), least)
    end = next((at for at in range(least - start) if committed[-1 - at] != present[-1 - at]), least - start)
    yield 0, 0, start
    yield len(committed) - end, len(present) - end, end
    before, after = committed[start : len(committed) - end], present[start : len(present) - end]
    is_long = max(len(before), len(after)) > _CLOSELY
    for was, now, size in SequenceMatcher(None, before, after, autojunk=is_long).get_matching_blocks():
        yield was + start, now + start, size
