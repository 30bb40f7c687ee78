"""A markdown file with front matter, taken apart: values with their lines, the body with its first line.

Real files are messy. What can be read is read, and what is wrong with it is told beside it.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from clew.skills.problems import Problem

MAX_BYTES = 1_048_576
"""A larger file is not a definition."""
_MAX_META = 65_536
_FENCE = re.compile(r"-{3,}[ \t]*")
_PLAIN = re.compile(r"([A-Za-z][\w-]*)[ \t]*:[ \t]*(.*)")


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """One file. `lines` tells where each key of the front matter is (1-based), `body_line` where the body begins.

    `has_meta` is False where there is no front matter at all. A body has `\\n` for its line ends.
    """

    path: str
    meta: dict[str, Any] = {}
    lines: dict[str, int] = {}
    body: str = ""
    body_line: int = 1
    has_meta: bool = False
    problems: tuple[Problem, ...] = ()

    def line_of(self, key: str) -> int:
        """Where a key is, or the first line."""
        return self.lines.get(key, 1)


def read_document(raw: bytes, path: str) -> Document:
    """Take a file apart. Never raises: a file that is no text has no body, and says why."""
    if len(raw) > MAX_BYTES:
        return _unreadable(path, f"{len(raw):,} bytes are over the limit of {MAX_BYTES:,}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _unreadable(path, f"is not UTF-8 text (byte {error.start})")
    if "\x00" in text:
        return _unreadable(path, "holds NUL characters: it is no text")
    return _split(text.replace("\r\n", "\n").replace("\r", "\n"), path)


def _split(text: str, path: str) -> Document:
    lines = text.split("\n")
    if not _FENCE.fullmatch(lines[0]):
        return Document(path=path, body=text)
    end = next((n for n, line in enumerate(lines[1:], 1) if _FENCE.fullmatch(line)), None)
    if end is None:
        problem = Problem(
            kind="parse", path=path, line=1, message="the front matter has no end", hint="Close it with ---"
        )
        return Document(path=path, body=text, problems=(problem,))
    body = "\n".join(lines[end + 1 :])
    meta, places, problems = _read_meta("\n".join(lines[1:end]), path)
    return Document(
        path=path, meta=meta, lines=places, body=body, body_line=end + 2, has_meta=True, problems=tuple(problems)
    )


def _read_meta(text: str, path: str) -> tuple[dict[str, Any], dict[str, int], list[Problem]]:
    """The values of a front matter, where they are, and what is wrong. Bad YAML is read line by line."""
    import yaml  # 20 ms: only who reads definitions pays

    if len(text) > _MAX_META:
        return {}, {}, [Problem(kind="parse", path=path, line=1, message="the front matter is too long")]
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is not None and _has_aliases(text):
            raise yaml.YAMLError("it uses anchors, which could grow without end")
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = (mark.line if mark is not None else 0) + 2
        reason = getattr(error, "problem", None) or str(error).split("\n", 1)[0]
        meta, places = _read_plainly(text)
        problem = Problem(
            kind="parse",
            path=path,
            line=line,
            message=f"the front matter is not valid YAML: {reason}",
            hint="Put quotes around a value that holds `: ` or begins with a special character",
        )
        return meta, places, [problem]
    if node is None:
        return {}, {}, []
    if not isinstance(node, yaml.MappingNode):
        return {}, {}, [Problem(kind="parse", path=path, line=2, message="the front matter is not `key: value` lines")]
    places = {str(key.value): key.start_mark.line + 2 for key, _ in node.value if isinstance(key, yaml.ScalarNode)}
    return {str(key): item for key, item in value.items()}, places, []


def _has_aliases(text: str) -> bool:
    import yaml  # as above

    return any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader))


def _read_plainly(text: str) -> tuple[dict[str, Any], dict[str, int]]:
    """Top-level `key: value` lines of what is no YAML, values as they stand, continued by indented lines."""
    meta: dict[str, Any] = {}
    places: dict[str, int] = {}
    last = ""
    for number, line in enumerate(text.split("\n"), 2):
        if (found := _PLAIN.fullmatch(line)) is not None:
            last = found[1]
            meta[last] = found[2].strip().strip("\"'")
            places[last] = number
        elif last and line[:1] in (" ", "\t") and line.strip():
            meta[last] = f"{meta[last]} {line.strip()}".strip()
    return meta, places


def _unreadable(path: str, reason: str) -> Document:
    return Document(path=path, problems=(Problem(kind="parse", path=path, message=reason),))
