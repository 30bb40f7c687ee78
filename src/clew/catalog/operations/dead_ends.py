"""Find guidance to routes that do not exist.

Guidance to a domain that is not loaded is not a mistake and is simply dropped. A route that a tool's code spells out
and that its loaded domain does not have is a mistake.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any

import msgspec

from clew.access import Principal
from clew.catalog.registry import DomainRegistry
from clew.catalog.route import CatalogRoute, parse_route
from clew.errors import InvalidInput
from clew.tools import Guidance

MAX_FUNCTIONS = 50
"""Most functions that are scanned for one tool: its own, and those of its module that it uses."""

MAX_VALUES = 200


class DeadEnd(msgspec.Struct, frozen=True, kw_only=True):
    """A tool with guidance to a missing route, and the most similar route of that domain."""

    tool: str
    route: str
    nearest: str = ""

    def __str__(self) -> str:
        guess = f" Did you mean {self.nearest}?" if self.nearest else ""
        return f"{self.tool} leads to {self.route}, which does not exist: the step is dropped.{guess}"


def find_dead_ends(registry: DomainRegistry) -> list[DeadEnd]:
    """Return the dead ends, one for each tool and route, in order of registration. This runs no code of a tool. Domains
    that come with Clew are left out: a test checks them."""
    found: list[DeadEnd] = []
    for routed in registry.tools():
        if routed.domain.is_foreign or routed.domain.is_builtin or routed.tool.source != "local":
            continue
        for route in sorted(set(_named_routes(routed.tool.call, registry))):
            close = difflib.get_close_matches(str(route), _routes_of(registry, route), 1)
            found.append(DeadEnd(tool=routed.text, route=str(route), nearest=close[0] if close else ""))
    return found


def find_leading(registry: DomainRegistry, route: CatalogRoute, by: Principal) -> list[str]:
    """The entry points that lead to a hidden tool and that the caller may use: those whose code names the tool's route,
    or all entry points of its domain if none does."""
    domain = registry.find_domain(route.domain)
    if domain is None:
        return []
    entries = registry.entry_points(domain, by)
    naming = [text for text, routed in entries.items() if str(route) in _route_texts(routed.tool.call)]
    return naming or list(entries)


def _route_texts(call: Callable[..., Any]) -> set[str]:
    """The texts in the code behind a call that may be routes."""
    functions = _functions(call)
    known = {text for function in functions for value in _values(function) for text in _texts(value)}
    return known.union(*(_constants(function.__code__) for function in functions))


def _named_routes(call: Callable[..., Any], registry: DomainRegistry) -> Iterator[CatalogRoute]:
    """The routes that the code behind a call names, and that are missing."""
    for function in _functions(call):
        known = {text for value in _values(function) for text in _texts(value)}
        for text in known | set(_constants(function.__code__)):
            route = _missing(text, registry)
            if route is not None and (text in known or _is_whole_literal(text, function)):
                yield route


def _functions(call: Callable[..., Any]) -> list[FunctionType]:
    """The function of a call, the functions in its closure, and the functions of its own module that it uses."""
    found: dict[int, FunctionType] = {}
    waiting: list[Any] = [call]
    while waiting and len(found) < MAX_FUNCTIONS:
        function = waiting.pop()
        if not isinstance(function, FunctionType) or id(function) in found:
            continue
        found[id(function)] = function
        near = (value for value in _values(function) if getattr(value, "__module__", "") == function.__module__)
        waiting += [*near, *_closed_over(function)]
    return list(found.values())


def _values(function: FunctionType) -> list[Any]:
    """The values behind the names in a function: globals of its module, and closed-over variables."""
    names = dict.fromkeys(name for code in _codes(function.__code__) for name in code.co_names)
    return [function.__globals__[name] for name in names if name in function.__globals__] + _closed_over(function)


def _closed_over(function: FunctionType) -> list[Any]:
    found = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # not filled yet
            continue
    return found


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def _constants(code: CodeType) -> Iterator[str]:
    for each in _codes(code):
        for constant in each.co_consts:
            yield from _texts(constant)


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    """Texts that may be routes in a value: itself, its entries, the routes of guidance."""
    if isinstance(value, str):
        if "://" in value:
            yield value
    elif isinstance(value, Guidance):
        yield value.route
    elif isinstance(value, dict | list | tuple | set | frozenset) and len(value) <= MAX_VALUES and depth < 2:
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each, depth + 1)


def _missing(text: str, registry: DomainRegistry) -> CatalogRoute | None:
    """The route in a text if it is known not to exist: its domain is loaded and not foreign, but has no such tool or
    resource. Otherwise None."""
    try:
        route = parse_route(text)
    except InvalidInput:
        return None
    domain = registry.find_domain(route.domain)
    if domain is None or domain.is_foreign:
        return None
    if route.kind == "tools":
        return route if registry.find_tool(route) is None else None
    is_whole = all(pipeline.source.name == "defined" for pipeline in domain.extractors)
    return route if is_whole and registry.find_resource(route) is None else None


def _routes_of(registry: DomainRegistry, route: CatalogRoute) -> list[str]:
    routes: Iterable[Any] = registry.tools() if route.kind == "tools" else registry.resources()
    return [str(each.route) for each in routes if each.route.domain == route.domain]


def _is_whole_literal(text: str, function: FunctionType) -> bool:
    """Whether the source contains the text as a complete string literal, not only as a prefix of a longer one. False if
    there is no source."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return False
    parts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts |= set(map(id, node.values))
        elif isinstance(node, ast.BinOp):
            parts |= {id(node.left), id(node.right)}
    return any(
        isinstance(node, ast.Constant) and node.value == text and id(node) not in parts for node in ast.walk(tree)
    )
