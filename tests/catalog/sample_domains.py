"""Small sources, formats and domains for the tests of the catalog: real ones, whose documents live in memory."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from clew.catalog.domain import Domain
from clew.catalog.resource import (
    ContentFormat,
    ContentSource,
    DocumentListing,
    Pipeline,
    RawContent,
    RawDocument,
    ResourceNode,
    Skipped,
)
from clew.catalog.route import join_path
from clew.errors import FormatError, NotFound
from clew.trail.model.tags import path_part

OUTLINE = "text/outline"


class MemorySource:
    """A source whose documents are texts in a dict. It counts its calls, and fails when a test says so."""

    name = "memory"

    def __init__(
        self, texts: dict[str, str], id: str = "memory:one", *, is_local: bool = False, has_versions: bool = True
    ) -> None:
        self.texts = texts
        self.id = id
        self.is_local = is_local
        self.has_versions = has_versions
        self.types: dict[str, str] = {}
        self.skipped: list[Skipped] = []
        self.failures: dict[str, Exception] = {}
        self.list_failure: Exception | None = None
        self.gate: asyncio.Event | None = None
        self.waiting = asyncio.Event()
        self.listed = 0
        self.fetched: list[str] = []

    async def list_documents(self) -> DocumentListing:
        self.listed += 1
        if self.list_failure is not None:
            raise self.list_failure
        return DocumentListing(documents=[self._document(id) for id in self.texts], skipped=self.skipped)

    async def fetch_content(self, id: str) -> RawContent:
        self.fetched.append(id)
        if self.gate is not None:
            self.waiting.set()
            await self.gate.wait()
        if id in self.failures:
            raise self.failures[id]
        if id not in self.texts:
            raise NotFound("document", id)
        body = self.texts[id].encode("utf-8", "surrogatepass")
        return RawContent(id=id, name=id, content_type=self.types.get(id, OUTLINE), body=body)

    async def close(self) -> None:
        pass

    def _document(self, id: str) -> RawDocument:
        version = hashlib.sha256(self.texts[id].encode("utf-8", "surrogatepass")).hexdigest()
        type = self.types.get(id, OUTLINE)
        return RawDocument(id=id, name=id, content_type=type, version=version if self.has_versions else "")


class OutlineFormat:
    """A document is one node, and a child for each of its lines: `name = content`. The text `nonsense` is none."""

    name = "outline"

    def can_handle(self, content_type: str) -> bool:
        return content_type == OUTLINE

    def parse(self, content: RawContent, base_path: str) -> Sequence[ResourceNode]:
        if content.text == "nonsense":
            raise FormatError(content.id, "makes no sense")
        path = join_path(base_path, path_part(content.id))
        children = [_child(path, line) for line in content.text.splitlines() if "=" in line]
        return [ResourceNode(id=content.id, name=content.id, path=path, content=content.text, children=children)]


class FixedFormat:
    """Returns the same nodes for any input."""

    name = "fixed"

    def __init__(self, nodes: Iterable[ResourceNode]) -> None:
        self.nodes = list(nodes)

    def can_handle(self, content_type: str) -> bool:
        return True

    def parse(self, content: RawContent, base_path: str) -> Sequence[ResourceNode]:
        return self.nodes


def _child(path: str, line: str) -> ResourceNode:
    name, _, text = (part.strip() for part in line.partition("="))
    return ResourceNode(id=name, name=name, path=f"{path}/{path_part(name)}", content=text, type="line")


def a_domain(*sources: ContentSource, name: str = "docs", formats: Sequence[ContentFormat] = (), **more: Any) -> Domain:
    """A domain with one pipeline for each source."""
    pipelines = [Pipeline(source=source, formats=formats or [OutlineFormat()], **more) for source in sources]
    return Domain(name=name, description=f"What is known of {name}.", extractors=pipelines)
