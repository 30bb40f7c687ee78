"""What the trail knows about its own schemas and TTL policies: read from breadcrumbs, fresh on every use.

A `schema.def.v1` gives a schema its JSON Schema, default llm_hints and embedding policy; a `ttl.policy.v1` gives
matching breadcrumbs their expiry. Only definitions without scopes count, and only for their own owner.
"""

from __future__ import annotations

from typing import Any

import apsw
import msgspec

from clew.errors import InvalidInput
from clew.trail.hints import check_hints
from clew.trail.policies import TtlPolicy, parse_policy
from clew.trail.validation import SchemaCheck, compile_schema

SCHEMA, POLICY = "schema.def.v1", "ttl.policy.v1"

_decode = msgspec.json.Decoder().decode


class SchemaDef(msgspec.Struct, frozen=True, kw_only=True):
    """What a `schema.def.v1` says about one schema."""

    check: SchemaCheck | None = None
    llm_hints: dict[str, Any] | None = None
    embeds: bool = True


UNDEFINED = SchemaDef()


class Definitions:
    """One owner's schema definitions and policies at a moment."""

    def __init__(self, schemas: dict[str, SchemaDef], policies: tuple[TtlPolicy, ...]) -> None:
        self.schemas = schemas
        self.policies = policies

    def of(self, schema_name: str | None) -> SchemaDef:
        return self.schemas.get(schema_name or "", UNDEFINED)


class DefinitionBook:
    """Definitions by owner, read again when an event says that one changed, whichever process changed it."""

    def __init__(self) -> None:
        self._seq = -1
        self._books: dict[str, Definitions] = {}

    def of(self, connection: apsw.Connection, owner_id: str) -> Definitions:
        seq = max(
            int(connection.execute("SELECT coalesce(max(seq), 0) FROM events WHERE schema_name = ?", (name,)).get)
            for name in (SCHEMA, POLICY)
        )
        if seq != self._seq:
            self._books, self._seq = {}, seq
        if owner_id not in self._books:
            self._books[owner_id] = _read_definitions(connection, owner_id)
        return self._books[owner_id]


def _read_definitions(connection: apsw.Connection, owner_id: str) -> Definitions:
    rows = connection.execute(
        "SELECT b.schema_name, b.context FROM breadcrumbs b JOIN audiences a ON a.id = b.audience"
        " WHERE a.owner_id = ? AND a.scopes = '[]' AND b.schema_name IN (?, ?) ORDER BY b.rid",
        (owner_id, SCHEMA, POLICY),
    ).fetchall()
    schemas: dict[str, SchemaDef] = {}
    policies: list[TtlPolicy] = []
    for kind, context in rows:
        if kind == POLICY:
            policies.append(parse_policy(_decode(context)))
        else:
            name, definition = parse_definition(_decode(context))
            schemas[name] = definition
    return Definitions(schemas, tuple(policies))


def parse_definition(context: dict[str, Any]) -> tuple[str, SchemaDef]:
    """The schema name and meaning of a `schema.def.v1` context. Raises InvalidInput when it cannot work."""
    name = context.get("schema_name")
    if not isinstance(name, str) or not name:
        raise InvalidInput("context.schema_name", "must name the schema that is defined")
    embeds = context.get("embed", "auto")
    if embeds not in ("auto", "never"):
        raise InvalidInput("context.embed", "must be auto or never")
    hints, schema = context.get("llm_hints"), context.get("json_schema")
    if hints is not None:
        check_hints(hints)
    check = compile_schema(schema) if schema is not None else None
    return name, SchemaDef(check=check, llm_hints=hints, embeds=embeds == "auto")


def check_definition(schema_name: str | None, context: dict[str, Any]) -> None:
    """Refuse a definition that could not be used when it is written, not when it is needed."""
    if schema_name == SCHEMA:
        parse_definition(context)
    elif schema_name == POLICY:
        parse_policy(context)
