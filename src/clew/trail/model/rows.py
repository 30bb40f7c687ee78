"""Rows and records: how stored columns become a breadcrumb, a version and an event. The same in every backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from clew.clock import from_micros
from clew.errors import Corrupted
from clew.trail.model.breadcrumb import NEVER, Breadcrumb, Ttl, View, checksum_of
from clew.trail.model.event import Event, EventType

EVENT_TYPES: tuple[EventType, ...] = ("breadcrumb.created", "breadcrumb.updated", "breadcrumb.deleted")

_decode = msgspec.json.Decoder().decode
_decode_texts = msgspec.json.Decoder(tuple[str, ...]).decode

Audience = tuple[str, tuple[str, ...]]
"""An owner and the scopes that a record needs."""


def to_breadcrumb(row: Sequence[Any], audience: Audience) -> Breadcrumb:
    """The record of a row. Raises Corrupted when its content does not fit its checksum."""
    (_, id, _, version, schema_name, title, context, tags, llm_hints, entities, keywords, *rest) = row
    (
        ttl_kind,
        expires_at,
        max_reads,
        read_count,
        checksum,
        created_at,
        updated_at,
        created_by,
        updated_by,
    ) = rest
    checksum = to_checksum(checksum)
    hints = llm_hints.encode() if llm_hints is not None else None
    named = entities.encode() if entities is not None else None
    try:
        content = context.encode()
        tag_list = _decode_texts(tags)
        if checksum_of(id, title, content, tag_list, schema_name, hints, named) != checksum:
            raise Corrupted(f"the content of {id} version {version} does not match its checksum")
        return Breadcrumb(
            id=id,
            owner_id=audience[0],
            title=title,
            context=_decode(content),
            tags=tag_list,
            schema_name=schema_name,
            version=version,
            scopes=audience[1],
            llm_hints=_decode(hints) if hints is not None else None,
            ttl=NEVER if ttl_kind == "never" else to_ttl(ttl_kind, expires_at, max_reads, read_count),
            entities=_decode(named) if named is not None else None,
            entity_keywords=_decode_texts(keywords),
            checksum=checksum,
            created_at=from_micros(created_at),
            updated_at=from_micros(updated_at),
            created_by=created_by,
            updated_by=updated_by,
        )
    except (msgspec.DecodeError, AttributeError) as error:
        raise Corrupted(f"the content of {id} version {version} cannot be read: {error}") from error


def to_view(id: str, row: Sequence[Any]) -> tuple[View, dict[str, Any] | None]:
    """A row of VIEWED as it is stored, and its own llm_hints. Raises Corrupted as `to_breadcrumb` does."""
    _, version, schema_name, title, context, tags, llm_hints, entities, _, checksum, updated_at = row
    hints = llm_hints.encode() if llm_hints is not None else None
    named = entities.encode() if entities is not None else None
    try:
        content = context.encode()
        tag_list = _decode_texts(tags)
        if checksum_of(id, title, content, tag_list, schema_name, hints, named) != to_checksum(checksum):
            raise Corrupted(f"the content of {id} version {version} does not match its checksum")
        view = View(
            id=id,
            title=title,
            context=_decode(content),
            tags=tag_list,
            schema_name=schema_name,
            version=version,
            updated_at=from_micros(updated_at),
        )
        return view, _decode(hints) if hints is not None else None
    except (msgspec.DecodeError, AttributeError) as error:
        raise Corrupted(f"the content of {id} version {version} cannot be read: {error}") from error


def to_id(stored: bytes) -> str:
    """The id of an event's breadcrumb, which is stored as bytes, and by earlier versions as text."""
    digits = stored.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def to_checksum(stored: Any) -> str:
    """A checksum as it is shown. It is stored as bytes, and by earlier versions as text."""
    return stored.hex() if isinstance(stored, bytes) else str(stored)


def to_ttl(kind: Any, expires_at: int | None, max_reads: int | None, read_count: int) -> Ttl:
    return Ttl(
        kind=kind,
        expires_at=from_micros(expires_at) if expires_at is not None else None,
        max_reads=max_reads,
        read_count=read_count,
    )


def to_event(row: Sequence[Any], owner_id: str, breadcrumb: Breadcrumb | None) -> Event:
    """The event of a row (seq, type, rid, id, version, audience, schema_name, tags, at)."""
    seq, type_, _, id, version, _, schema_name, tags, at = row
    return Event(
        seq=seq,
        type=EVENT_TYPES[type_],
        breadcrumb_id=id if isinstance(id, str) else to_id(id),
        owner_id=owner_id,
        version=version,
        schema_name=schema_name,
        tags=_decode_texts(tags),
        at=from_micros(at),
        breadcrumb=breadcrumb,
    )
