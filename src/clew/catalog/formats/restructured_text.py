"""reStructuredText: a section for every title. The style of the title's rule determines its level. Only titles are
parsed; everything else stays text. As in docutils, each new style is one level deeper.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from clew.catalog.formats.outline import MAX_SECTIONS, OutlineHeading, build_outline
from clew.catalog.formats.prose import clean_name
from clew.catalog.formats.tree import build_tree, read_text
from clew.catalog.formats.types import RESTRUCTURED_TEXT, media_type
from clew.catalog.resource import RawContent, ResourceNode
from clew.lazy_pattern import lazy_pattern

_TYPES = (RESTRUCTURED_TEXT, "text/rst", "text/prs.fallenstein.rst")
_RULE = lazy_pattern(r"([!-/:-@\[-`{-~])\1*")
_LONG_ENOUGH = 4
"""A rule of at least this length marks a title, even if the title is longer than the rule."""

Title = tuple[int, int, str, str]
"""First line, line after the last, text, style."""


class ReStructuredText:
    name = "restructured-text"

    def can_handle(self, content_type: str) -> bool:
        return media_type(content_type) in _TYPES

    def parse(self, content: RawContent, base_path: str) -> Sequence[ResourceNode]:
        lines = read_text(content).split("\n")
        return build_tree(content, base_path, build_outline(lines, find_titles(lines), content.name))


def find_titles(lines: Sequence[str]) -> list[OutlineHeading]:
    """The titles in order, up to the maximum number of sections. The order in which styles first occur determines their
    levels."""
    levels: dict[str, int] = {}
    return [
        OutlineHeading(
            level=levels.setdefault(style, len(levels) + 1), start=start, end=end, name=clean_name(text, "Section")
        )
        for start, end, text, style in islice(_read_titles(lines), MAX_SECTIONS)
    ]


def _read_titles(lines: Sequence[str]) -> Iterator[Title]:
    at, is_free = 0, True
    while at < len(lines):
        title = _title_at(lines, at) if is_free else None
        if title is not None:
            yield title
            at = title[1]
        else:
            is_free = not lines[at].strip()
            at += 1


def _title_at(lines: Sequence[str], at: int) -> Title | None:
    """The title that begins at a line after a blank one: line and rule, or rule, line and the same rule."""
    first, second, third = (line.rstrip() for line in (*lines[at : at + 3], "", "", "")[:3])
    if _is_rule(first) and first == third and second and len(second) <= len(first) and not _is_rule(second):
        return at, at + 3, second.strip(), first[0] * 2
    if not first or first[0].isspace() or _is_rule(first) or not _is_rule(second):
        return None
    return (at, at + 2, first, second[0]) if len(second) >= min(len(first), _LONG_ENOUGH) else None


def _is_rule(line: str) -> bool:
    return _RULE.fullmatch(line) is not None
