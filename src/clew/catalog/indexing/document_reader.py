"""Read one document from its source and turn it into drafts. An error affects this document only."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Sequence

import msgspec

from clew.catalog.indexing.document_nodes import IndexedDocument, SourcePlace, build_drafts
from clew.catalog.resource import ContentFormat, Pipeline, RawContent, RawDocument, ResourceNode
from clew.errors import ClewError, FormatError

MAX_BODY = 20_000_000
_log = logging.getLogger(__name__)


class Read(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of reading a document: drafts, no drafts because the content is unchanged, a content type that no
    format reads, or a failure before or after the fetch."""

    document: RawDocument
    hash: str = ""
    indexed: IndexedDocument | None = None
    unhandled: str = ""
    failure: str = ""
    was_fetched: bool = True


async def read_document(
    pipeline: Pipeline, place: SourcePlace, document: RawDocument, *, known_hash: str, now_ms: int
) -> Read:
    """Fetch a document and, unless its content has the known hash, parse it in another thread. Does not raise."""
    try:
        content = await pipeline.source.fetch_content(document.id)
    except Exception as error:  # the boundary of a task: the source may be anybody's code
        return Read(document=document, failure=explain(error), was_fetched=False)
    try:
        return await asyncio.to_thread(_read, pipeline, place, document, content, known_hash, now_ms)
    except Exception as error:  # the same for formats
        return Read(document=document, failure=explain(error))


def explain(error: Exception) -> str:
    """An error in one line. Foreign messages may contain secrets, so only the class of such an error is shown."""
    if isinstance(error, ClewError):
        return str(error)
    _log.debug("unexpected error in a source or format", exc_info=error)
    return f"unexpected {type(error).__name__}"


def _read(
    pipeline: Pipeline, place: SourcePlace, document: RawDocument, content: RawContent, known_hash: str, now_ms: int
) -> Read:
    if len(content.body) > MAX_BODY:
        raise FormatError(document.name, f"{len(content.body):,} bytes is over the limit of {MAX_BODY:,}")
    hash = _hash(content)
    if hash == known_hash:
        return Read(document=document, hash=hash)
    formats = [each for each in pipeline.formats if each.can_handle(content.content_type)]
    if not formats:
        return Read(document=document, unhandled=content.content_type or "unknown")
    nodes = _parse(formats, content, pipeline.base_path)
    return Read(document=document, hash=hash, indexed=build_drafts(nodes, place, document=document.id, now_ms=now_ms))


def _parse(formats: Sequence[ContentFormat], content: RawContent, base_path: str) -> Sequence[ResourceNode]:
    """The nodes from the first format that can parse the content. If none can, raises the FormatError of the first
    format."""
    first: FormatError | None = None
    for each in formats:
        try:
            return each.parse(content, base_path)
        except FormatError as error:
            first = first or error
    raise first or FormatError(content.name, "no format reads it")


def _hash(content: RawContent) -> str:
    """The hash of all document data that a format can use."""
    metadata = msgspec.json.encode(content.metadata, order="deterministic", enc_hook=repr)
    digest = hashlib.blake2b(digest_size=16)
    for part in (content.name.encode("utf-8", "replace"), content.content_type.encode(), metadata, content.body):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()
