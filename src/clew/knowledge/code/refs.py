"""How code is named: `path`, `path:line` or `path#qualname`, each with or without `code:` before it."""

from __future__ import annotations

import re
from typing import NamedTuple

PREFIX = "code:"
_LINE = re.compile(r"(?s)(.+):(\d{1,9})")


class CodeRef(NamedTuple):
    """A file, a line of it, or a symbol in it."""

    path: str
    qualname: str = ""
    line: int | None = None


def node_id(path: str, qualname: str = "") -> str:
    return f"{PREFIX}{path}#{qualname}" if qualname else f"{PREFIX}{path}"


def readings(ref: str) -> list[CodeRef]:
    """What a reference may mean, the likeliest first: a path may itself have `#` or `:` in it."""
    plain = ref.removeprefix(PREFIX).removeprefix("./")
    found = [CodeRef(plain)]
    path, mark, qualname = plain.rpartition("#")
    if mark and path and qualname:
        found.append(CodeRef(path, qualname))
    if match := _LINE.fullmatch(plain):
        found.append(CodeRef(match[1], line=int(match[2])))
    return found
