"""How code is named: `path`, `path:line`, `path#qualname` or `path#qualname:line`, each with or without `code:` before
it."""

from __future__ import annotations

import re
from typing import NamedTuple

PREFIX = "code:"
_LINE = re.compile(r"(?s)(.+):(\d{1,9})")


class CodeRef(NamedTuple):
    """A file, a line of it, or a symbol in it, which may be the one of several that is at a line."""

    path: str
    qualname: str = ""
    line: int | None = None


def node_id(path: str, qualname: str = "") -> str:
    return f"{PREFIX}{short_ref(path, qualname)}"


def short_ref(path: str, qualname: str = "") -> str:
    """As people write it."""
    return f"{path}#{qualname}" if qualname else path


def readings(ref: str) -> list[CodeRef]:
    """What a reference may mean, the likeliest first: a path may itself have `#` or `:` in it."""
    plain = ref.removeprefix(PREFIX).removeprefix("./")
    found = [CodeRef(plain)]
    path, mark, qualname = plain.rpartition("#")
    is_named = bool(mark and path and qualname)
    if is_named:
        found.append(CodeRef(path, qualname))
    if match := _LINE.fullmatch(plain):
        found.append(CodeRef(match[1], line=int(match[2])))
        if is_named and (name := qualname.rpartition(":")[0]):
            found.append(CodeRef(path, name, int(match[2])))
    return found
