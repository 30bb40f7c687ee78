"""Definitions on the trail: what a `schema.def.v1` and a `ttl.policy.v1` mean for the records of their owner.

A `schema.def.v1` gives a schema its JSON Schema, default llm_hints and embedding policy; a `ttl.policy.v1` gives
matching breadcrumbs their expiry.
"""

from __future__ import annotations

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
        """`contexts` are those of the definitions, by the name of the schema that they define."""
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
    """Refuse a definition that could not be used when it is written, not when it is needed."""
    if schema_name == SCHEMA:
        parse_definition(context)
    elif schema_name == POLICY:
        parse_policy(context)
