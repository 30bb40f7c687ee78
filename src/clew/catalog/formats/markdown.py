"""Markdown: a section for every heading, front matter as metadata.

Limits: 16 MB of text, 2,000 sections, and sections only in text of up to a million characters; a longer one is given
in parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from clew.catalog.formats.outline import OutlineHeading, build_outline
from clew.catalog.formats.prose import clean_heading
from clew.catalog.formats.tree import Branch, build_tree, read_text
from clew.catalog.formats.types import MARKDOWN, media_type
from clew.catalog.formats.yaml_text import load_yaml
from clew.catalog.resource import RawContent, ResourceNode
from clew.errors import FormatError
from clew.lazy_pattern import lazy_pattern

MAX_SECTIONED = 1_000_000
"""Finding headings exactly takes up to ten seconds for a million characters of the worst kind."""

MAX_FRONT_MATTER = 64_000
_TYPES = (MARKDOWN, "text/x-markdown", "text/mdx")
_CANDIDATE = lazy_pattern(r"^ {0,3}(?:#{1,6}(?:[ \t]|$)|=+[ \t]*$|-+[ \t]*$)", re.MULTILINE)
_FRONT_MATTER = lazy_pattern(r"---[ \t]*\n(?![ \t]*\n)(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)


class Markdown:
    """A document without headings is one node."""

    name = "markdown"

    def can_handle(self, content_type: str) -> bool:
        return media_type(content_type) in _TYPES

    def parse(self, content: RawContent, base_path: str) -> Sequence[ResourceNode]:
        text = read_text(content)
        front, metadata = read_front_matter(text)
        skipped = front.count("\n")
        headings = find_headings(text[len(front) :], first_line=skipped)
        root = build_outline(text.split("\n"), headings, content.name, prose_at=skipped)
        return build_tree(content, base_path, _use_metadata(root, metadata))


def read_front_matter(text: str) -> tuple[str, dict[str, Any]]:
    """The raw front matter and its parsed values. The values are empty if the front matter cannot be parsed or is
    unsafe."""
    found = _FRONT_MATTER.match(text, 0, MAX_FRONT_MATTER)
    if found is None:
        return "", {}
    try:
        metadata = load_yaml("front matter", found.group(1))
    except FormatError:
        return found.group(0), {}
    return (found.group(0), metadata) if isinstance(metadata, dict) else ("", {})


def find_headings(text: str, *, first_line: int = 0) -> list[OutlineHeading]:
    """The top-level headings of a text, in order, without headings inside code, quotes and lists. Lines count
    from `first_line` on. None are looked for in text over MAX_SECTIONED."""
    if len(text) > MAX_SECTIONED or not _CANDIDATE.search(text):
        return []
    return list(_read_headings(text, first_line))


def _read_headings(text: str, first_line: int) -> Iterator[OutlineHeading]:
    # Loaded here: only reading documents should pay for it.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    tokens = parser.parse(text)
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map:
            start, end = (first_line + line for line in token.map)
            name = clean_heading(inline.content, f"Section at line {start + 1}")
            yield OutlineHeading(level=int(token.tag[1:]), start=start, end=end, name=name)


def _use_metadata(root: Branch, metadata: dict[str, Any]) -> Branch:
    said = {field: metadata[field] for field in ("title", "name", "description") if _is_text(metadata.get(field))}
    name = said.get("title") or said.get("name") or root.name
    description = said.get("description") or root.description
    return msgspec.structs.replace(root, name=name, description=description, metadata=metadata)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())
