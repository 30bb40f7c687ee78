"""Splits a text with headings into sections, without losing a line. A section's text is its heading and the lines up to
the next heading.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from clew.catalog.formats.prose import describe
from clew.catalog.formats.tree import Branch

MAX_SECTIONS = 2_000
"""The maximum number of sections. Further headings become text of the last section."""


class OutlineHeading(msgspec.Struct, frozen=True, kw_only=True):
    """A heading on the lines from `start` to before `end`. Level 1 is the outermost."""

    level: int
    start: int
    end: int
    name: str


def build_outline(lines: Sequence[str], headings: Sequence[OutlineHeading], name: str, *, prose_at: int = 0) -> Branch:
    """The document with its sections below it. If the first heading is the only one at the top level, it is the
    document's title. The search for a description starts at line `prose_at`."""
    headings = headings[:MAX_SECTIONS]
    is_titled = bool(headings) and all(heading.level > headings[0].level for heading in headings[1:])
    inner = headings[1:] if is_titled else headings
    first = inner[0].start if inner else len(lines)
    root = Branch(
        name=headings[0].name if is_titled else name,
        text=_join(lines[:first]),
        description=describe(_join(lines[headings[0].end if is_titled else prose_at : first])),
        type="document",
    )
    _hang_sections(root, lines, inner)
    return root


def _hang_sections(root: Branch, lines: Sequence[str], headings: Sequence[OutlineHeading]) -> None:
    above: list[tuple[int, Branch]] = [(0, root)]
    ends = [*(heading.start for heading in headings[1:]), len(lines)]
    for heading, end in zip(headings, ends, strict=False):
        section = Branch(
            name=heading.name,
            text=_join(lines[heading.start : end]),
            description=describe(_join(lines[heading.end : end])),
        )
        while above[-1][0] >= heading.level:
            above.pop()
        above[-1][1].children.append(section)
        above.append((heading.level, section))


def _join(lines: Sequence[str]) -> str:
    return "\n".join(lines)
