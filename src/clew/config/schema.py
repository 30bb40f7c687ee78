"""The JSON Schema of config.toml for editors, made from the structs of the settings."""

from __future__ import annotations

from typing import Any

import msgspec

from clew.config.descriptions import ABOUT, TABLES
from clew.config.model import (
    CHOICES,
    KEY_REFERENCE,
    LIMITS,
    MAX_PROVIDER_SECONDS,
    MAX_TTL_MINUTES,
    NOT_SETTINGS,
    Config,
    is_table,
)

DIALECT = "http://json-schema.org/draft-07/schema#"


def build_schema() -> dict[str, Any]:
    """Return the schema of config.toml. It has no references, so that editors of any draft of JSON Schema read it."""
    fields = [field for field in msgspec.structs.fields(Config) if field.name not in NOT_SETTINGS]
    types, parts = msgspec.json.schema_components([field.type for field in fields], ref_template="{name}")
    properties: dict[str, Any] = {}
    for field, type in zip(fields, types, strict=True):
        properties[field.name] = _inline(type, parts)
        if isinstance(field.default, msgspec.Struct):
            for inner in msgspec.structs.fields(field.default):
                _annotate(f"{field.name}.{inner.name}", inner, properties[field.name]["properties"])
        else:
            _annotate(field.name, field, properties)
    _open_tables(properties)
    return {
        "$schema": DIALECT,
        "title": "Settings of Clew",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def render_schema() -> bytes:
    """The schema as the content of a file."""
    return msgspec.json.format(msgspec.json.encode(build_schema()), indent=2) + b"\n"


def _inline(schema: Any, parts: dict[str, Any]) -> Any:
    """A schema with the parts that it refers to in their place."""
    if isinstance(schema, list):
        return [_inline(each, parts) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inline(parts[schema["$ref"]], parts)
    kept = {key: _inline(value, parts) for key, value in schema.items() if key != "title" and value != []}
    if isinstance(about := kept.get("description"), str):
        kept["description"] = " ".join(about.split())
    return kept


def _annotate(name: str, field: msgspec.structs.FieldInfo, properties: dict[str, Any]) -> None:
    """Give a setting its description, limits and choices."""
    schema = properties[field.name]
    if is_table(field):
        schema["description"] = TABLES.get(name, schema.get("description", ""))
        return
    schema["description"] = ABOUT[name]
    schema.setdefault("default", msgspec.to_builtins(field.default))
    if name in CHOICES:
        schema["enum"] = list(CHOICES[name])
    if name in LIMITS:
        schema["minimum"], schema["maximum"] = LIMITS[name]


def _open_tables(properties: dict[str, Any]) -> None:
    """Add the rules that the types cannot express: further roles and options, references to keys, limits of tables."""
    models = properties["models"]
    del models["properties"]["roles"]
    models["additionalProperties"] = {"type": "string", "description": "the model of a role or an agent of this name"}
    source = properties["sources"]["additionalProperties"]
    del source["properties"]["options"]
    source["required"] = ["kind"]
    source["properties"]["ttl_minutes"] |= {"minimum": 0, "maximum": MAX_TTL_MINUTES}
    provider = properties["providers"]["additionalProperties"]["properties"]
    provider["key"]["pattern"] = f"^(?:{KEY_REFERENCE.pattern})?$"
    provider["timeout_seconds"] |= {"minimum": 0.001, "maximum": MAX_PROVIDER_SECONDS}
