"""The commit that each line of a file comes from. Git only sees the committed file, apart from the settings of the
repository; lines of the file on disk are matched to it by comparison. Lines are counted as git counts them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path

import msgspec

from clew.errors import InvalidInput, NotFound
from clew.knowledge.git.log import GitCommit, read_line_commits, read_named
from clew.knowledge.git.run import GitFailed, Objects, find_objects
from clew.knowledge.lines import cut
from clew.lazy_pattern import lazy_pattern

MAX_LINES = 200_000
MAX_RANGE = 200
"""Lines that one call explains."""
NAME_SHOWN = 200
_CLOSELY = 5_000
"""With more changed lines, lines that occur many times are left out of the comparison."""
_BLAMED = lazy_pattern(rb"\^?([0-9a-f]{7,64}) (\d{1,9}) (\d{1,9})(?: \d+)?")


class LineOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """The commit of a line, and its path and number there. `sha` is empty for an uncommitted line."""

    sha: str = ""
    path: str = ""
    line: int = 0


_NEW = LineOrigin()


def blame_lines(root: Path, path: str, body: bytes, first: int, last: int) -> list[LineOrigin]:
    """The origin of each of these lines of a file whose content on disk is `body`.

    Raises NotFound for a line that does not exist, InvalidInput for too many lines and for a file of another
    repository, SourceError when git fails.
    """
    present = split_lines(body)
    if len(present) > MAX_LINES:
        raise InvalidInput("path", f"{cut(path, NAME_SHOWN)} has over {MAX_LINES:,} lines")
    if not 1 <= first <= last <= len(present):
        hint = f"The file has {len(present):,} line{'' if len(present) == 1 else 's'}"
        wrong = first if first > len(present) or first < 1 else last
        raise NotFound("line", f"{cut(path, NAME_SHOWN)}:{wrong}", hint=hint)
    if last - first >= MAX_RANGE:
        raise InvalidInput("place", f"has over {MAX_RANGE} lines", hint="Ask for fewer")
    objects = find_objects(root)
    at = dict(_same_lines(split_lines(_read_committed(objects, path)), present))
    wanted = [at.get(line, 0) for line in range(first, last + 1)]
    blamed = _blame(objects, path, [line for line in wanted if line])
    return [blamed.get(line, _NEW) for line in wanted]


def read_line_history(root: Path, origin: LineOrigin, *, limit: int = 10) -> list[GitCommit]:
    """The commits that shaped a line, newest first: the one that wrote it, then those of its earlier forms, as far as
    git finds them in time. Raises SourceError without a repository."""
    if not origin.sha:
        return []
    older = read_line_commits(root, origin.path, origin.line, origin.line, revision=origin.sha, limit=limit)
    first = [] if any(commit.sha == origin.sha for commit in older) else read_named(find_objects(root), [origin.sha])
    return [*first, *older][:limit]


def split_lines(body: bytes) -> list[str]:
    """Lines as git counts them, without their ends."""
    lines = body.decode(errors="replace").split("\n")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]


def _blame(objects: Objects, path: str, lines: Sequence[int]) -> dict[int, LineOrigin]:
    """The origins of committed lines by their numbers."""
    if not lines:
        return {}
    span = f"-L{min(lines)},{max(lines)}"
    arguments = ["blame", "--porcelain", "--no-textconv", span, objects.head, "--", objects.prefix + path]
    prefix = os.fsencode(objects.prefix)
    names, found, at = dict[str, str](), dict[int, LineOrigin](), ("", 0, 0)
    for printed in objects.run(arguments).split(b"\n"):
        if header := _BLAMED.fullmatch(printed):
            at = (header[1].decode(), int(header[2]), int(header[3]))
            found[at[2]] = LineOrigin(sha=at[0], path=names.get(at[0], path), line=at[1])
        elif printed.startswith(b"filename ") and at[2] in found:
            names[at[0]] = printed[9:].removeprefix(prefix).decode(errors="replace")
            found[at[2]] = msgspec.structs.replace(found[at[2]], path=names[at[0]])
    return found


def _read_committed(objects: Objects, path: str) -> bytes:
    """The committed file; empty when it is new. Raises InvalidInput for a file of a repository within this one."""
    try:
        return objects.run(["cat-file", "blob", f"{objects.head}:{objects.prefix}{path}"])
    except GitFailed:
        pass
    names = path.split("/")[:-1]
    folders = ["/".join(names[:depth]) for depth in range(len(names), 0, -1)]
    inner = next((folder for folder in folders if _is_repository(f"{objects.root}/{folder}/.git")), "")
    if inner:
        what = f"{cut(path, NAME_SHOWN)} belongs to another repository, {cut(inner, NAME_SHOWN)}"
        raise InvalidInput("path", what, hint="Ask for it there")
    return b""


def _is_repository(place: str) -> bool:
    return os.path.isfile(place) or os.path.lexists(f"{place}/HEAD")


def _same_lines(committed: list[str], present: list[str]) -> Iterator[tuple[int, int]]:
    """Present and committed numbers of the lines that both have. Only the part between a common start and end is
    compared closely."""
    least = min(len(committed), len(present))
    start = next((at for at in range(least) if committed[at] != present[at]), least)
    end = next((at for at in range(least - start) if committed[-1 - at] != present[-1 - at]), least - start)
    before, after = committed[start : len(committed) - end], present[start : len(present) - end]
    is_long = max(len(before), len(after)) > _CLOSELY
    inner = SequenceMatcher(None, before, after, autojunk=is_long).get_matching_blocks()
    blocks = [(0, 0, start), (len(committed) - end, len(present) - end, end)]
    for was, now, size in [*blocks, *((was + start, now + start, size) for was, now, size in inner)]:
        yield from ((now + at, was + at) for at in range(1, size + 1))
