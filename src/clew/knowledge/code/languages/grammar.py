"""A language as the walk over its trees needs it: how it writes names and calls, and what to do at a kind of node."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Language, Node

    from clew.knowledge.code.languages.walker import Walk

Handler = Callable[["Walk", "Node", int], bool]
"""Takes what it wants from a node that begins at a byte; whether the nodes below are to be visited."""


class Shape(NamedTuple):
    """How a grammar writes `a.b` and `a()`: kinds of nodes with the fields of their object and their name."""

    members: Mapping[str, tuple[str, str]] = {}
    calls: Mapping[str, str] = {}
    wrappers: Mapping[str, str] = {}
    """Kinds whose name is that of one field: `List<T>`, `f::<T>`."""
    own: tuple[bytes, ...] = ()
    """What stands for the object itself, with a dot: `self.`."""
    builtins: Collection[bytes] = ()


class Grammar(NamedTuple):
    """A language, ready to walk: what to do at a kind of node, by the number of the kind."""

    language: Language
    handlers: Mapping[int, Handler]
    shape: Shape


def build_grammar(language: Language, table: Mapping[str, Handler], shape: Shape) -> Grammar:
    """The table by numbers; one name may have several."""
    kinds = ((each, language.node_kind_for_id(each)) for each in range(language.node_kind_count))
    named = {each: kind for each, kind in kinds if kind is not None and language.node_kind_is_named(each)}
    return Grammar(language, {each: table[kind] for each, kind in named.items() if kind in table}, shape)
