"""The callers of a name: certain ones for each symbol that it may mean, and calls that only share the name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from clew.knowledge.code.models import CalledSymbol, Callers, SymbolRow, to_node
from clew.knowledge.code.queries import SHOWN, Definition, Reached, find_linked, get_definitions, to_links, too_many
from clew.knowledge.code.refs import node_id
from clew.knowledge.code.rows import find_hops, find_symbols
from clew.knowledge.code.store import Sql
from clew.knowledge.code.unresolved_calls import find_unresolved
from clew.trail.kinds import NodeType
from clew.trail.nodes import Node

MAX_PLACES = 50
"""Unresolved calls that are listed."""

_CALLED = frozenset(("function", "method", "class", "interface"))
_CONSTRUCTORS = frozenset(("constructor", "initialize"))
"""Methods of JavaScript and Ruby that run when their class is called."""


def find_callers(sql: Sql, ref: str, depth: int) -> Callers:
    """The callers of each symbol that a reference may mean, within `depth` steps.

    Raises NotFound, and InvalidInput if more than a few symbols have the name.
    """
    found = get_definitions(sql, ref)
    found = [each for each in found if each.row.kind in _CALLED] or found
    if len(found) > SHOWN:
        raise too_many(ref, found)
    symbols = _without_idle_constructors([_called(sql, each, depth) for each in found])
    unresolved = find_unresolved(sql, [each.row for each in found]) if found[0].row.qualname else []
    is_certain = any(not link.is_guess for symbol in symbols for link in symbol.callers)
    return Callers(
        certain=is_certain or not (unresolved or any(symbol.callers for symbol in symbols)),
        symbols=symbols,
        untold=len(unresolved),
        places=unresolved[:MAX_PLACES],
        owners=dict(Counter(call.owner for call in unresolved).most_common()),
    )


def _without_idle_constructors(symbols: Sequence[CalledSymbol]) -> list[CalledSymbol]:
    """Without constructors that have no callers of their own: those of the class are theirs."""
    called = {each.node.id for each in symbols if each.callers}
    return [each for each in symbols if each.callers or _class_of_constructor(each.node) not in called]


def _class_of_constructor(node: Node) -> str:
    """The id of the class that a method is named after; empty for any other method."""
    owner, _, name = node.name.rpartition(".")
    is_constructor = node.node_type == NodeType.METHOD and owner.rpartition(".")[2] == name
    return node_id(node.path or "", owner) if is_constructor else ""


def _called(sql: Sql, each: Definition, depth: int) -> CalledSymbol:
    reached = _callers_of(sql, each.row, depth)
    if not reached and each.row.name in _CONSTRUCTORS:
        reached = [found for row in _class_around(sql, each) for found in _callers_of(sql, row, depth)]
    return CalledSymbol(node=to_node(each.row), callers=to_links(each.row, [*_recursion(sql, each), *reached]))


def _callers_of(sql: Sql, row: SymbolRow, depth: int) -> list[Reached]:
    return find_linked(sql, row, ("calls",), depth, backwards=True)


def _class_around(sql: Sql, each: Definition) -> list[SymbolRow]:
    where = "WHERE f.path = ? AND s.qualname = ? AND s.kind = 'class' LIMIT 1"
    return find_symbols(sql, where, (each.row.path, each.row.qualname.rpartition(".")[0]))


def _recursion(sql: Sql, each: Definition) -> list[Reached]:
    """The symbol itself if it calls itself."""
    hops = [hop for hop in find_hops(sql, each.ids, ("calls",), backwards=True) if hop.far in each.ids]
    lines = tuple(sorted({hop.line for hop in hops}))
    return [Reached(each.row, hops[0], 1, lines)] if hops else []
