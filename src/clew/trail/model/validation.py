"""JSON Schema (draft 2020-12) for contexts. A schema is data from outside, so it is bounded: references stay
within it, patterns run in linear time, and a check that could take exponential time or memory is refused
before it starts."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from clew.decode_errors import misfit_in_plain_words
from clew.errors import InvalidInput, SchemaViolation, TooLarge
from clew.trail.model.breadcrumb import encode_canonical
from clew.trail.model.schema_cost import SchemaGraph, SchemaWalk

if TYPE_CHECKING:
    import jsonschema_rs

MAX_SCHEMA = 262_144
MAX_REMEMBERED = 8_192
"""The largest schema, in bytes, whose compiled form is cached."""
MAX_PATTERN_SIZE = 65_536
MAX_CHECKS = 20_000_000
MAX_EXPLAINED = 10_000
MAX_REASON = 200

_MASK = "the value"


class SchemaCheck:
    """A compiled schema. Threads may share it."""

    __slots__ = ("_graph", "_validator")

    def __init__(self, validator: jsonschema_rs.Draft202012Validator, graph: SchemaGraph) -> None:
        self._validator = validator
        self._graph = graph

    def check(self, context: dict[str, Any], schema_name: str, size: int | None = None) -> None:
        """Raises SchemaViolation with the place and the reason when the context does not fit, InvalidInput
        when it would take more than MAX_CHECKS steps to find out. Neither shows a value of the context. `size` is the
        length of the context's canonical JSON, if the caller knows it."""
        if size is None:
            size = len(encode_canonical(context, "context"))
        # A value takes at least two bytes of JSON, and may meet each part of the schema.
        is_small = self._graph.total * (size // 2 + 1) <= MAX_CHECKS
        if not is_small and not SchemaWalk(MAX_CHECKS, remembers=True).ends(self._graph.root, context):
            raise InvalidInput("context", f"takes more than {MAX_CHECKS:,} steps to check; make it smaller")
        try:
            if self._validator.is_valid(context):
                return
        except ValueError as error:
            raise InvalidInput("context", f"cannot be checked: {error}"[:MAX_REASON]) from None
        raise SchemaViolation(schema_name, *self._explain(context))

    def _explain(self, context: dict[str, Any]) -> tuple[str, str]:
        """The place and the reason of the first error.

        To explain an error, the engine caches no results and keeps the errors of each failed choice. So if the schema
        has choices or recursion, only small cases are explained.
        """
        import jsonschema_rs  # see compile_schema

        if self._graph.is_plain or SchemaWalk(MAX_EXPLAINED, remembers=False).ends(self._graph.root, context):
            try:
                self._validator.validate(context)
            except jsonschema_rs.ValidationError as error:
                return _place_and_reason(error)
        return "", "does not fit the schema, and is too large to say where"


def compile_schema(schema: dict[str, Any], field: str = "schema") -> SchemaCheck:
    """Compile a schema to a check for contexts. Raises InvalidInput, naming the place below `field`, if it is not a
    valid schema, refers outside itself or could take unbounded time; TooLarge above MAX_SCHEMA bytes."""
    if not isinstance(schema, dict):
        raise InvalidInput(field, "must be a JSON object")
    encoded = encode_canonical(schema, field)
    if len(encoded) > MAX_SCHEMA:
        raise TooLarge(field, len(encoded), MAX_SCHEMA)
    return _compile(encoded, field) if len(encoded) > MAX_REMEMBERED else _remember(encoded, field)


def _compile(encoded: bytes, field: str) -> SchemaCheck:
    import jsonschema_rs  # loaded with the first schema, because most commands never need it

    plain = msgspec.json.decode(encoded)
    graph = SchemaGraph(plain, field)
    try:
        validator = jsonschema_rs.Draft202012Validator(
            plain,
            offline=True,
            mask=_MASK,
            pattern_options=jsonschema_rs.RegexOptions(size_limit=MAX_PATTERN_SIZE),
        )
    except jsonschema_rs.ValidationError as error:
        place, reason = _place_and_reason(error)
        raise InvalidInput(field + place, reason) from None
    except ValueError as error:
        raise InvalidInput(field, f"is not a schema: {error}"[:MAX_REASON]) from None
    return SchemaCheck(validator, graph)


# A definition is compiled when it is written and when it is used, and every owner has those that Clew ships.
_remember = lru_cache(maxsize=256)(_compile)


def _pointer(path: list[str | int]) -> str:
    parts = (str(part).replace("~", "~0").replace("/", "~1") for part in path)
    return "".join(f"/{part}" for part in parts)[:MAX_REASON]


def _place_and_reason(error: jsonschema_rs.ValidationError) -> tuple[str, str]:
    if (found := misfit_in_plain_words(error.kind)) is not None:
        part, reason = found
        return _pointer([*error.instance_path, part] if part else error.instance_path), reason[:MAX_REASON]
    return _pointer(error.instance_path), _reason(error)


def _reason(error: jsonschema_rs.ValidationError) -> str:
    match error.kind.name:
        case "falseSchema":
            return "is or holds something that the schema does not allow"
        case "format" if error.message.endswith('is not a "regex"'):
            return "must be a regular expression without look-around and back-references, and not too large"
        case _:
            return error.message.removeprefix(f"{_MASK} ")[:MAX_REASON]
