"""The lines of an exported trail, and the conversion between lines and records."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from clew.errors import InvalidInput, TooLarge
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft, Ttl, encode_canonical
from clew.trail.model.edge import Edge

FORMAT = 1
MAX_LINE = 16_000_000


class ExportHeader(msgspec.Struct, frozen=True, kw_only=True, tag="header", tag_field="kind"):
    """The first line: the version of this format, and whose trail it was."""

    format: int
    owner_id: str


class BreadcrumbLine(msgspec.Struct, frozen=True, kw_only=True, tag="breadcrumb", tag_field="kind"):
    """One version of a breadcrumb. Consecutive lines of one id are its history, the present version last."""

    id: str
    version: int
    title: str
    context: dict[str, Any]
    tags: tuple[str, ...] = ()
    schema_name: str | None = None
    scopes: tuple[str, ...] = ()
    llm_hints: dict[str, Any] | None = None
    ttl: Ttl = Ttl()
    entities: dict[str, Any] | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None


class EdgeLine(msgspec.Struct, frozen=True, kw_only=True, tag="edge", tag_field="kind"):
    """One edge between breadcrumbs of the same export."""

    source: str
    target: str
    type: str
    weight: float = 1.0
    metadata: dict[str, Any] = {}


Line = ExportHeader | BreadcrumbLine | EdgeLine

_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)
_encode = msgspec.json.Encoder().encode


def parse_line(raw: bytes | str) -> Line:
    """One line of an export. Raises InvalidInput."""
    if len(raw) > MAX_LINE:
        raise TooLarge("line", len(raw), MAX_LINE)
    try:
        return _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidInput("export", f"has a line that cannot be read: {error}") from None


def content_of(version: Breadcrumb | BreadcrumbLine) -> bytes:
    """The content by which two versions are compared: everything that a caller writes, except the TTL and the
    entities."""
    tags, scopes = list(dict.fromkeys(version.tags)), sorted(set(version.scopes))
    parts = [version.title, version.context, tags, version.schema_name, scopes, version.llm_hints]
    return encode_canonical(parts, "line")


def line_of(breadcrumb: Breadcrumb) -> BreadcrumbLine:
    fields = {field.name: getattr(breadcrumb, field.name) for field in msgspec.structs.fields(BreadcrumbLine)}
    return BreadcrumbLine(**fields)


def edge_line_of(edge: Edge) -> EdgeLine:
    return EdgeLine(source=edge.source, target=edge.target, type=edge.type, weight=edge.weight, metadata=edge.metadata)


def edge_of(line: EdgeLine) -> Edge:
    return Edge(source=line.source, target=line.target, type=line.type, weight=line.weight, metadata=line.metadata)


def draft_of(line: BreadcrumbLine) -> Draft:
    return Draft(id=line.id, **_written(line))


def change_of(line: BreadcrumbLine) -> Change:
    return Change(**_written(line))


def _written(line: BreadcrumbLine) -> dict[str, Any]:
    names = ("title", "context", "tags", "schema_name", "scopes", "llm_hints", "ttl", "entities")
    return {name: getattr(line, name) for name in names}


def to_text(line: Line) -> str:
    return _encode(line).decode() + "\n"
