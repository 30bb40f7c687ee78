"""What calls a name: for each symbol that it may mean what surely does, and next to that what only shares the name."""

from __future__ import annotations

from collections.abc import Sequence

from clew.knowledge.code.models import CalledSymbol, Callers, to_node
from clew.knowledge.code.namesakes import find_namesakes
from clew.knowledge.code.queries import SHOWN, Definition, find_linked, get_definitions, to_links, too_many
from clew.knowledge.code.refs import node_id
from clew.knowledge.code.store import Sql
from clew.trail.kinds import NodeType
from clew.trail.nodes import Node

MOST_PLACES = 50
"""So many calls that could not be told apart are listed."""

_CALLED = frozenset(("function", "method", "class", "interface"))


def find_callers(sql: Sql, ref: str, depth: int) -> Callers:
    """The callers of each symbol that a reference may mean, within some steps. Raises NotFound, and InvalidInput where
    more than a few have the name."""
    found = get_definitions(sql, ref)
    found = [each for each in found if each.row.kind in _CALLED] or found
    if len(found) > SHOWN:
        raise too_many(ref, found)
    symbols = _without_idle_constructors([_called(sql, each, depth) for each in found])
    alike = find_namesakes(sql, [each.row for each in found]) if found[0].row.qualname else []
    is_sure = any(not link.is_guess for symbol in symbols for link in symbol.callers)
    return Callers(
        certain=is_sure or not (alike or any(symbol.callers for symbol in symbols)),
        symbols=symbols,
        untold=len(alike),
        places=alike[:MOST_PLACES],
    )


def _without_idle_constructors(symbols: Sequence[CalledSymbol]) -> list[CalledSymbol]:
    """What is called by the name of its class is called with the class: by itself it has no callers."""
    called = {each.node.id for each in symbols if each.callers}
    return [each for each in symbols if each.callers or _class_of_constructor(each.node) not in called]


def _class_of_constructor(node: Node) -> str:
    """The id of the class that a method is named like; empty for any other."""
    owner, _, name = node.name.rpartition(".")
    is_constructor = node.node_type == NodeType.METHOD and owner.rpartition(".")[2] == name
    return node_id(node.path or "", owner) if is_constructor else ""


def _called(sql: Sql, each: Definition, depth: int) -> CalledSymbol:
    reached = find_linked(sql, each.row, ("calls",), depth, backwards=True)
    return CalledSymbol(node=to_node(each.row), callers=to_links(each.row, reached))
