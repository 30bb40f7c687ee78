"""Selectors: the filter language for listing, searching, subscribing and streaming. A breadcrumb matches if all given
conditions hold. `matches` is the implementation in Python; the backends have one in SQL. A test compares them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from itertools import chain
from typing import Any, Literal

import msgspec

from clew.errors import InvalidInput, TooLarge
from clew.lazy_pattern import lazy_pattern
from clew.trail.model.breadcrumb import Breadcrumb, encode_canonical
from clew.trail.model.globs import glob_matches

MAX_TERMS = 200
MAX_VALUES, MAX_NESTED = 1_000, 4
_PATH_PART = lazy_pattern(r"[^.\[\]\"\s\x00-\x1f]{1,200}")
_INDEX = lazy_pattern(r"0|[1-9][0-9]*")

Operator = Literal["eq", "ne", "contains_any", "contains_all", "in", "gt", "gte", "lt", "lte", "exists"]


class ContextMatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A condition on one value of the context. `path` is dotted: `input.model`, an index being a number; a
    leading `$.` is allowed. A missing value matches only `ne` and `exists: false`."""

    path: str
    op: Operator = "eq"
    value: Any = None


class Selector(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A filter by schema, tags, session, time, path glob and context; `except_schemas` excludes schemas."""

    schema_name: str | None = None
    schema_names: Sequence[str] = ()
    except_schemas: Sequence[str] = ()
    any_tags: Sequence[str] = ()
    all_tags: Sequence[str] = ()
    tag_prefix: str | None = None
    session: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    path: str | None = None
    context_match: Sequence[ContextMatch] = ()

    @property
    def schemas(self) -> tuple[str, ...]:
        """The schema names to match, from `schema_name` and `schema_names`. Empty means any."""
        return tuple(self.schema_names) if self.schema_name is None else (self.schema_name, *self.schema_names)


EVERYTHING = Selector()


def check_selector(selector: Selector) -> Selector:
    """Refuse a selector that is too long, is not text, or has a malformed path, operator value or time."""
    texts = [selector.schema_name, selector.tag_prefix, selector.session, selector.path]
    lists = (selector.schema_names, selector.except_schemas, selector.any_tags, selector.all_tags)
    named = [*texts, *chain.from_iterable(lists)]
    encode_canonical(named, "selector")
    if any(text is not None and "\0" in text for text in named):
        raise InvalidInput("selector", "has a NUL, which no name, tag or path can have")
    for field in ("any_tags", "all_tags", "schema_names", "except_schemas", "context_match"):
        if len(getattr(selector, field)) > MAX_TERMS:
            raise TooLarge(field, len(getattr(selector, field)), MAX_TERMS, "entries")
    for field in ("created_after", "created_before"):
        moment = getattr(selector, field)
        if moment is not None and moment.tzinfo is None:
            raise InvalidInput(field, "must carry a time zone", hint="For example 2026-01-01T00:00:00Z")
    if selector.tag_prefix == "":
        raise InvalidInput("tag_prefix", "is empty")
    if selector.path is not None and len(selector.path) > 1_000:
        raise TooLarge("path", len(selector.path), 1_000, "characters")
    for at, match in enumerate(selector.context_match):
        split_path(match.path, f"context_match[{at}].path")
        encode_canonical([match.path, match.value], f"context_match[{at}]")
        _check_value(match, f"context_match[{at}].value")
    return selector


def _check_value(match: ContextMatch, field: str) -> None:
    if match.op in ("contains_any", "contains_all", "in"):
        if not isinstance(match.value, list | tuple):
            raise InvalidInput(field, f"must be a list for {match.op}")
        if len(match.value) > MAX_VALUES or sum(isinstance(each, dict | list) for each in match.value) > MAX_NESTED:
            raise InvalidInput(
                field, f"must have at most {MAX_VALUES} values, and at most {MAX_NESTED} lists or objects among them"
            )
    if match.op in ("gt", "gte", "lt", "lte") and (
        not isinstance(match.value, int | float | str) or isinstance(match.value, bool)
    ):
        raise InvalidInput(field, f"must be a number or text for {match.op}")
    if match.op == "exists" and match.value is not None and not isinstance(match.value, bool):
        raise InvalidInput(field, "must be true or false for exists")


@lru_cache(maxsize=1024)
def split_path(path: str, field: str = "path") -> tuple[str | int, ...]:
    """The steps of a dotted path. A step of digits is an integer: an index of a list, or a key of an object. Raises
    InvalidInput when it is malformed."""
    dotted = path.removeprefix("$.").replace("[", ".").replace("]", "")
    steps = dotted.split(".")
    if len(steps) > 32 or not all(_PATH_PART.fullmatch(step) for step in steps):
        raise InvalidInput(field, f"{path!r} is not a dotted path", hint="For example input.model or steps.0.name")
    return tuple(int(step) if _INDEX.fullmatch(step) else step for step in steps)


MISSING = object()


def find_value(context: Any, steps: tuple[str | int, ...]) -> Any:
    """The value at a path, or MISSING."""
    value = context
    for step in steps:
        if isinstance(value, dict):
            value = value.get(str(step), MISSING)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return MISSING
    return value


def matches(selector: Selector, breadcrumb: Breadcrumb) -> bool:
    """Whether a breadcrumb matches a selector."""
    return matches_envelope(selector, breadcrumb.schema_name, breadcrumb.tags) and matches_content(selector, breadcrumb)


def matches_envelope(selector: Selector, schema_name: str | None, tags: Sequence[str]) -> bool:
    """Whether schema and tags match. If not, an event can be skipped without reading its content."""
    if (schemas := selector.schemas) and schema_name not in schemas:
        return False
    if schema_name in selector.except_schemas:
        return False
    if selector.any_tags and not any(tag in tags for tag in selector.any_tags):
        return False
    if not all(tag in tags for tag in selector.all_tags):
        return False
    if selector.session is not None and f"session:{selector.session}" not in tags:
        return False
    return selector.tag_prefix is None or any(tag.startswith(selector.tag_prefix) for tag in tags)


def needs_record(selector: Selector) -> bool:
    """Whether a selector has conditions on more than schema and tags."""
    times = selector.created_after, selector.created_before
    return selector.path is not None or bool(selector.context_match) or times != (None, None)


def matches_content(selector: Selector, breadcrumb: Breadcrumb) -> bool:
    """Whether the conditions on time, path and context match."""
    if selector.created_after is not None and breadcrumb.created_at <= selector.created_after:
        return False
    if selector.created_before is not None and breadcrumb.created_at >= selector.created_before:
        return False
    return matches_context(selector, breadcrumb.context)


def matches_context(selector: Selector, context: dict[str, Any]) -> bool:
    """Whether the conditions on path and context match."""
    if selector.path is not None:
        path = context.get("path")
        if not isinstance(path, str) or not glob_matches(selector.path, path):
            return False
    return all(matches_value(match, context) for match in selector.context_match)


def matches_value(match: ContextMatch, context: dict[str, Any]) -> bool:
    """Whether one condition holds."""
    value = find_value(context, split_path(match.path))
    match match.op:
        case "exists":
            return (value is not MISSING) == (match.value is not False)
        case "eq":
            return value is not MISSING and _same(value, match.value)
        case "ne":
            return value is MISSING or not _same(value, match.value)
        case "in":
            return value is not MISSING and any(_same(value, wanted) for wanted in match.value)
        case "contains_any":
            return _contains(value, match.value, any)
        case "contains_all":
            return _contains(value, match.value, all)
        case _:
            return _compares(value, match.op, match.value)


def _same(left: Any, right: Any) -> bool:
    """Equality as JSON knows it: true is not 1, at any depth. A context is never deeper than 64 levels."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_same, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _contains(value: Any, wanted: Sequence[Any], quantifier: Any) -> bool:
    if isinstance(value, str):
        return bool(quantifier(isinstance(want, str) and want in value for want in wanted))
    if not isinstance(value, list):
        return False
    plain = {_key(item) for item in value if not isinstance(item, dict | list)}
    return bool(
        quantifier(
            any(_same(item, want) for item in value) if isinstance(want, dict | list) else _key(want) in plain
            for want in wanted
        )
    )


def _key(value: Any) -> tuple[bool, Any]:
    """A key by which two plain JSON values can be distinguished."""
    return isinstance(value, bool), value


def _compares(value: Any, op: str, bound: Any) -> bool:
    numbers = not isinstance(value, bool) and isinstance(value, int | float) and isinstance(bound, int | float)
    if not numbers and not (isinstance(value, str) and isinstance(bound, str)):
        return False
    match op:
        case "gt":
            return bool(value > bound)
        case "gte":
            return bool(value >= bound)
        case "lt":
            return bool(value < bound)
        case _:
            return bool(value <= bound)
