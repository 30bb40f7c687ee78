"""Resources: where they come from, how they are read, and the tree they form.

A source lists and fetches documents, a format turns a document into nodes; `pipeline` brings them onto the trail.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

import msgspec

DEFAULT_TTL_MS = 14_400_000


class RawDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document that a source lists. `version` (a hash, an etag, a time) changes whenever the content does. It is
    empty if the source cannot know it without fetching."""

    id: str
    name: str
    content_type: str
    version: str = ""
    metadata: dict[str, Any] = {}


class RawContent(msgspec.Struct, frozen=True, kw_only=True):
    """A document as it was fetched."""

    id: str
    name: str
    content_type: str
    body: bytes
    metadata: dict[str, Any] = {}

    @property
    def text(self) -> str:
        """The body as text. Bytes that are not UTF-8 are replaced."""
        return self.body.decode("utf-8-sig", errors="replace")


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A document that was left out, and why."""

    document: str
    reason: str


class DocumentListing(msgspec.Struct, frozen=True, kw_only=True):
    """The documents of a source, and those that it skips."""

    documents: Sequence[RawDocument]
    skipped: Sequence[Skipped] = ()


class ContentSource(Protocol):
    """A source of documents. Every source passes tests/catalog/sources/contract.py."""

    @property
    def name(self) -> str:
        """The kind of source, such as `github`."""
        ...

    @property
    def id(self) -> str:
        """The id of the source, such as `github:prs:owner/repo`. It depends only on the settings and contains no
        secret."""
        ...

    @property
    def is_local(self) -> bool:
        """Whether re-reading the source is cheap, so that it happens at every start."""
        ...

    async def list_documents(self) -> DocumentListing:
        """All documents, in a stable order. Raises SourceError if the complete list cannot be read."""
        ...

    async def fetch_content(self, id: str) -> RawContent:
        """One document of the list. Raises SourceError, NotFound."""
        ...

    async def close(self) -> None:
        """Close connections. Calling it twice is harmless."""
        ...


class ResourceNode(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of knowledge. `path` is its address below `domain://resources/`, its base path included."""

    id: str
    name: str
    path: str
    content: str
    description: str = ""
    type: str = "document"
    quality: int = 50
    metadata: dict[str, Any] = {}
    children: Sequence[ResourceNode] = ()


class ContentFormat(Protocol):
    """Parses documents of some types. Pure: the same content gives the same nodes."""

    @property
    def name(self) -> str: ...

    def can_handle(self, content_type: str) -> bool: ...

    def parse(self, content: RawContent, base_path: str) -> Sequence[ResourceNode]:
        """The tree of a document, its paths beginning with `base_path`. Raises FormatError when it makes no sense."""
        ...


class Pipeline(msgspec.Struct, frozen=True, kw_only=True):
    """One way of filling a domain: a source, the formats that are tried in order, and for how long its documents are
    fresh."""

    source: ContentSource
    formats: Sequence[ContentFormat]
    base_path: str = ""
    cache_ttl_ms: int = DEFAULT_TTL_MS
    scopes: frozenset[str] = frozenset()


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """A resource that a domain defines in code. Its content is indexed; `get` calls `fetch` again."""

    path: str
    name: str
    description: str
    fetch: Callable[[Any], Awaitable[str]]
    """Takes the domain's client and returns the content."""
    scopes: frozenset[str] = frozenset()
