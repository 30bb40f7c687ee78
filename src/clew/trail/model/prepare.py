"""From a draft to a stored record: check, encode, extract text and keywords, embed. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from math import hypot, inf
from struct import pack
from typing import Any

import msgspec

from clew.errors import EmbedderMismatch, InvalidInput
from clew.trail.model.breadcrumb import (
    MAX_DIMENSION,
    Breadcrumb,
    Change,
    Draft,
    Ttl,
    check_context,
    check_id,
    check_key,
    check_schema_name,
    check_scopes,
    check_tags,
    check_title,
    check_ttl,
    checksum_of,
    encode_canonical,
    encode_texts,
)
from clew.trail.model.policies import TtlPolicy, ttl_for
from clew.trail.model.readable import ReadableText, pointers, readable
from clew.trail.model.step_order import StepOrder
from clew.trail.model.validation import SchemaCheck
from clew.trail.store import Embedder
from clew.trail.templates.hints import HintPlan, apply_hints, check_hints, resolve_hints

UNIT = 1e-6
"""A vector whose length differs from 1 by less than this is not normalized."""
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Prepared(msgspec.Struct, kw_only=True):
    """A breadcrumb's next version, ready to be written once `embed_all` has given it its vector. `as_of` is the event
    that last changed the definitions it was checked against."""

    id: str
    key: str | None
    title: str
    context: str
    view: dict[str, Any]
    tags: tuple[str, ...]
    tags_json: str
    schema_name: str | None
    scopes: tuple[str, ...]
    llm_hints: str | None
    ttl: Ttl
    entities: str | None
    keywords: tuple[str, ...]
    keywords_json: str
    checksum: str
    text: str | None
    vector: bytes | None
    is_new_ttl: bool = True
    as_of: int | None = None


class SchemaRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of the definitions for the breadcrumb being written. A breadcrumb that is not embedded gets no keywords
    either."""

    check: SchemaCheck | None = None
    order: StepOrder | None = None
    llm_hints: dict[str, Any] | None = None
    hint_plan: HintPlan | None = None
    embeds: bool = True
    policies: tuple[TtlPolicy, ...] = ()


def prepare_draft(draft: Draft, rules: SchemaRules, embedder: Embedder | None, now: datetime, new_id: str) -> Prepared:
    """Check a draft against the limits and rules. Raises InvalidInput or SchemaViolation naming the field."""
    tags = check_tags(draft.tags)
    schema_name = check_schema_name(draft.schema_name)
    ttl = check_ttl(draft.ttl) if draft.ttl is not None else ttl_for(rules.policies, schema_name, tags, now)
    return _prepare(
        draft=draft,
        tags=tags,
        schema_name=schema_name,
        ttl=ttl,
        rules=rules,
        embedder=embedder,
        id=new_id if draft.id is None else check_id(draft.id),
    )


def prepare_change(
    before: Breadcrumb, change: Change, rules: SchemaRules, embedder: Embedder | None, vector: bytes | None
) -> Prepared:
    """The next version of a breadcrumb. `vector` is the current vector, which is kept if the text does not change."""
    changed = {name: value for name in CHANGEABLE if (value := getattr(change, name)) is not msgspec.UNSET}
    fields = {name: getattr(before, name) for name in CHANGEABLE if name != "embedding"} | changed
    ttl = fields.pop("ttl")
    draft = Draft(**fields, embed=change.embed)
    ttl = check_ttl(ttl) if "ttl" in changed else ttl
    tags, schema_name = check_tags(draft.tags), check_schema_name(draft.schema_name)
    prepared = _prepare(
        draft=draft,
        tags=tags,
        schema_name=schema_name,
        ttl=ttl,
        rules=rules,
        embedder=embedder,
        id=before.id,
    )
    text_fields = {"title", "context", "schema_name", "llm_hints", "embedding"}
    if text_fields.isdisjoint(changed) and change.embed == "auto":
        prepared.text, prepared.vector = None, vector
    prepared.is_new_ttl = "ttl" in changed
    return prepared


CHANGEABLE = (
    "title",
    "context",
    "tags",
    "schema_name",
    "scopes",
    "llm_hints",
    "ttl",
    "entities",
    "embedding",
)


def _prepare(
    *,
    draft: Draft,
    tags: tuple[str, ...],
    schema_name: str | None,
    ttl: Ttl,
    rules: SchemaRules,
    embedder: Embedder | None,
    id: str,
) -> Prepared:
    title, context = check_title(draft.title), check_context(draft.context)
    if draft.llm_hints is not None:
        check_hints(draft.llm_hints)
    if rules.check is not None and schema_name is not None:
        rules.check.check(draft.context, schema_name, len(context))
    if rules.order is not None:
        rules.order.check(draft.context)
    hints = encode_canonical(draft.llm_hints, "llm_hints") if draft.llm_hints is not None else None
    entities = encode_canonical(draft.entities, "entities") if draft.entities is not None else None
    # from the stored form: the order of keys must not depend on who wrote them, or re-embedding would differ
    view = _decode(context)
    shown = read_as(title, view, draft.llm_hints, rules.llm_hints) if rules.embeds else None
    keywords = pointers(tags, shown) if shown is not None else ()
    embeds = embedder is not None and draft.embed == "auto" and draft.embedding is None
    return Prepared(
        id=id,
        key=check_key(draft.idempotency_key),
        title=title,
        context=context.decode(),
        view=view,
        tags=tags,
        tags_json=encode_texts(tags),
        schema_name=schema_name,
        scopes=check_scopes(draft.scopes),
        llm_hints=hints.decode() if hints is not None else None,
        ttl=ttl,
        entities=entities.decode() if entities is not None else None,
        keywords=keywords,
        keywords_json=encode_texts(keywords),
        checksum=checksum_of(id, title, context, tags, schema_name, hints, entities),
        text=embedding_text(shown) if embeds and shown is not None else None,
        vector=pack_vector(draft.embedding, embedder) if draft.embedding is not None else None,
    )


def as_breadcrumb(prepared: Prepared, *, owner_id: str, agent_id: str | None, now: datetime) -> Breadcrumb:
    """Version 1 as a read would return it."""
    hints, entities = prepared.llm_hints, prepared.entities
    return Breadcrumb(
        id=prepared.id,
        owner_id=owner_id,
        title=prepared.title,
        context=prepared.view,
        tags=prepared.tags,
        schema_name=prepared.schema_name,
        version=1,
        scopes=prepared.scopes,
        llm_hints=_decode(hints) if hints is not None else None,
        ttl=prepared.ttl,
        entities=_decode(entities) if entities is not None else None,
        entity_keywords=prepared.keywords,
        checksum=prepared.checksum,
        created_at=now,
        updated_at=now,
        created_by=agent_id,
        updated_by=agent_id,
    )


def read_as(
    title: str, context: dict[str, Any], hints: dict[str, Any] | None, schema_hints: dict[str, Any] | None
) -> ReadableText:
    """The readable form that is searched and embedded: the context after its hints, never raw JSON."""
    chosen = resolve_hints(hints, schema_hints)
    return readable(title, apply_hints(context, chosen, title=title) if chosen else context)


def embedding_text(shown: ReadableText) -> str:
    """The text for the embedder. It is cut at 4,000 characters, because the model ignores the rest anyway."""
    return ". ".join(part for part in (shown.title, shown.description, shown.content) if part)[:4_000]


def embed_all(prepared: Sequence[Prepared], embedder: Embedder | None) -> None:
    """Compute the vectors of all versions that need one, in one batch."""
    waiting = [each for each in prepared if each.text is not None]
    if embedder is None or not waiting:
        return
    for each, vector in zip(waiting, embedder.embed([each.text or "" for each in waiting]), strict=True):
        each.vector = vector if vector.strip(b"\0") else None


def pack_vector(numbers: Sequence[float], embedder: Embedder | None) -> bytes:
    """A caller's own vector as unit-length float32. It must have the dimension of the trail's embedder."""
    if not 1 <= len(numbers) <= MAX_DIMENSION:
        raise InvalidInput("embedding", f"must have 1 to {MAX_DIMENSION:,} numbers")
    if embedder is not None and len(numbers) != embedder.dimension:
        raise EmbedderMismatch(f"{embedder.dimension} dimensions ({embedder.name})", f"{len(numbers)} dimensions")
    try:
        length = hypot(*numbers)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput("embedding", "must hold numbers only") from None
    if not 0.0 < length < inf:
        raise InvalidInput("embedding", "must hold finite numbers that are not all zero")
    unit = numbers if abs(length - 1) < UNIT else [number / length for number in numbers]
    return pack(f"<{len(unit)}f", *unit)
