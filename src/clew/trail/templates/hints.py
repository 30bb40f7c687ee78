"""llm_hints: how the context of a breadcrumb is shown to a model. The hints are data of the breadcrumb or of
its schema.def.v1; there are none in the code.

    {"include": ["name", "input.schema"], "exclude": ["code"],
     "transform": {"summary": {"type": "format", "format": "{name}: {description}"},
                   "text": {"type": "template", "template": "{{#each steps}}{{this}}{{/each}}"},
                   "names": {"type": "extract", "path": "$.tools[*].name"},
                   "kind": {"type": "literal", "value": "tool"}},
     "mode": "merge"}

A name in `include` or `exclude` that meets a list means every item of it. Mode `replace` shows the transforms only.
Short forms: with `"format": text` or `"template": text`, only that text is shown, as `content`; `"extract": {out:
path}` and `"literal": {out: value}` are transforms without their wrapping.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from clew.errors import InvalidInput, TemplateError, TooLarge
from clew.lazy_pattern import lazy_pattern
from clew.trail.model import jsonpath
from clew.trail.model.breadcrumb import encode_canonical
from clew.trail.templates import template

MAX_HINTS, MAX_CACHED_HINTS = 262_144, 4_096
MAX_FIELDS = 1_000
MAX_TRANSFORMS = 32
MAX_NAME = 200

_KEYS = ("include", "exclude", "transform", "mode", "format", "template", "extract", "literal")
_BODY = {"format": "format", "template": "template", "extract": "path", "literal": "value"}
_BRACES = lazy_pattern(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_ABSENT = object()

_Tree = dict[str, Any]  # from a part of a name to the tree below it; an empty tree is the whole value


class _Transform(NamedTuple):
    field: str
    out: str
    kind: str
    body: Any


class HintPlan(NamedTuple):
    """Hints that were read and checked, ready to be applied to any number of contexts."""

    include: _Tree | None
    exclude: _Tree | None
    transforms: tuple[_Transform, ...]
    replaces: bool


def resolve_hints(
    instance_hints: Mapping[str, Any] | None, schema_hints: Mapping[str, Any] | None
) -> Mapping[str, Any] | None:
    """The hints in force: those of the breadcrumb, or of its schema if the breadcrumb has none. Empty hints are valid
    hints, which show the context unchanged."""
    return schema_hints if instance_hints is None else instance_hints


def check_hints(hints: Mapping[str, Any]) -> None:
    """Refuse hints that are malformed or over a limit, naming the part that is wrong.

    Raises InvalidInput, TooLarge or TemplateError.
    """
    if not isinstance(hints, Mapping):
        raise InvalidInput("llm_hints", "must be a JSON object")
    size = len(encode_canonical(hints, "llm_hints"))
    if size > MAX_HINTS:
        raise TooLarge("llm_hints", size, MAX_HINTS)
    for transform in plan_hints(hints).transforms:
        _named(transform.field, _check_body, transform)


def apply_hints(context: dict[str, Any], hints: Mapping[str, Any] | None, *, title: str = "") -> dict[str, Any]:
    """The context as a model should see it: first `include`, then `exclude`, then the transforms.

    Transforms read the whole context, including excluded fields, and the title if the context has no `title`. The
    context is not changed; the result may share parts with it. Raises as check_hints does, and TemplateError when the
    transforms together go over the budget of one rendering.
    """
    return apply_plan(context, _remembered_plan(hints), title=title) if hints else context


def apply_plan(context: dict[str, Any], plan: HintPlan, *, title: str = "") -> dict[str, Any]:
    """As `apply_hints`, with hints that `plan_hints` has read."""
    view = {} if plan.replaces else context
    if plan.include is not None and not plan.replaces:
        view = _only(view, plan.include)
    if plan.exclude is not None:
        view = _without(view, plan.exclude)
    if not plan.transforms:
        return view
    scope, budget, view = {"title": title, **context}, template.RenderBudget(), dict(view)
    for transform in plan.transforms:
        value = _named(transform.field, _transformed, transform, scope, budget)
        if value is not _ABSENT:
            view[transform.out] = value
    return view


def _named(field: str, act: Callable[..., Any], *arguments: Any) -> Any:
    """Call `act` and return its result. Errors are raised with the field of the hints in which they occur."""
    try:
        return act(*arguments)
    except TemplateError as error:
        raise TemplateError(error.reason, field=field) from None
    except InvalidInput as error:
        raise InvalidInput(field, error.reason, hint=error.hint) from None


def _check_body(transform: _Transform) -> None:
    match transform.kind:
        case "format":
            parse_format(transform.body)
        case "template":
            template.parse(transform.body)
        case "extract":
            jsonpath.parse_path(transform.body)


def _transformed(transform: _Transform, scope: Mapping[str, Any], budget: template.RenderBudget) -> Any:
    match transform.kind:
        case "format":
            return _format(transform.body, scope, budget)
        case "template":
            return template.render(transform.body, scope, budget)
        case "extract":
            found = jsonpath.find_all(transform.body, scope, budget.step)
            for value in found:
                budget.write(len(encode_canonical(value, transform.out)))
            return found if len(found) > 1 else found[0] if found else _ABSENT
        case _:
            return transform.body


# format: never str.format, which would reach attributes


@lru_cache(maxsize=256)
def parse_format(text: str) -> tuple[str | tuple[str, ...], ...]:
    """Texts, and a tuple of path parts for each `{field}`; `{{` and `}}` are braces. Raises TemplateError."""
    if len(text) > template.MAX_TEMPLATE:
        raise TemplateError(f"has {len(text):,} characters; at most {template.MAX_TEMPLATE:,} are allowed")
    parts: list[str | tuple[str, ...]] = []
    at = 0
    for found in _BRACES.finditer(text):
        parts.append(text[at : found.start()])
        at = found.end()
        if found[1] is not None:
            parts.append(_parts(found[1].strip(), "format"))
        elif len(found[0]) == 2:
            parts.append(found[0][0])
        else:
            raise TemplateError(f"has a single {found[0]} at character {found.start() + 1}; double it to show it")
    return (*parts, text[at:])


def _format(text: str, scope: Mapping[str, Any], budget: template.RenderBudget) -> str:
    out = []
    for part in parse_format(text):
        piece = part if isinstance(part, str) else template.to_text(template.find_value(scope, part), budget)
        budget.write(len(piece))
        out.append(piece)
    return "".join(out)


# include and exclude


def _only(value: Mapping[str, Any], tree: _Tree) -> dict[str, Any]:
    """The named fields of an object, in its own order."""
    chosen = {key: _only_below(item, tree[key]) for key, item in value.items() if key in tree}
    return {key: item for key, item in chosen.items() if item is not _ABSENT}


def _only_below(value: Any, tree: _Tree) -> Any:
    if not tree:
        return value
    if isinstance(value, Mapping):
        return _only(value, tree)
    if isinstance(value, list):
        items = (_only_below(item, tree) for item in value)
        return [item for item in items if item is not _ABSENT]
    return _ABSENT


def _without(value: Any, tree: _Tree) -> Any:
    """A value without the named fields."""
    if isinstance(value, dict | Mapping):
        if tree.keys().isdisjoint(value):
            return value
        return {
            key: _without(item, tree[key]) if key in tree else item
            for key, item in value.items()
            if key not in tree or tree[key]
        }
    if isinstance(value, list):
        return [_without(item, tree) for item in value]
    return value


# Reading the hints


def _remembered_plan(hints: Mapping[str, Any]) -> HintPlan:
    """The plan of hints. Plans of short hints are cached, because the hints of a schema apply to all its records."""
    encoded = msgspec.json.encode(hints)
    return _decode_plan(encoded) if len(encoded) <= MAX_CACHED_HINTS else plan_hints(hints)


@lru_cache(256)
def _decode_plan(encoded: bytes) -> HintPlan:
    return plan_hints(msgspec.json.decode(encoded))


def plan_hints(hints: Mapping[str, Any]) -> HintPlan:
    """Read hints once. Raises as check_hints does, except for the bodies of transforms."""
    for key in hints:
        if key not in _KEYS:
            raise InvalidInput(f"llm_hints.{str(key)[:40]}", "is not known", hint=f"Known are {', '.join(_KEYS)}")
    has_short_form = "format" in hints or "template" in hints
    mode = hints.get("mode", "replace" if has_short_form else "merge")
    transforms = (*_short_forms(hints), *_long_forms(hints))
    if mode not in ("merge", "replace"):
        raise InvalidInput("llm_hints.mode", "must be merge or replace")
    if mode == "replace" and not transforms:
        raise InvalidInput("llm_hints.mode", "is replace, but there is no transform to show instead")
    if len(transforms) > MAX_TRANSFORMS:
        raise TooLarge("llm_hints.transform", len(transforms), MAX_TRANSFORMS, "transforms")
    return HintPlan(_tree(hints, "include"), _tree(hints, "exclude"), transforms, mode == "replace")


def _short_forms(hints: Mapping[str, Any]) -> list[_Transform]:
    if "format" in hints and "template" in hints:
        raise InvalidInput("llm_hints", "has both format and template; both write `content`")
    found = [
        _transform(f"llm_hints.{kind}", "content", kind, hints[kind])
        for kind in ("format", "template")
        if kind in hints
    ]
    for kind in ("extract", "literal"):
        for out, body in _members(hints, kind):
            found.append(_transform(f"llm_hints.{kind}.{out}", out, kind, body))
    return found


def _long_forms(hints: Mapping[str, Any]) -> list[_Transform]:
    found = []
    for out, rule in _members(hints, "transform"):
        field = f"llm_hints.transform.{out}"
        kind = rule.get("type") if isinstance(rule, Mapping) else None
        if not isinstance(kind, str) or kind not in _BODY:
            raise InvalidInput(f"{field}.type", f"must be one of {', '.join(_BODY)}")
        if set(rule) != {"type", _BODY[kind]}:
            raise InvalidInput(field, f"must have exactly the fields type and {_BODY[kind]}")
        found.append(_transform(field, out, kind, rule[_BODY[kind]]))
    return found


def _transform(field: str, out: str, kind: str, body: Any) -> _Transform:
    if not 0 < len(out) <= MAX_NAME:
        raise InvalidInput(field[:MAX_NAME], f"must write to a field named with 1 to {MAX_NAME} characters")
    if kind != "literal" and not isinstance(body, str):
        raise InvalidInput(field, f"must be a text for {kind}")
    return _Transform(field, out, kind, body)


def _members(hints: Mapping[str, Any], key: str) -> list[tuple[str, Any]]:
    members = hints.get(key, {})
    if not isinstance(members, Mapping):
        raise InvalidInput(f"llm_hints.{key}", "must be an object of output fields")
    return list(members.items())


def _tree(hints: Mapping[str, Any], key: str) -> _Tree | None:
    """The tree of dotted names under `include` or `exclude`, or None when there is no such list."""
    names = hints.get(key)
    if names is None:
        return None
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise InvalidInput(f"llm_hints.{key}", "must be a list of dotted field names")
    if len(names) > MAX_FIELDS:
        raise TooLarge(f"llm_hints.{key}", len(names), MAX_FIELDS, "fields")
    tree: _Tree = {}
    for name in names:
        _plant(tree, _parts(name, f"llm_hints.{key}"))
    return tree


def _plant(tree: _Tree, parts: tuple[str, ...]) -> None:
    for part in parts[:-1]:
        if tree.get(part) == {}:
            return
        tree = tree.setdefault(part, {})
    tree[parts[-1]] = {}


def _parts(name: str, field: str) -> tuple[str, ...]:
    parts = tuple(name.split("."))
    if not all(parts) or len(parts) > template.MAX_PATH or max(map(len, parts)) > MAX_NAME:
        raise InvalidInput(field, f"{name[:80]!r} is not a dotted field name", hint="For example input.schema")
    return parts
