"""References to code: `path`, `path:line` or `path#qualname`, also with `code:` before it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from clew.errors import InvalidInput

PREFIX = "code:"
MAX_REF, MAX_NAME = 5_000, 500
"""Characters of a reference with a path, and of a name alone."""
MAX_PARTS = 20
"""Parts of a name. Each may be a folder, a file or a class, so many of them cost many lookups."""

_LINE = re.compile(r"(?s)(?P<path>.+?):(?P<line>[1-9]\d{0,8})(?:[-:]\d+)?")
_SEPARATOR = re.compile(r"[./]|::|(?<=[^./:#])#")
"""Between the parts of a name. A leading `#` marks a private name in JavaScript."""


class CodeRef(NamedTuple):
    """A file, one of its lines (0: none), or one of its symbols."""

    path: str
    qualname: str = ""
    line: int = 0

    @property
    def key(self) -> str:
        """The id of its node. A line belongs to its file."""
        return node_id(self.path, self.qualname)


def node_id(path: str, qualname: str = "") -> str:
    return f"{PREFIX}{short_ref(path, qualname)}"


def short_ref(path: str, qualname: str = "") -> str:
    """A reference as people write it."""
    return f"{path}#{qualname}" if qualname else path


def parse_ref(ref: str) -> CodeRef:
    """Parse the reference of a note. Raises InvalidInput for a path that is empty, absolute, or leads out of the
    repository."""
    plain = ref.strip().removeprefix(PREFIX).replace("\\", "/")
    path, _, qualname = plain.partition("#")
    lined = _LINE.fullmatch(path) if not qualname else None
    path = (lined["path"] if lined else path).removeprefix("./").rstrip("/")
    if not path or not _is_inside(path):
        raise InvalidInput(
            "code reference",
            f"{ref[:200]!r} is not a place in the repository",
            hint="Write path, path:line or path#qualname, from the root of the repository",
        )
    return CodeRef(path, qualname.strip(), int(lined["line"]) if lined else 0)


def file_of(root: Path, ref: str) -> str:
    """The file that a reference means: the one of that very name if it exists, else the path before a line or symbol.
    Raises InvalidInput as `parse_ref`."""
    parsed, whole = parse_ref(ref), ref.strip().removeprefix("./")
    return whole if _is_inside(whole) and os.path.isfile(f"{root}/{whole}") else parsed.path


def readings(ref: str) -> list[CodeRef]:
    """The possible meanings of a reference to a symbol or file, the likeliest first: paths may contain `#` and `:`, and
    names `#`."""
    plain = ref.removeprefix(PREFIX).removeprefix("./")
    cuts = dict.fromkeys((plain.rpartition("#"), plain.partition("#")))
    found = [CodeRef(plain), *(CodeRef(path, qualname) for path, _, qualname in cuts if path and qualname)]
    lined = _LINE.fullmatch(plain)
    return [*found, CodeRef(lined["path"], line=int(lined["line"]))] if lined else found


def check_ref(ref: str) -> None:
    """Raises InvalidInput for a text that cannot name code."""
    if not ref.strip() or len(ref) > MAX_REF or not is_utf8(ref):
        reason = "is empty" if not ref.strip() else "is no text, or longer than any name"
        raise InvalidInput("symbol", reason, hint="Name a function, a method or a class, or write path#name")


def name_parts(name: str) -> list[str]:
    """The parts of a qualified name in any language's notation; none for a text that cannot be a name."""
    if len(name) > MAX_NAME or not is_utf8(name):
        return []
    parts = [part for part in _SEPARATOR.split(name.removesuffix("()")) if part]
    return parts if len(parts) <= MAX_PARTS else []


def is_utf8(text: str) -> bool:
    """Whether a text can be stored. Arguments of a command line and names of files may have surrogates."""
    return text.isascii() or text == text.encode("utf-8", errors="replace").decode("utf-8")


def _is_inside(path: str) -> bool:
    return path.isprintable() and ".." not in path.split("/") and not path.startswith("/")
