"""Text templates in the manner of Handlebars, for llm_hints. A template sees JSON and nothing else: names are
keys of objects and indexes of lists, never Python attributes. Size, nesting, steps and output are bounded: a
hostile template soon ends in a TemplateError. Nothing is HTML-escaped, because models read the result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from clew.trail.templates.template_helpers import HELPERS, RenderBudget, to_text
from clew.trail.templates.template_tree import (
    MAX_PATH,
    MAX_TEMPLATE,
    Block,
    Expression,
    HelperCall,
    Literal,
    Node,
    parse,
)

__all__ = ["MAX_PATH", "MAX_TEMPLATE", "RenderBudget", "find_value", "parse", "render", "to_text"]


def render(template: str, data: Mapping[str, Any], budget: RenderBudget | None = None) -> str:
    """Render a template. Missing values are rendered as empty text.

    `{{a.b.0}}`, `{{#if}} {{else if}} {{else}} {{/if}}`, `{{#unless}}`, `{{#each}}` with this, @index, @key, @first and
    @last, `{{#with}}`, `../`, `@root`, comments, and the helpers of HELPERS. Empty values (false, null, 0, "", [], {})
    are false in conditions. Raises TemplateError when malformed or over the budget.
    """
    budget = budget or RenderBudget()
    out: list[str] = []
    _run(parse(template), _Scope(data, data), out, budget)
    return "".join(out)


def find_value(value: Any, steps: Sequence[str]) -> Any:
    """The value at a path of keys and list indexes, or None."""
    for step in steps:
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list | tuple) and len(step) < 10 and step.isascii() and step.isdecimal():
            index = int(step)
            value = value[index] if index < len(value) else None
        else:
            return None
    return value


class _Scope(NamedTuple):
    value: Any
    root: Any
    parent: _Scope | None = None
    position: int | None = None
    key: str | None = None
    is_last: bool = False


def _run(nodes: Sequence[Node], scope: _Scope, out: list[str], budget: RenderBudget) -> None:
    for node in nodes:
        budget.step()
        if isinstance(node, Block):
            _run_block(node, scope, out, budget)
            continue
        text = node if isinstance(node, str) else to_text(_evaluate(node.what, scope, budget), budget)
        budget.write(len(text))
        out.append(text)


def _run_block(block: Block, scope: _Scope, out: list[str], budget: RenderBudget) -> None:
    value = _evaluate(block.head, scope, budget)
    if bool(value) == (block.kind == "unless"):
        _run(block.otherwise, scope, out, budget)
    elif block.kind == "each":
        for inner in _iterate(value, scope):
            budget.step()
            _run(block.body, inner, out, budget)
    elif block.kind == "with":
        inner = scope._replace(value=value, parent=scope)
        _run(block.body, inner, out, budget)
    else:
        _run(block.body, scope, out, budget)


def _iterate(value: Any, scope: _Scope) -> Iterator[_Scope]:
    """Yield one scope per item. Scopes are created lazily, because a list may be longer than the budget allows."""
    if isinstance(value, Mapping):
        for index, (key, item) in enumerate(value.items()):
            yield _Scope(item, scope.root, scope, index, key, index == len(value) - 1)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield _Scope(item, scope.root, scope, index, None, index == len(value) - 1)


def _evaluate(what: Expression, scope: _Scope, budget: RenderBudget) -> Any:
    if isinstance(what, Literal):
        return what.value
    if isinstance(what, HelperCall):
        arguments = [_evaluate(argument, scope, budget) for argument in what.arguments]
        return HELPERS[what.helper].run(budget, *arguments)
    at: _Scope | None = scope
    for _ in range(what.up):
        at = at.parent if at is not None else None
    if at is None:
        return None
    return find_value(_named(at, what.name), what.steps)


def _named(scope: _Scope, name: str) -> Any:
    match name:
        case "@index":
            return scope.position
        case "@key":
            return scope.key
        case "@first":
            return scope.position == 0
        case "@last":
            return scope.is_last
        case "@root":
            return scope.root
        case _:
            return scope.value
