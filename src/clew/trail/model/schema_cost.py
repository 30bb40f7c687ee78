"""The cost of checking a value against a schema, estimated before the check, which cannot be interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from clew.errors import InvalidInput, TooLarge

MAX_PATTERNS = 200
MAX_PARTS = 10_000

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_UNBOUNDED = 1 << 62
_MAX_VISITS = 300_000
_CHARACTERS_PER_CHECK = 64
_CONTAINERS = (dict, list, tuple)
_HERE = ("not", "if", "then", "else")
_HERE_LISTS = ("allOf", "anyOf", "oneOf")
_HERE_MAPS = ("dependentSchemas", "dependencies")
_MEMBERS = ("additionalProperties", "unevaluatedProperties", "propertyNames")
_ITEMS = ("items", "contains", "unevaluatedItems", "additionalItems")
# The engine's work for `unevaluated…` was measured to grow up to threefold with each level of nesting.
_UNEVALUATED_FACTOR = 4


class SchemaPart:
    """The requirements of one part of a schema on a value (`here`) and on its children, and their cost."""

    def __init__(self) -> None:
        self.own = 1
        self.factor = 1
        self.here: list[SchemaPart] = []
        self.names: dict[str, SchemaPart] = {}
        self.members: list[SchemaPart] = []
        self.heads: list[SchemaPart] = []
        self.items: list[SchemaPart] = []
        self.parts: int | None = None
        self.has_choice = False
        self.is_recursive = False

    @property
    def all(self) -> Iterator[SchemaPart]:
        for nodes in (self.here, self.names.values(), self.members, self.heads, self.items):
            yield from nodes


class SchemaGraph:
    """A schema as a graph in which references are edges, to count the cost of a check.

    `total` is an upper bound for the number of parts that apply to one value. A part counts once for each path that
    leads to it. If a part refers back to itself, the engine caches its result for a value, so the reference is counted
    once.
    """

    def __init__(self, schema: dict[str, Any], field: str) -> None:
        self._schema = schema
        self._field = field
        self._anchors: dict[str, Any] = {}
        self._survey()
        self._nodes: dict[int, SchemaPart] = {}
        self._pending: list[tuple[SchemaPart, dict[str, Any]]] = []
        self.root = self._node(schema)
        while self._pending:
            self._fill(*self._pending.pop())
        self.total = self._measure()
        self.is_plain = not any(node.has_choice or node.is_recursive for node in self._nodes.values())

    def _survey(self) -> None:
        """Look at everything in the schema once: its dialect, its names, its patterns."""
        if self._schema.get("$schema", _DIALECT) not in (_DIALECT, f"{_DIALECT}#"):
            raise InvalidInput(f"{self._field}/$schema", f"must be {_DIALECT}")
        patterns = 0
        stack: list[Any] = [self._schema]
        while stack:
            value = stack.pop()
            if isinstance(value, list):
                stack.extend(value)
            if not isinstance(value, dict):
                continue
            stack.extend(value.values())
            patterns += isinstance(value.get("pattern"), str) + len(_map(value, "patternProperties"))
            self._name(value)
        if patterns > MAX_PATTERNS:
            raise TooLarge(self._field, patterns, MAX_PATTERNS, "patterns")

    def _name(self, part: dict[str, Any]) -> None:
        if part is not self._schema and any(isinstance(part.get(key), str) for key in ("$id", "$schema")):
            raise InvalidInput(self._field, "has $id or $schema below its top level; use one schema without parts")
        for key in ("$anchor", "$dynamicAnchor"):
            anchor = part.get(key)
            if isinstance(anchor, str) and self._anchors.setdefault(anchor, part) is not part:
                raise InvalidInput(self._field, f"has two places named {anchor[:80]!r}")

    def _node(self, part: Any) -> SchemaPart:
        """The node of a part; true and false are nodes without further parts."""
        node = self._nodes.get(id(part))
        if node is None:
            node = SchemaPart()
            if isinstance(part, dict):
                self._nodes[id(part)] = node
                self._pending.append((node, part))
        return node

    def _fill(self, node: SchemaPart, part: dict[str, Any]) -> None:
        here = [part[key] for key in _HERE if key in part]
        here += [each for key in _HERE_LISTS for each in _list(part, key)]
        here += [each for key in _HERE_MAPS for each in _map(part, key).values() if isinstance(each, dict)]
        here += [self._target(part[key]) for key in ("$ref", "$dynamicRef") if key in part]
        node.here = [self._node(each) for each in here]
        node.names = {name: self._node(each) for name, each in _map(part, "properties").items()}
        members = [part[key] for key in _MEMBERS if key in part]
        node.members = [self._node(each) for each in (*members, *_map(part, "patternProperties").values())]
        node.heads = [self._node(each) for each in _list(part, "prefixItems")]
        node.items = [self._node(part[key]) for key in _ITEMS if key in part]
        node.own = 1 + len(_list(part, "required")) + len(_map(part, "dependentRequired")) + _options(part)
        node.has_choice = "anyOf" in part or "oneOf" in part
        if "unevaluatedProperties" in part or "unevaluatedItems" in part:
            node.factor = _UNEVALUATED_FACTOR

    def _target(self, reference: Any) -> Any:
        """The part that a reference means. Only the schema itself can be referred to."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise InvalidInput(self._field, f"refers to {str(reference)[:80]!r}; only #… within it is allowed")
        name = unquote(reference[1:])
        found: Any = self._anchors.get(name) if name else self._schema
        if name.startswith("/"):
            found = self._schema
            for step in name[1:].split("/"):
                found = _member(found, step.replace("~1", "/").replace("~0", "~"))
        if not isinstance(found, dict | bool):
            raise InvalidInput(self._field, f"refers to {reference[:80]!r}, which is not in it")
        return found

    def _measure(self) -> int:
        try:
            if any(_parts(node) > MAX_PARTS for node in self._nodes.values()):
                reason = f"asks more than {MAX_PARTS:,} things of one value, or refers to itself in a circle"
                raise InvalidInput(self._field, reason)
            return _total(self.root, {})
        except RecursionError:
            raise InvalidInput(self._field, "is nested too deeply") from None


def _parts(node: SchemaPart) -> int:
    """The number of parts of the schema that apply to one value itself; unbounded for a circular schema."""
    if node.parts is None:
        node.parts = _UNBOUNDED
        node.parts = min(node.factor * (node.own + sum(_parts(part) for part in node.here)), _UNBOUNDED)
    return node.parts


def _total(node: SchemaPart, known: dict[SchemaPart, int]) -> int:
    """The parts below a node, each as often as it can be reached."""
    if node not in known:
        known[node] = 0
        total = node.own + sum(_total(part, known) for part in node.all)
        known[node] = min(node.factor * total, _UNBOUNDED)
    elif known[node] == 0:
        node.is_recursive = True
        return 1
    return known[node]


class SchemaWalk:
    """Counts the checks of values of a context against parts of a schema, assuming that no failure ends the check
    early."""

    def __init__(self, limit: int, *, remembers: bool) -> None:
        self._limit = limit
        self._remembers = remembers
        self._spent = 0
        self._known: dict[tuple[int, int], int] = {}
        self._split: dict[int, tuple[int, list[Any]]] = {}

    def ends(self, root: SchemaPart, context: dict[str, Any]) -> bool:
        """Whether the count stays within the limit."""
        try:
            self._visit(root, context)
        except (_OverLimit, RecursionError):
            return False
        return True

    def _spend(self, count: int) -> None:
        self._spent += count
        if self._spent > self._limit:
            raise _OverLimit

    def _visit(self, node: SchemaPart, value: Any) -> None:
        if not isinstance(value, _CONTAINERS):
            return self._spend(_parts(node) * _weight(value))
        key = (id(node), id(value))
        if key in self._known:
            return self._spend(1 if self._remembers and node.is_recursive else self._known[key])
        if len(self._known) >= _MAX_VISITS:
            raise _OverLimit
        before = self._spent
        self._known[key] = 1
        self._spend(node.own)
        for part in node.here:
            self._visit(part, value)
        self._visit_inside(node, value)
        self._spend((self._spent - before) * (node.factor - 1))
        self._known[key] = self._spent - before
        return None

    def _visit_inside(self, node: SchemaPart, value: Any) -> None:
        if isinstance(value, dict):
            for name in node.names.keys() & value.keys():
                self._visit(node.names[name], value[name])
        else:
            for part, item in zip(node.heads, value, strict=False):
                self._visit(part, item)
        for part in node.members if isinstance(value, dict) else node.items:
            plain, containers = self._split_up(value)
            self._spend(_parts(part) * plain)
            for item in containers:
                self._visit(part, item)

    def _split_up(self, value: Any) -> tuple[int, list[Any]]:
        """The weight of the plain values and keys in a container, and the containers in it."""
        if id(value) not in self._split:
            items = value.values() if isinstance(value, dict) else value
            plain = sum(_weight(item) for item in items if not isinstance(item, _CONTAINERS))
            names = sum(map(_weight, value)) if isinstance(value, dict) else 0
            self._split[id(value)] = plain + names, [item for item in items if isinstance(item, _CONTAINERS)]
        return self._split[id(value)]


class _OverLimit(Exception):
    """Ends a walk; stays in this module."""


def _weight(value: Any) -> int:
    """The cost of a value without children: long texts take longer."""
    return 1 + len(value) // _CHARACTERS_PER_CHECK if isinstance(value, str) else 1


def _list(part: dict[str, Any], key: str) -> list[Any]:
    value = part.get(key)
    return value if isinstance(value, list) else []


def _map(part: dict[str, Any], key: str) -> dict[str, Any]:
    value = part.get(key)
    return value if isinstance(value, dict) else {}


def _member(value: Any, step: str) -> Any:
    if isinstance(value, list) and step.isdecimal() and len(step) < 6 and int(step) < len(value):
        return value[int(step)]
    return value.get(step) if isinstance(value, dict) else None


def _options(part: dict[str, Any]) -> int:
    """The cost of an enum: options of one plain kind are looked up at once, others compared one by one."""
    options = _list(part, "enum")
    kinds = {type(option) for option in options}
    return len(options) if len(kinds) > 1 or kinds & {dict, list} else 0
