"""References to code: `path`, `path:line`, `path#qualname` or `path#qualname:line`, also with `code:` before it."""

from __future__ import annotations

import re
from typing import NamedTuple

from clew.errors import InvalidInput

PREFIX = "code:"
LONGEST, LONGEST_NAME = 5_000, 500
"""Characters of a reference with a path, and of a name alone."""
MOST_PARTS = 20
"""Parts of a name. Each may be a folder, a file or a class, so many of them cost many lookups."""

_LINE = re.compile(r"(?s)(.+):(\d{1,9})")
_SEPARATOR = re.compile(r"[./]|::|(?<=[^./:#])#")
"""Between the parts of a name. A leading `#` marks a private name in JavaScript."""
_HINT = "Name a function, a method or a class, or write path#name"


class CodeRef(NamedTuple):
    """A file, a line of it, or a symbol in it. With a line too, the definition of the symbol at that line."""

    path: str
    qualname: str = ""
    line: int | None = None


def node_id(path: str, qualname: str = "") -> str:
    return f"{PREFIX}{short_ref(path, qualname)}"


def short_ref(path: str, qualname: str = "") -> str:
    """A reference as people write it."""
    return f"{path}#{qualname}" if qualname else path


def check_ref(ref: str) -> None:
    """Raises InvalidInput for a text that cannot name code."""
    if not ref.strip():
        raise InvalidInput("symbol", "is empty", hint=_HINT)
    if not is_text(ref):
        raise InvalidInput("symbol", "has bytes in it that are no text", hint=_HINT)
    if len(ref) > LONGEST or len(name_parts(ref.rpartition("#")[2] if "#" in ref else "")) > MOST_PARTS:
        raise _too_long(ref)


def check_name(name: str) -> None:
    """Raises InvalidInput for a name without a path that is too long."""
    if len(name) > LONGEST_NAME or len(name_parts(name)) > MOST_PARTS:
        raise _too_long(name)


def is_text(text: str) -> bool:
    """Whether a text can be stored and searched. Arguments of a command line may have surrogates."""
    return text.isascii() or text == text.encode("utf-8", errors="replace").decode("utf-8")


def name_parts(name: str) -> list[str]:
    """The parts of a qualified name in any language's notation."""
    return [part for part in _SEPARATOR.split(name.removesuffix("()")) if part]


def readings(ref: str) -> list[CodeRef]:
    """The possible meanings of a reference, the likeliest first: paths may contain `#` and `:`, names `#`."""
    plain = ref.removeprefix(PREFIX).removeprefix("./")
    cuts = dict.fromkeys((plain.rpartition("#"), plain.partition("#")))
    named = [CodeRef(path, qualname) for path, _, qualname in cuts if path and qualname]
    found = [CodeRef(plain), *named]
    if match := _LINE.fullmatch(plain):
        line = int(match[2])
        found.append(CodeRef(match[1], line=line))
        names = ((each, each.qualname.rpartition(":")[0]) for each in named)
        found += [each._replace(qualname=name, line=line) for each, name in names if name]
    return found


def _too_long(ref: str) -> InvalidInput:
    size = f"{ref[:40]!r}… has {len(ref):,} characters and {len(name_parts(ref)):,} parts"
    return InvalidInput("symbol", f"{size}, more than any name here", hint=_HINT)
