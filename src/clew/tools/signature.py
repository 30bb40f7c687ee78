"""Builds a schema and a check from the signature of a function."""

from __future__ import annotations

import copy
import inspect
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from clew.decode_errors import in_plain_words
from clew.errors import InvalidInput
from clew.lazy_pattern import lazy_pattern

_PARAMETER_DOC = lazy_pattern(r"^\s*(?::param\s+)?(\w+):\s+(\S.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Params:
    """The arguments of a function: their schema, their check, and the parameter for the context."""

    schema: dict[str, Any]
    check: Callable[[Mapping[str, Any]], dict[str, Any]]
    context: str | None


def read_signature(function: Callable[..., Any], context_type: type) -> Params:
    """Read the signature of a function. Raises InvalidInput for a parameter without a known type, a positional-only
    parameter, and a variadic one."""
    hints = _hints(function)
    context: str | None = None
    fields: list[Any] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise InvalidInput(
                f"{function.__name__}.{name}", "takes any number of values, which a schema cannot express"
            )
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise InvalidInput(f"{function.__name__}.{name}", "cannot be passed by name")
        if name not in hints:
            raise InvalidInput(f"{function.__name__}.{name}", "has no type")
        if hints[name] is context_type:
            context = name
        else:
            fields.append((name, hints[name], *_default(parameter)))
    params = build_params(function.__name__, fields)
    return Params(_described(params.schema, function.__doc__ or ""), params.check, context)


def build_params(owner: str, fields: Iterable[Any]) -> Params:
    """Build the arguments from fields for `msgspec.defstruct`. A field with the default UNSET is optional.

    Raises InvalidInput for a type that JSON cannot express.
    """
    try:
        model = msgspec.defstruct(owner, fields, kw_only=True, forbid_unknown_fields=True)
        return Params(schema_of(model), _checker(model), None)
    except (TypeError, ValueError) as error:
        raise InvalidInput(owner, f"has a parameter that JSON cannot express: {error}") from None


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        hint = "Import or define it at the top of the module, not in a function or for type checks only"
        raise InvalidInput(function.__name__, f"has an unknown type: {error.name}", hint=hint) from None


def _default(parameter: inspect.Parameter) -> tuple[Any, ...]:
    """Return the default of a field. A non-empty list or dict is copied for every call; msgspec copies empty ones."""
    default = parameter.default
    if default is parameter.empty:
        return ()
    is_filled = isinstance(default, list | dict | set) and bool(default)
    return (msgspec.field(default_factory=lambda: copy.deepcopy(default)) if is_filled else default,)


def schema_of(model: Any) -> dict[str, Any]:
    """Return the JSON Schema of a type, without references."""
    (schema,), components = msgspec.json.schema_components((model,), ref_template="#/$defs/{name}")
    if "$ref" in schema:
        schema = components.pop(schema["$ref"].rpartition("/")[2])
    schema = {key: value for key, value in schema.items() if key not in ("title", "required") or value}
    schema.pop("title", None)
    return {**schema, "$defs": components} if components else schema


def _described(schema: dict[str, Any], doc: str) -> dict[str, Any]:
    """Add descriptions of parameters from lines such as `limit: number of rows` below `Args:` in the docstring."""
    _, _, below = doc.partition("Args:")
    for name, text in _PARAMETER_DOC.findall(below):
        if name in schema.get("properties", {}):
            schema["properties"][name].setdefault("description", text)
    return schema


def _checker(model: type[msgspec.Struct]) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    names = model.__struct_fields__

    def check(arguments: Mapping[str, Any]) -> dict[str, Any]:
        try:
            found = msgspec.convert(arguments, model)
        except msgspec.ValidationError as error:
            raise in_plain_words(error, model, "params", called="parameter") from None
        values = ((name, getattr(found, name)) for name in names)
        return {name: value for name, value in values if value is not msgspec.UNSET}

    return check
