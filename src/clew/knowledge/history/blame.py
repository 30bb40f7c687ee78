"""Which commits a line comes from. Only what is committed is given to git, apart from the settings of the repository;
where the line is in the file on disk is found out by comparing the two. Lines are those that git counts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path

import msgspec

from clew.errors import InvalidInput, NotFound, SourceError
from clew.knowledge.code.file_content import read_content
from clew.knowledge.code.secret_files import looks_secret
from clew.knowledge.git import GitFailed
from clew.knowledge.git_objects import Objects, find_objects, run_apart
from clew.knowledge.history.anchors import parse_ref
from clew.knowledge.history.commits import Commit, read_named
from clew.knowledge.lines import cut
from clew.secrecy import mask_in_place, mask_secrets

MAX_LINES = 200_000
_CLOSELY = 5_000
"""More changed lines than that are compared without those that occur again and again."""
MAX_RANGE = 200
"""Lines that are explained at once."""
_HISTORY_TIMEOUT = 20.0
_NAME_SHOWN = 200
_BLAMED = re.compile(rb"\^?([0-9a-f]{7,64}) (\d{1,9}) (\d{1,9})(?: \d+)?")


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

    Raises NotFound for a file or a line that there is not, InvalidInput for a file that is not shown or belongs to
    another repository, SourceError when git cannot say.
    """
    place = file_of(root, path)
    present = _read_lines(root, place)
    if not 1 <= first <= last <= len(present):
        hint = f"The file has {len(present):,} line{'' if len(present) == 1 else 's'}"
        wrong = first if first > len(present) or first < 1 else last
        raise NotFound("line", f"{cut(place, _NAME_SHOWN)}:{wrong}", hint=hint)
    if last - first >= MAX_RANGE:
        raise InvalidInput("place", f"has over {MAX_RANGE} lines", hint="Ask for fewer")
    shown = _masked(present)
    objects = find_objects(root)
    committed = _read_committed(objects, place)
    at = _lines_before(_split(committed), present)
    wanted = [at.get(line, 0) for line in range(first, last + 1)]
    # in a file that only knows the other line end, git sees a single line
    asked = wanted if b"\n" in committed else [min(line, 1) for line in wanted]
    told = _blame(objects, place, [line for line in asked if line])
    texts = shown[first - 1 : last]
    return [msgspec.structs.replace(told.get(line, _NEW), text=text) for line, text in zip(asked, texts, strict=True)]


def file_of(root: Path, ref: str) -> str:
    """The file that a reference means: one of that very name where there is one, else what it names before a line or a
    symbol. Raises InvalidInput as `parse_ref`."""
    parsed, whole = parse_ref(ref), ref.strip().removeprefix("./")
    is_inside = whole.isprintable() and ".." not in whole.split("/") and not whole.startswith("/")
    return whole if is_inside and os.path.isfile(f"{root}/{whole}") else parsed.path


def _blame(objects: Objects, path: str, lines: Sequence[int]) -> dict[int, LineOrigin]:
    """What git says of committed lines, by their numbers."""
    if not lines:
        return {}
    span = f"-L{min(lines)},{max(lines)}"
    said = run_apart(
        objects, ["blame", "--porcelain", "--no-textconv", span, objects.head, "--", objects.prefix + path]
    )
    prefix = os.fsencode(objects.prefix)
    names, found, at = dict[str, str](), dict[int, LineOrigin](), ("", 0, 0)
    for told in said.split(b"\n"):
        if header := _BLAMED.fullmatch(told):
            at = (header[1].decode(), int(header[2]), int(header[3]))
            found[at[2]] = LineOrigin(text="", sha=at[0], path=names.get(at[0], path), line=at[1])
        elif told.startswith(b"filename ") and at[2] in found:
            names[at[0]] = told[9:].removeprefix(prefix).decode(errors="replace")
            found[at[2]] = msgspec.structs.replace(found[at[2]], path=names[at[0]])
    return found


def read_line_history(root: Path, origin: LineOrigin, *, limit: int = 10) -> list[Commit]:
    """The commits that made a line what it is, newest first: the one that wrote it, and those that wrote what stood
    there before. Only the first where git takes too long over the others."""
    if not origin.sha:
        return []
    objects = find_objects(root)
    arguments = ["log", "-s", "--format=%H", "--no-textconv", "--no-ext-diff", f"--max-count={limit}"]
    arguments += [f"-L{origin.line},{origin.line}:{objects.prefix}{origin.path}", origin.sha, "--"]
    try:
        older = run_apart(objects, arguments, timeout=_HISTORY_TIMEOUT).decode(errors="replace").split()
    except SourceError:
        older = []
    return list(read_named(objects, list(dict.fromkeys([origin.sha, *older]))[:limit]))


def _read_lines(root: Path, path: str) -> list[str]:
    """Raises InvalidInput for what is git's own, or is made to hold keys."""
    names = path.split("/")
    if ".git" in names:
        raise InvalidInput("path", f"{cut(path, _NAME_SHOWN)} is git's own, and no file of the project")
    content = read_content(str(root.resolve()), path)
    if content is None:
        raise NotFound("file", cut(path, _NAME_SHOWN))
    if reason := content.left_out or looks_secret(path, content.body):
        raise InvalidInput("path", f"{cut(path, _NAME_SHOWN)} {reason}, and is left out")
    lines = _split(content.body)
    if len(lines) > MAX_LINES:
        raise InvalidInput("path", f"{cut(path, _NAME_SHOWN)} has over {MAX_LINES:,} lines")
    return lines


def _read_committed(objects: Objects, path: str) -> bytes:
    """The file as it was committed; empty when it is new. Raises InvalidInput where another repository has it."""
    try:
        return run_apart(objects, ["cat-file", "blob", f"{objects.head}:{objects.prefix}{path}"])
    except GitFailed:
        pass
    if inner := _repository_within(objects.root, path):
        what = f"{cut(path, _NAME_SHOWN)} belongs to another repository, {cut(inner, _NAME_SHOWN)}"
        raise InvalidInput("path", what, hint="Ask for it there")
    return b""


def _repository_within(root: Path, path: str) -> str:
    """The innermost folder on the way to a file that is a repository of its own, if there is one."""
    names = path.split("/")[:-1]
    folders = ["/".join(names[:depth]) for depth in range(len(names), 0, -1)]
    return next((folder for folder in folders if _is_repository(f"{root}/{folder}/.git")), "")


def _is_repository(place: str) -> bool:
    return os.path.isfile(place) or os.path.lexists(f"{place}/HEAD")


def _split(body: bytes) -> list[str]:
    """The lines of a file as git counts them, without their ends; those of a file that knows no other end than a
    carriage return as editors do."""
    text = body.decode(errors="replace")
    lines = text.split("\n" if "\n" in text else "\r")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]


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
