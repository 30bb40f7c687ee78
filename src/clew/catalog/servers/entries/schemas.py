"""Foreign JSON Schemas. They are compiled within the trail's limits, which reject invalid or too expensive schemas.
Their texts are cleaned for display."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from clew.catalog.operations.text import one_line, quoted
from clew.decode_errors import either_type, suggest
from clew.errors import InvalidInput, SchemaViolation
from clew.secrecy import mask_document
from clew.trail.model.breadcrumb import encode_canonical
from clew.trail.model.validation import SchemaCheck, compile_schema

MAX_DEPTH = 60
MAX_SHOWN_DEPTH = 40
_TEXTS = ("description", "title", "$comment")
_SAMPLES = ("default", "examples")
"""Values that a schema shows and that it does not check."""
_BY_NAME = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
"""Keys of maps from arbitrary names to schemas."""


def check_arguments(schema: dict[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments if they match the schema. Raises InvalidInput with the location and the reason."""
    given = dict(arguments)
    try:
        compiled(schema).check(given, "")
    except SchemaViolation as error:
        place = one_line(error.field.removeprefix("context").strip("/").replace("/", "."), 100)
        hint = _allowed(schema.get("properties"), place)
        raise InvalidInput(place or "params", one_line(error.reason, 300), hint=hint) from None
    except InvalidInput as error:
        raise InvalidInput("params", error.reason) from None
    return given


def _allowed(properties: Any, place: str) -> str:
    """The type of a parameter, or the names of all."""
    known = properties if isinstance(properties, dict) else {}
    if place not in known:
        names = [one_line(name, 60) for name in list(known)[:20]]
        return suggest(place, names, "Parameters are") if place and "." not in place else ""
    kind = known[place].get("type") if isinstance(known[place], dict) else None
    types = kind if isinstance(kind, list) else [kind] if isinstance(kind, str) else []
    return f"It takes {either_type(types)}" if types else ""


def misfit(schema: dict[str, Any] | None, value: Any) -> str:
    """Why a result does not fit its own output schema; empty if it does."""
    if schema is None or not isinstance(value, dict):
        return "" if schema is None else "it is missing"
    try:
        compiled(schema).check(value, "")
    except InvalidInput as error:
        return error.reason
    return ""


def compiled(schema: dict[str, Any]) -> SchemaCheck:
    """Check a schema. Raises InvalidInput if it cannot be used."""
    return _compile(encode_canonical(_modern(schema, 0), "schema"))


@lru_cache(maxsize=512)
def _compile(schema: bytes) -> SchemaCheck:
    return compile_schema(msgspec.json.decode(schema))


def _modern(schema: Any, depth: int) -> Any:
    """Convert a schema of an older draft: `items: […]` becomes `prefixItems`, and `$schema` is dropped. Raises
    InvalidInput if it is nested too deep."""
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


def mask_schema(schema: Any, depth: int = 0, *, within: str = "", is_sample: bool = False) -> Any:
    """A schema with the secrets in its texts, defaults and examples masked. It still accepts the same values. Parts
    that are nested too deep stay unmasked, and compilation rejects such a schema. `within` is the key of this schema in
    its parent."""
    if depth > MAX_DEPTH:
        return schema
    if isinstance(schema, list):
        return [mask_schema(each, depth + 1, is_sample=is_sample) for each in schema]
    if isinstance(schema, dict):
        shown = () if within in _BY_NAME else (*_TEXTS, *_SAMPLES)
        return {
            key: mask_schema(value, depth + 1, within=key, is_sample=is_sample or key in shown)
            for key, value in schema.items()
        }
    return mask_document(schema) if is_sample and isinstance(schema, str) else schema


def clean_schema(schema: Any, depth: int = 0) -> Any:
    """A schema for display: its human-readable texts are cleaned, and it still accepts the same values."""
    if depth > MAX_SHOWN_DEPTH:
        return {}
    if isinstance(schema, list):
        return [clean_schema(each, depth + 1) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: one_line(value, 300) if key in _TEXTS and isinstance(value, str) else clean_schema(value, depth + 1)
        for key, value in schema.items()
    }


def params_prose(schema: dict[str, Any], most: int = 12) -> str:
    """The parameters of a tool, in a sentence."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not properties:
        return "Takes no parameters."
    named = [_param(name, part, name in required) for name, part in list(properties.items())[:most]]
    more = f" and {len(properties) - most} more" if len(properties) > most else ""
    return f"Takes {', '.join(named)}{more}."


def _param(name: str, part: Any, is_required: bool) -> str:
    kind = part.get("type", "any") if isinstance(part, dict) else "any"
    kinds = " or ".join(map(str, kind[:4])) if isinstance(kind, list) else str(kind)
    need = "" if is_required else ", optional"
    said = part.get("description") if isinstance(part, dict) else None
    about = f": {quoted(said, 80)}" if isinstance(said, str) and said.strip() else ""
    return f"{one_line(name, 60)} ({one_line(kinds, 40)}{need}{about})"
