"""What the trail knows about its own schemas and TTL policies: read from breadcrumbs, fresh on every use.

A `schema.def.v1` gives a schema its JSON Schema, default llm_hints and embedding policy; a `ttl.policy.v1` gives
matching breadcrumbs their expiry. Only definitions without scopes count, and only for their own owner.
"""

from __future__ import annotations

from math import inf
from typing import Any

import msgspec

from clew.errors import InvalidInput
from clew.trail.model.policies import TtlPolicy, parse_policy
from clew.trail.model.prepare import Rules
from clew.trail.model.step_order import StepOrder
from clew.trail.model.validation import compile_schema
from clew.trail.sqlite.engine import Engine, Sql
from clew.trail.sqlite.rows import ALIVE
from clew.trail.templates.hints import check_hints

SCHEMA, POLICY = "schema.def.v1", "ttl.policy.v1"
DEFINITIONS = frozenset({SCHEMA, POLICY})
NEWEST = "SELECT max(seq) FROM events WHERE schema_name IN ('schema.def.v1', 'ttl.policy.v1')"
"""Spelled as in the partial index, which SQLite uses only then."""

MAX_BOOKS = 1_000
_decode = msgspec.json.Decoder().decode


class Definitions:
    """One owner's schema definitions and TTL policies as of an event, until the first of them expires."""

    def __init__(
        self, schemas: dict[str, Rules], policies: tuple[TtlPolicy, ...], *, as_of: int | None, until: float
    ) -> None:
        self.as_of = as_of
        self.until = until
        self._schemas = schemas
        self._undefined = Rules(policies=policies)

    def rules(self, schema_name: str | None) -> Rules:
        """What holds for breadcrumbs of a schema, defined or not."""
        return self._schemas.get(schema_name or "", self._undefined)


class DefinitionBook:
    """Definitions by owner, read again when an event says that one changed, whichever process changed it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._books: dict[str, Definitions] = {}

    def of(self, connection: Sql, owner_id: str) -> Definitions:
        """The definitions that hold now."""
        return self.as_of(connection, owner_id, newest(connection))

    def as_of(self, connection: Sql, owner_id: str, seq: int | None) -> Definitions:
        """The definitions that hold now, given the `newest` event that changed one."""
        book = self.recent(owner_id)
        if book is None or book.as_of != seq:
            if len(self._books) > MAX_BOOKS:
                self._books.clear()
            book = self._books[owner_id] = _read_definitions(connection, owner_id, self._engine.wall())
        return book

    def forget(self) -> None:
        """Read everything anew."""
        self._books = {}

    def recent(self, owner_id: str) -> Definitions | None:
        """The definitions as last read here. Whoever uses them compares `as_of` with `newest` when it writes."""
        book = self._books.get(owner_id)
        if book is None or (book.until != inf and book.until <= self._engine.wall()):
            return None
        return book


def newest(connection: Sql) -> int | None:
    """The event that last changed a definition, of whichever owner."""
    found: int | None = connection.execute(NEWEST).get
    return found


def _read_definitions(connection: Sql, owner_id: str, now: int) -> Definitions:
    as_of = newest(connection)
    rows = connection.execute(
        "SELECT b.schema_name, b.context, b.expires_at FROM breadcrumbs b JOIN audiences a ON a.id = b.audience"
        f" WHERE a.owner_id = :owner AND a.scopes = '[]' AND b.schema_name IN ('{SCHEMA}', '{POLICY}') AND {ALIVE}"
        " ORDER BY +b.rid",  # not by the index of rows: it would read all of them
        {"owner": owner_id, "now": now},
    ).fetchall()
    policies = tuple(parse_policy(_decode(context)) for kind, context, _ in rows if kind == POLICY)
    schemas = dict(parse_definition(_decode(context), policies) for kind, context, _ in rows if kind == SCHEMA)
    until = min((end for _, _, end in rows if end is not None), default=inf)
    return Definitions(schemas, policies, as_of=as_of, until=until)


def parse_definition(context: dict[str, Any], policies: tuple[TtlPolicy, ...] = ()) -> tuple[str, Rules]:
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
    check = compile_schema(schema, "context.json_schema") if schema is not None else None
    return name, Rules(
        check=check, order=_parse_order(context), llm_hints=hints, embeds=embeds == "auto", policies=policies
    )


def _parse_order(context: dict[str, Any]) -> StepOrder | None:
    try:
        return msgspec.convert(context.get("order"), StepOrder | None)
    except msgspec.ValidationError as error:
        raise InvalidInput("context.order", str(error), hint="Name the fields steps, id, needs and group") from None


def check_definition(schema_name: str | None, context: dict[str, Any]) -> None:
    """Refuse a definition that could not be used when it is written, not when it is needed."""
    if schema_name == SCHEMA:
        parse_definition(context)
    elif schema_name == POLICY:
        parse_policy(context)
