"""Parsing of `key=value` arguments behind a route, by the schema of its tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from clew.errors import InvalidInput

if TYPE_CHECKING:
    from clew.catalog.registry import DomainRegistry

_LIST_ONLY = frozenset(("array", "null"))


def read_arguments(route: str, typed: Mapping[str, Sequence[str]], registry: DomainRegistry) -> dict[str, Any]:
    """The value of each parameter, by the schema of the route's tool. A parameter that takes a list may be repeated:
    each text is one item, but a single text may also be the whole list. Raises InvalidInput if another parameter is
    repeated."""
    properties = _properties(registry, route) if typed else {}
    return {key: _argument(route, key, texts, properties.get(key)) for key, texts in typed.items()}


def _properties(registry: DomainRegistry, route: str) -> Mapping[str, Any]:
    """The schemas of a tool's parameters; empty for an unknown tool, which the later call reports."""
    from clew.catalog.route import parse_route  # the catalog takes as long to load as the rest of a short command

    try:
        routed = registry.find_tool(parse_route(route))
    except InvalidInput:
        return {}
    found: Mapping[str, Any] = routed.tool.schema.get("properties", {}) if routed is not None else {}
    return found


def _argument(route: str, key: str, texts: Sequence[str], schema: Any) -> Any:
    types = _allowed(schema)
    if len(texts) > 1 and "array" not in types:
        hint = "Only a parameter that takes a list may be repeated; another route of the same tool may follow instead"
        raise InvalidInput(key, f"is given {len(texts)} times for {route}", hint=hint)
    if len(texts) == 1:
        value = _value(texts[0], types)
        if not types or not types <= _LIST_ONLY or value is None or isinstance(value, list):
            return value
    wanted = _item_types(schema)
    return [_value(text, wanted) for text in texts]


def _alternatives(schema: Any) -> list[Any]:
    return [*schema.get("anyOf", ()), *schema.get("oneOf", ())] if isinstance(schema, dict) else []


def _allowed(schema: Any) -> set[str]:
    """The types that a schema allows; empty if it does not restrict them."""
    if not isinstance(schema, dict):
        return set()
    named = schema.get("type", ())
    types = {named} if isinstance(named, str) else {*named}
    types |= {_json_type(value) for value in schema.get("enum", ())}
    return types.union(*(_allowed(each) for each in _alternatives(schema)))


def _item_types(schema: Any) -> set[str]:
    """The types that a schema allows for the items of a list."""
    own = _allowed(schema.get("items")) if isinstance(schema, dict) else set()
    return own.union(*(_item_types(each) for each in _alternatives(schema)))


def _json_type(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _value(text: str, types: set[str]) -> Any:
    """Parse a typed value: as JSON if it is valid JSON of an allowed type, otherwise as text."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text
    is_text = types == {"string"} or ("string" in types and _json_type(value) not in types)
    return text if is_text else value
