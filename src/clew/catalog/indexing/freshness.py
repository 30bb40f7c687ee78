"""Whether a source is fresh, by the age of its oldest document."""

from __future__ import annotations

import hashlib

import msgspec

from clew.access import Principal
from clew.catalog.domain import Domain
from clew.catalog.indexing.document_nodes import effective_scopes, place_of
from clew.catalog.indexing.source_ledger import SourceEntry, SourceLedger, now_ms
from clew.catalog.resource import Pipeline
from clew.clock import Clock
from clew.trail.store import Trail

EDITION = "1"
"""The version of the indexing code. Increment it when nodes are indexed differently, so that all documents are indexed
again."""


class SourceFreshness(msgspec.Struct, frozen=True, kw_only=True):
    """`age_ms` is None when the source was never indexed whole; `reason` says why it is not fresh."""

    source_id: str
    age_ms: int | None
    is_fresh: bool
    reason: str = ""


async def read_freshness(
    trail: Trail, domain: Domain, pipeline: Pipeline, *, by: Principal, clock: Clock
) -> SourceFreshness:
    """The freshness of one source as of now."""
    entry = await SourceLedger(trail, place_of(domain, pipeline, by.owner_id), by=by, clock=clock).find()
    return judge(entry, domain, pipeline, now_ms(clock))


def judge(entry: SourceEntry | None, domain: Domain, pipeline: Pipeline, now: int) -> SourceFreshness:
    """Decide whether a source is fresh: whether its oldest document is younger than the pipeline's TTL. A document's
    age counts from its last successful verification. A local source is never fresh."""
    age = now - entry.oldest if entry is not None and entry.oldest else None
    reason = _reason(entry, age, domain, pipeline)
    age = max(0, age) if age is not None else None
    return SourceFreshness(source_id=pipeline.source.id, age_ms=age, is_fresh=not reason, reason=reason)


def recipe_of(pipeline: Pipeline) -> str:
    """A digest of the settings that determine the nodes of a document. When it changes, unchanged documents are indexed
    again."""
    formats = [f"{type(each).__qualname__} {each.name}" for each in pipeline.formats]
    text = "\n".join((EDITION, pipeline.base_path, *formats))
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def _reason(entry: SourceEntry | None, age: int | None, domain: Domain, pipeline: Pipeline) -> str:
    if entry is None or not entry.verified_at:
        return "it was never indexed"
    if not entry.is_whole:
        return "its last refresh was interrupted"
    if pipeline.source.is_local:
        return "it is local, and looking again costs nothing"
    if entry.recipe != recipe_of(pipeline) or tuple(entry.scopes) != effective_scopes(domain, pipeline):
        return "its formats, base path or scopes have changed"
    if age is None:
        return "one of its documents could never be read"
    if age < 0:
        return "its last verification is in the future, because the clock was set back"
    return "" if age < pipeline.cache_ttl_ms else "its oldest document is older than its TTL"
