"""Places in the code as people write them (`path`, `path:line`, `path#qualname`), and the commits that their lines come
from. A place never leads out of the repository, and files that hold keys are not read."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

from clew.errors import InvalidInput, NotFound
from clew.knowledge.code.file_content import read_content
from clew.knowledge.code.secret_files import looks_secret
from clew.knowledge.git.blame import NAME_SHOWN, LineOrigin, blame_lines
from clew.knowledge.lines import cut

PREFIX = "code:"
_LINE = re.compile(r"(?P<path>.+?):(?P<line>[1-9]\d{0,8})(?:[-:]\d+)?")


class CodeRef(msgspec.Struct, frozen=True, kw_only=True):
    """A file, one of its lines (0: none), or one of its symbols."""

    path: str
    qualname: str = ""
    line: int = 0

    @property
    def key(self) -> str:
        """The name of the node that stands for it on the trail: a line belongs to its file."""
        return f"{PREFIX}{self.path}#{self.qualname}" if self.qualname else f"{PREFIX}{self.path}"


def parse_ref(ref: str) -> CodeRef:
    """Parse `path`, `path:line` or `path#qualname`, with or without `code:` before it.

    Raises InvalidInput for a path that is empty, absolute, or leads out of the repository.
    """
    plain = ref.strip().removeprefix(PREFIX).replace("\\", "/")
    path, _, qualname = plain.partition("#")
    lined = _LINE.fullmatch(path) if not qualname else None
    path = (lined["path"] if lined else path).removeprefix("./").rstrip("/")
    if not path or path.startswith("/") or ".." in path.split("/") or not path.isprintable():
        raise InvalidInput(
            "code reference",
            f"{ref[:200]!r} is not a place in the repository",
            hint="Write path, path:line or path#qualname, from the root of the repository",
        )
    return CodeRef(path=path, qualname=qualname.strip(), line=int(lined["line"]) if lined else 0)


def file_of(root: Path, ref: str) -> str:
    """The file that a reference means: the one of that very name if it exists, else the path before a line or symbol.
    Raises InvalidInput as `parse_ref`."""
    parsed, whole = parse_ref(ref), ref.strip().removeprefix("./")
    is_inside = whole.isprintable() and ".." not in whole.split("/") and not whole.startswith("/")
    return whole if is_inside and os.path.isfile(f"{root}/{whole}") else parsed.path


def find_origin(root: Path, path: str, line: int) -> LineOrigin:
    """The commit that a line of a file on disk comes from. Raises as `find_origins`."""
    return find_origins(root, path, line, line)[0]


def find_origins(root: Path, path: str, first: int, last: int) -> list[LineOrigin]:
    """The commits that these lines of a file on disk come from, in their order.

    Raises NotFound for a file or line that does not exist, InvalidInput for a file that is not shown or belongs to
    another repository, SourceError when git fails.
    """
    place = file_of(root, path)
    if ".git" in place.split("/"):
        raise InvalidInput("path", f"{cut(place, NAME_SHOWN)} is git's own, and no file of the project")
    content = read_content(str(root.resolve()), place)
    if content is None:
        raise NotFound("file", cut(place, NAME_SHOWN))
    if reason := content.left_out or looks_secret(place, content.body):
        raise InvalidInput("path", f"{cut(place, NAME_SHOWN)} {reason}, and is left out")
    return blame_lines(root, place, content.body, first, last)
