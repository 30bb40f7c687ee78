"""Definitions on the trail: how `schema.def.v1` and `ttl.policy.v1` breadcrumbs affect the records of their owner.

A `schema.def.v1` gives a schema its JSON Schema, default llm_hints and embedding policy; a `ttl.policy.v1` gives
matching breadcrumbs their expiry.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Any

import msgspec

from clew.errors import InvalidInput
from clew.trail.model.policies import TtlPolicy, parse_policy
from clew.trail.model.prepare import SchemaRules
from clew.trail.model.step_order import StepOrder
from clew.trail.model.validation import compile_schema
from clew.trail.templates.hints import check_hints, plan_hints

SCHEMA, POLICY = "schema.def.v1", "ttl.policy.v1"
DEFINITIONS = frozenset({SCHEMA, POLICY})
MAX_BOOKS = 1_000
_decode = msgspec.json.Decoder().decode


class Definitions:
    """One owner's schema definitions and TTL policies as of an event, until the first of them expires. A definition is
    parsed when its schema is first used: a short command uses few of them."""

    def __init__(
        self,
        contexts: dict[str, dict[str, Any]],
        policies: tuple[TtlPolicy, ...],
        *,
        as_of: int | None,
        until: float,
    ) -> None:
        """`contexts` are the contexts of the definitions, by the name of the schema that they define."""
        self.as_of = as_of
        self.until = until
        self._contexts = contexts
        self._policies = policies
        self._parsed: dict[str, SchemaRules] = {}
        self._undefined = SchemaRules(policies=policies)

    def rules(self, schema_name: str | None) -> SchemaRules:
        """The rules for breadcrumbs of a schema, defined or not. Raises InvalidInput for a definition that cannot
        work."""
        name = schema_name or ""
        if name not in self._contexts:
            return self._undefined
        if name not in self._parsed:
            self._parsed[name] = parse_definition(self._contexts[name], self._policies)[1]
        return self._parsed[name]


class DefinitionCache:
    """The definitions of each owner as last read. They hold until one of them expires or an event changes one."""

    def __init__(self) -> None:
        self._books: dict[str, Definitions] = {}

    def find(self, owner_id: str, now: int) -> Definitions | None:
        book = self._books.get(owner_id)
        return None if book is None or (book.until != inf and book.until <= now) else book

    def put(self, owner_id: str, definitions: Definitions) -> Definitions:
        if len(self._books) > MAX_BOOKS:
            self._books.clear()
        self._books[owner_id] = definitions
        return definitions

    def forget(self) -> None:
        self._books = {}


def build_definitions(rows: Iterable[tuple[str, str, int | None]], as_of: int | None) -> Definitions:
    """The definitions of an owner from rows (schema_name, context, expires_at) in order of creation. `as_of` is the
    newest event that changed a definition."""
    found = [(kind, _decode(context), end) for kind, context, end in rows]
    policies = tuple(parse_policy(context) for kind, context, _ in found if kind == POLICY)
    schemas = {str(context.get("schema_name")): context for kind, context, _ in found if kind == SCHEMA}
    until = min((end for _, _, end in found if end is not None), default=inf)
    return Definitions(schemas, policies, as_of=as_of, until=until)


def parse_definition(context: dict[str, Any], policies: tuple[TtlPolicy, ...] = ()) -> tuple[str, SchemaRules]:
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
    return name, SchemaRules(
        check=check,
        order=_parse_order(context),
        llm_hints=hints,
        hint_plan=plan_hints(hints) if hints else None,
        embeds=embeds == "auto",
        policies=policies,
    )


def _parse_order(context: dict[str, Any]) -> StepOrder | None:
    try:
        return msgspec.convert(context.get("order"), StepOrder | None)
    except msgspec.ValidationError as error:
        raise InvalidInput("context.order", str(error), hint="Name the fields steps, id, needs and group") from None


def check_definition(schema_name: str | None, context: dict[str, Any]) -> None:
    """Refuse an unusable definition already when it is written. Otherwise it would fail at its first use."""
    if schema_name == SCHEMA:
        parse_definition(context)
    elif schema_name == POLICY:
        parse_policy(context)
