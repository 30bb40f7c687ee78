"""Converts the branches that a format found to nodes: assigns paths and ids, splits long texts, and enforces the limits
of a document."""

from __future__ import annotations

from typing import Any

import msgspec

from clew.catalog.formats.code import describe_code
from clew.catalog.formats.paths import NodePaths, document_path, slug
from clew.catalog.formats.prose import clean_name, clean_text, cut_sentence, describe, one_line, split_parts
from clew.catalog.resource import RawContent, ResourceNode
from clew.catalog.route import join_path
from clew.errors import FormatError
from clew.secrecy import mask_private_keys

MAX_BODY = 16_000_000
"""The maximum size of a document in bytes. A larger document is refused."""

MAX_NODES = 10_000
"""The maximum number of nodes of a document. A document with more is refused."""

MAX_DEPTH = 70
"""The maximum depth of children. It is more than the number of heading styles in reStructuredText."""

_NAMED_CHILDREN = 20


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """A node that a format found, with its own text, without that of its children. `path` is relative to its parent;
    the default is the slug of the name."""

    name: str
    text: str
    path: str = ""
    description: str = ""
    type: str = "section"
    metadata: dict[str, Any] = {}
    children: list[Branch] = []


def read_text(content: RawContent) -> str:
    """The text of a document without private keys, its line ends all of one kind. Raises FormatError when it is over
    MAX_BODY."""
    check_size(content)
    return mask_private_keys(clean_text(content.text))


def check_size(content: RawContent) -> None:
    if len(content.body) > MAX_BODY:
        raise FormatError(content.id, f"{len(content.body):,} bytes is over the limit of {MAX_BODY:,}")


def build_tree(content: RawContent, base_path: str, root: Branch) -> tuple[ResourceNode, ...]:
    """The nodes of a document. The root has the id of the document. Its path is that id below `base_path`, unless it
    names another. Raises FormatError when there are too many nodes, or they go too deep."""
    path = join_path(base_path, root.path) if root.path else document_path(base_path, content.id)
    return (_Tree(content).grow(root, path, 0),)


class _Tree:
    """Builds the tree of one document; keeps track of claimed paths and the number of nodes."""

    def __init__(self, content: RawContent) -> None:
        self._content = content
        self._paths = NodePaths()
        self._root = ""
        self._count = 0

    def grow(self, branch: Branch, path: str, depth: int) -> ResourceNode:
        if depth > MAX_DEPTH:
            raise FormatError(self._content.id, f"has children more than {MAX_DEPTH} levels deep")
        path = self._claim(path)
        # A key that is cut into parts could no longer be distinguished from other text.
        text = mask_private_keys(clean_text(branch.text))
        first, *others = [part.strip("\n") for part in split_parts(text) if part.strip()] or [""]
        name = clean_name(branch.name, self._content.name)
        parts = [self._grow_part(branch, name, path, text, number) for number, text in enumerate(others, 2)]
        children = [
            self.grow(child, join_path(path, child.path or slug(child.name)), depth + 1) for child in branch.children
        ]
        return ResourceNode(
            id=self._id_of(path),
            name=name,
            path=path,
            content=first,
            description=_describe(branch, name),
            type=branch.type,
            metadata={**branch.metadata, "parts": len(others) + 1} if others else branch.metadata,
            children=(*parts, *children),
        )

    def _grow_part(self, branch: Branch, name: str, parent: str, text: str, number: int) -> ResourceNode:
        path = self._claim(join_path(parent, f"part-{number}"))
        about = (describe_code(text) if branch.type == "code" else describe(text)) or one_line(text[:500])
        return ResourceNode(
            id=self._id_of(path),
            name=f"{name} (part {number})",
            path=path,
            content=text,
            description=cut_sentence(f"Part {number} of {name}: {about}"),
            type="part",
            metadata={"part": number},
        )

    def _claim(self, path: str) -> str:
        self._count += 1
        if self._count > MAX_NODES:
            raise FormatError(self._content.id, f"has more than {MAX_NODES:,} sections, parts or entries")
        claimed = self._paths.claim(path)
        self._root = self._root or claimed
        return claimed

    def _id_of(self, path: str) -> str:
        """The id of a node, derived from its path. Paths are unique, so ids are too."""
        if path == self._root:
            return self._content.id
        return f"{self._content.id}#{path.removeprefix(self._root + '/')}"


def _describe(branch: Branch, name: str) -> str:
    """The description of a branch; without one, the names of its children, else its own name."""
    if branch.description:
        return cut_sentence(one_line(branch.description[:2_000]))
    return cut_sentence(one_line(", ".join(child.name[:100] for child in branch.children[:_NAMED_CHILDREN]))) or name
