"""The headings of markdown that are marked at their beginning."""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_HEADING = 300

_MARKED = re.compile(r"(#{1,6}+)\s++(\S.*+)")


class Heading(NamedTuple):
    """Its level, from 1, and its text without the marks, cut where nobody reads on."""

    level: int
    text: str


def read_heading(line: str) -> Heading | None:
    """The heading that a line is, if it is one."""
    found = _MARKED.fullmatch(line)
    if found is None:
        return None
    text = found[2].rstrip()
    return Heading(len(found[1]), (text.rstrip("#").rstrip() or text)[:MAX_HEADING])
