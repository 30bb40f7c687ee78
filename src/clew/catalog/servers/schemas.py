"""Foreign JSON Schemas, compiled with the trail's bounds: one that is none, or could run away, is refused."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from clew.errors import InvalidInput, SchemaViolation
from clew.trail.breadcrumb import encode_canonical
from clew.trail.validation import SchemaCheck, compile_schema

MAX_DEPTH = 60


def check_arguments(schema: dict[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments where they fit. Raises InvalidInput with the place and the reason."""
    given = dict(arguments)
    try:
        compiled(schema).check(given, "")
    except SchemaViolation as error:
        place = error.field.removeprefix("context").strip("/").replace("/", ".")
        raise InvalidInput(place or "params", error.reason) from None
    except InvalidInput as error:
        raise InvalidInput("params", error.reason) from None
    return given


def misfit(schema: dict[str, Any] | None, value: Any) -> str:
    """Why a result does not fit its own output schema; empty where it does."""
    if schema is None or not isinstance(value, dict):
        return "" if schema is None else "it is missing"
    try:
        compiled(schema).check(value, "")
    except InvalidInput as error:
        return error.reason
    return ""


def compiled(schema: dict[str, Any]) -> SchemaCheck:
    """Raises InvalidInput for what is not a usable schema."""
    return _compile(encode_canonical(_modern(schema, 0), "schema"))


@lru_cache(maxsize=512)
def _compile(schema: bytes) -> SchemaCheck:
    return compile_schema(msgspec.json.decode(schema))


def _modern(schema: Any, depth: int) -> Any:
    """Older drafts say `items: […]` for what is now `prefixItems`; their `$schema` line says nothing more."""
    if depth > MAX_DEPTH:
        raise InvalidInput("schema", f"is nested deeper than {MAX_DEPTH} levels")
    if isinstance(schema, list):
        return [_modern(each, depth + 1) for each in schema]
    if not isinstance(schema, dict):
        return schema
    known = {key: _modern(value, depth + 1) for key, value in schema.items() if key != "$schema"}
    if isinstance(known.get("items"), list):
        known["prefixItems"] = known.pop("items")
        known["items"] = known.pop("additionalItems", True)
    return known
