"""One operation of an OpenAPI document, in words. References within the document are followed for one step only, so
that cycles end. A reference beyond that is shown by its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any
from urllib.parse import unquote

import msgspec

from clew.catalog.formats.prose import cut, join_blocks, one_line

MAX_LISTED = 100
MAX_ABOUT = 500
MAX_SHOWN = 20_000
"""The maximum number of characters of one operation, since many operations may refer to the same long text."""


class ApiOperation(msgspec.Struct, frozen=True, kw_only=True):
    """`shared` are the parameters of all operations of its path."""

    part: str
    path: str
    method: str
    fields: Mapping[str, Any]
    shared: Any = None

    @property
    def title(self) -> str:
        return f"{self.method.upper()} {self.path}"

    @property
    def id(self) -> str:
        return as_text(self.fields.get("operationId"))

    @property
    def summary(self) -> str:
        return cut(as_text(self.fields.get("summary")), MAX_ABOUT)

    @property
    def description(self) -> str:
        return as_text(self.fields.get("description"))

    @property
    def tags(self) -> list[str]:
        return [as_text(tag) for tag in as_list(self.fields.get("tags"))[:MAX_LISTED]]


def as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """The text at this place; numbers too, since YAML reads versions as numbers."""
    return str(value).strip() if isinstance(value, str | int | float) else ""


def resolve(document: Mapping[str, Any], value: Any) -> Any:
    """Follow a local reference one step. Any other value, and a broken reference, is returned unchanged."""
    reference = as_mapping(value).get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return value
    found: Any = document
    for key in reference[2:].split("/"):
        found = as_mapping(found).get(unquote(key).replace("~1", "/").replace("~0", "~"))
    return value if found is None else found


def show_operation(document: Mapping[str, Any], operation: ApiOperation) -> str:
    fields = operation.fields
    is_old = "(deprecated)" if fields.get("deprecated") is True else ""
    name = f"Operation {operation.id}" if operation.id else ""
    text = join_blocks(
        " ".join(filter(None, (operation.title, is_old))),
        name,
        operation.summary,
        operation.description,
        _listed("Parameters", _describe_parameters(document, operation)),
        _listed("Request body", _describe_body(document, fields)),
        _listed("Responses", _describe_responses(document, as_mapping(fields.get("responses")))),
    )
    return cut(text, MAX_SHOWN)


def _listed(word: str, lines: Iterator[str]) -> str:
    told = list(islice(lines, MAX_LISTED + 1))
    more = ["- and more"] if len(told) > MAX_LISTED else []
    return "\n".join([f"{word}:", *told[:MAX_LISTED], *more]) if told else ""


def _describe_parameters(document: Mapping[str, Any], operation: ApiOperation) -> Iterator[str]:
    """The parameters in words. A parameter of the operation overrides one of its path with the same name and
    location."""
    told: dict[tuple[str, str], str] = {}
    for written in [*as_list(operation.fields.get("parameters")), *as_list(operation.shared)]:
        parameter = as_mapping(resolve(document, written))
        name, place = as_text(parameter.get("name")), as_text(parameter.get("in"))
        if place != "body":
            told.setdefault((name, place), _describe_parameter(parameter, written, name, place))
    yield from told.values()


def _describe_parameter(parameter: Mapping[str, Any], written: Any, name: str, place: str) -> str:
    kind = name_type(parameter.get("schema") or parameter)
    need = "required" if parameter.get("required") is True else ""
    traits = ", ".join(filter(None, (place, kind, need)))
    return _line(name or _reference_name(written) or "unnamed", traits, parameter.get("description"))


def _describe_body(document: Mapping[str, Any], fields: Mapping[str, Any]) -> Iterator[str]:
    """The properties of the request body. A schema that several media types share is listed once."""
    body = as_mapping(resolve(document, fields.get("requestBody")))
    parameters = (as_mapping(resolve(document, each)) for each in as_list(fields.get("parameters")))
    old = [("", each.get("schema")) for each in parameters if each.get("in") == "body"]
    new = [(str(media), as_mapping(each).get("schema")) for media, each in as_mapping(body.get("content")).items()]
    told: list[Any] = []
    for media, schema in [*old, *new]:
        yield _line(media or "body", name_type(schema), body.get("description"))
        if schema not in told:
            told.append(schema)
            yield from _describe_properties(document, schema)


def _describe_properties(document: Mapping[str, Any], schema: Any) -> Iterator[str]:
    """The properties of an object schema, including those of its `allOf` schemas."""
    for part in (schema, *as_list(as_mapping(resolve(document, schema)).get("allOf"))):
        found = as_mapping(resolve(document, part))
        needed = as_list(found.get("required"))
        for name, written in as_mapping(found.get("properties")).items():
            field = as_mapping(written)
            traits = ", ".join(filter(None, (name_type(field), "required" if name in needed else "")))
            yield f"  {_line(str(name), traits, field.get('description'))}"


def _describe_responses(document: Mapping[str, Any], responses: Mapping[str, Any]) -> Iterator[str]:
    for status, written in responses.items():
        response = as_mapping(resolve(document, written))
        content = [as_mapping(each).get("schema") for each in as_mapping(response.get("content")).values()]
        schema = response.get("schema") or next(iter(content), None)
        yield _line(str(status), name_type(schema), response.get("description"))


def name_type(schema: Any) -> str:
    """A short name for a schema: its type, or the name that it is referred to by."""
    fields = as_mapping(schema)
    if named := _reference_name(fields):
        return named
    if "items" in fields:
        inner = as_mapping(fields["items"])
        return f"array of {_reference_name(inner) or as_text(inner.get('type')) or 'anything'}"
    for word, several in (("oneOf", "one of"), ("anyOf", "any of"), ("allOf", "all of")):
        names = [_reference_name(each) or as_text(as_mapping(each).get("type")) for each in as_list(fields.get(word))]
        if any(names):
            return f"{several} {', '.join(filter(None, names[:MAX_LISTED]))}"
    kinds = as_list(fields.get("type")) or [fields.get("type")]
    return " or ".join(filter(None, map(as_text, kinds)))


def _reference_name(value: Any) -> str:
    reference = as_mapping(value).get("$ref")
    return reference.rpartition("/")[2] if isinstance(reference, str) else ""


def _line(name: str, traits: str, about: Any) -> str:
    name, traits, text = (one_line(part[:MAX_ABOUT]) for part in (name, traits, as_text(about)))
    head = f"- {name} ({traits})" if traits else f"- {name}"
    return f"{head}: {text}" if text else head
