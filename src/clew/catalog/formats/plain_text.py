"""Plain text and source code: one node, or parts of about 4,000 characters. The last format that is tried."""

from __future__ import annotations

from collections.abc import Sequence

from clew.catalog.formats.code import describe_code
from clew.catalog.formats.prose import describe, one_line
from clew.catalog.formats.tree import Branch, build_tree, read_text
from clew.catalog.formats.types import SOURCE_CODE, media_type
from clew.catalog.resource import RawContent, ResourceNode


class PlainText:
    """Any text. Code is cut at blank lines. Its description is the name of the file, then its topic."""

    name = "plain-text"

    def can_handle(self, content_type: str) -> bool:
        return media_type(content_type).startswith("text/")

    def parse(self, content: RawContent, base_path: str) -> Sequence[ResourceNode]:
        return build_tree(content, base_path, read_branch(content))


def read_branch(content: RawContent) -> Branch:
    """A text with its description. The description of code begins with the name of the file."""
    text = read_text(content)
    is_code = media_type(content.content_type) == SOURCE_CODE
    beginning = describe_code(text) if is_code else describe(text) or one_line(text[:300])
    return Branch(
        name=content.name,
        text=text,
        description=f"{content.name}: {beginning}" if is_code else beginning,
        type="code" if is_code else "document",
    )
