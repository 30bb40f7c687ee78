"""Which commits a line comes from. Only what is committed is given to git, so no filter of a repository is run; where
the line is in the file on disk is found out by comparing the two."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path

import msgspec

from clew.errors import InvalidInput, NotFound
from clew.knowledge.code.blobs import read_content
from clew.knowledge.code.sightings import looks_secret
from clew.knowledge.git import GitFailed, folder_in_repository, run_git
from clew.knowledge.history.anchors import parse_ref
from clew.knowledge.history.commits import Commit, read_commits
from clew.secrecy import mask_in_place, mask_secrets

MAX_LINES = 200_000
_CLOSELY = 5_000
"""More changed lines than that are compared without those that occur again and again."""
MAX_RANGE = 200
"""Lines that are explained at once."""
_HISTORY_TIMEOUT = 20.0
_BLAMED = re.compile(r"\^?([0-9a-f]{7,64}) (\d+) (\d+)(?: \d+)?$")


class LineOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a line was written: the commit, and what file and line it was there. `sha` is empty for a line that is not
    committed yet."""

    text: str
    sha: str = ""
    path: str = ""
    line: int = 0


_NEW = LineOrigin(text="")


def find_origin(root: Path, path: str, line: int) -> LineOrigin:
    """The commit that a line of a file on disk comes from. Raises as `find_origins`."""
    return find_origins(root, path, line, line)[0]


def find_origins(root: Path, path: str, first: int, last: int) -> list[LineOrigin]:
    """Where each of these lines of a file on disk comes from, in their order. Keys in a line are masked.

    Raises NotFound for a file or a line that there is not, InvalidInput for a file that is not shown, SourceError when
    git cannot say.
    """
    place = parse_ref(path).path
    present = _read_lines(root, place)
    if not 1 <= first <= last <= len(present):
        hint = f"The file has {len(present):,} line{'' if len(present) == 1 else 's'}"
        raise NotFound("line", f"{place}:{first if first > len(present) or first < 1 else last}", hint=hint)
    if last - first >= MAX_RANGE:
        raise InvalidInput("place", f"has over {MAX_RANGE} lines", hint="Ask for fewer")
    shown = _masked(present)
    committed = _committed_lines(root, place)
    at = _lines_before(committed, present)
    wanted = [at.get(line, 0) for line in range(first, last + 1)]
    told = _blame(root, place, [line for line in wanted if line])
    texts = shown[first - 1 : last]
    return [msgspec.structs.replace(told.get(line, _NEW), text=text) for line, text in zip(wanted, texts, strict=True)]


def _blame(root: Path, path: str, lines: Sequence[int]) -> dict[int, LineOrigin]:
    """What git says of committed lines, by their numbers."""
    if not lines:
        return {}
    span = f"-L{min(lines)},{max(lines)}"
    said = run_git(root, ["blame", "--porcelain", "--no-textconv", span, "HEAD", "--", path]).decode(errors="replace")
    prefix, names, found, at = folder_in_repository(root), dict[str, str](), dict[int, LineOrigin](), ("", 0, 0)
    for told in said.splitlines():
        if header := _BLAMED.match(told):
            at = (header[1], int(header[2]), int(header[3]))
            found[at[2]] = LineOrigin(text="", sha=at[0], path=names.get(at[0], path), line=at[1])
        elif told.startswith("filename "):
            names[at[0]] = told[9:].removeprefix(prefix)
            found[at[2]] = msgspec.structs.replace(found[at[2]], path=names[at[0]])
    return found


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
    """Raises InvalidInput for what is git's own, or is made to hold keys."""
    names = path.split("/")
    if ".git" in names:
        raise InvalidInput("path", f"{path} is git's own, and no file of the project")
    content = read_content(str(root.resolve()), path)
    if content is None:
        raise NotFound("file", path)
    if reason := content.left_out or looks_secret(path, content.body):
        raise InvalidInput("path", f"{path} {reason}, and is left out")
    lines = content.body.decode(errors="replace").splitlines()
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


def _masked(lines: Sequence[str]) -> list[str]:
    """The lines as they are shown: without keys, each where it was."""
    return [mask_secrets(line) for line in mask_in_place("\n".join(lines)).split("\n")]


def _lines_before(committed: list[str], present: list[str]) -> dict[int, int]:
    """Which committed line each present one is; those that are new are left out."""
    parts = _equal_parts(committed, present)
    return {now + at: was + at for was, now, size in parts for at in range(1, size + 1)}


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
