"""The definitions of what a question names: `where is TempPathFactory` wants that class, before what speaks of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from clew.access import Principal
from clew.knowledge.code.path_kinds import ASIDE, TEST, kind_of
from clew.knowledge.shelves import Shelf
from clew.trail.kinds import NodeDomain, NodeType
from clew.trail.nodes import Node, ScoredNode
from clew.trail.text import STOP

MOST_NAMES = 3
MAX_LOOKED_AT = 1_000
FURTHEST = 2
LOOKED_AT = 50
"""So many symbols of a name are compared."""

_KINDS = {
    **dict.fromkeys(("class", "trait", "interface", "struct", "type", "enum", "protocol"), "type"),
    **dict.fromkeys(("function", "func", "method", "macro"), "function"),
    **dict.fromkeys(("constant", "variable"), "value"),
}
_TYPES = (NodeType.STRUCT, NodeType.INTERFACE)
_ORDER = (
    NodeType.STRUCT,
    NodeType.INTERFACE,
    NodeType.FUNCTION,
    NodeType.CONSTANT,
    NodeType.PACKAGE,
    NodeType.METHOD,
    NodeType.VARIABLE,
)
_WANTED = {
    "type": _TYPES,
    "function": (NodeType.FUNCTION, NodeType.METHOD),
    "value": (NodeType.CONSTANT, NodeType.VARIABLE),
}
_TEST_MODULES = ("tests", "test")
"""Modules inside of a file that hold its tests."""
_A_KIND = "|".join(_KINDS)
_PIECE = r"[A-Za-z_$][\w$]*"
NAME = rf"[`'\"]?(?P<name>{_PIECE}(?:(?:\.|::|#){_PIECE})*)(?:\(\))?[`'\"]?"
"""A name as it is written, of one part or several, perhaps in quotes or with the brackets of a call."""
THE = rf"(?:(?:the|a|an|this|our|that) )?(?:(?P<kind>{_A_KIND}) )?"
"""What may stand before a name."""
_DONE = r"(?: (?:is )?(?:defined|implemented|declared|located|found|live|lives|come from))?"
_ALONE = re.compile(
    rf"(?:where (?:is|are|do i find|can i find|does)|where's|which (?:file|module) (?:has|defines|contains)|find|locate"
    rf"|(?:the )?definition of) {THE}{NAME}(?: (?P<after>{_A_KIND}))?{_DONE}(?: in (?:this|the) \w+)?",
    re.IGNORECASE,
)
_SPELLED = re.compile(
    rf"(?<![\w.])(?:`(?P<ticked>[^`\s]{{1,120}})`|(?P<plain>{_PIECE}(?:(?:\.|::){_PIECE})*)(?P<call>\(\))?)"
)
_OF_A_NAME = re.compile(r"[a-z\d][A-Z]|\w_\w|^_\w|\w(?:\.|::)\w|^[A-Z]+[a-z]\w*[A-Z]")


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """What a question names. `is_all` where it asks for nothing but the place of that one thing; `kind` is `type`,
    `function` or `value` where it says which; `is_spelled` where the word can only be a name."""

    names: tuple[str, ...] = ()
    kind: str = ""
    is_all: bool = False
    is_spelled: bool = False


def read_names(question: str) -> Named:
    """The names that a question spells out, in its order; or the one word whose place it asks for."""
    line = " ".join(question[:MAX_LOOKED_AT].split()).rstrip(" ?!.")
    spelled = tuple(dict.fromkeys(_spelled_in(line)))[:MOST_NAMES]
    found = _ALONE.fullmatch(line)
    if found is None:
        return Named(names=spelled, is_spelled=bool(spelled))
    name, kind = found["name"], (found["kind"] or found["after"] or "").lower()
    return Named(names=(name,), kind=_KINDS.get(kind, ""), is_all=True, is_spelled=bool(spelled or kind))


async def find_definitions(shelf: Shelf, named: Named, *, by: Principal) -> list[ScoredNode]:
    """What defines the names as they are spelled; in other capitals where nothing is spelled so, or where a name may be
    a plain word. Of each the product before its tests, a type before a function and that before a method, and the
    longest first."""
    found: dict[str, ScoredNode] = {}
    for name in named.names:
        near = await shelf.search(name, by=by, limit=LOOKED_AT)
        for group in _defining(near, name, named):
            ranked = sorted(group, key=lambda one: standing_of(one.node, named.kind))
            found |= {each.node.id: each for each in ranked if each.node.id not in found}
    return list(found.values())


def is_name(word: str) -> bool:
    """Whether a word can only be a name of code, by its capitals, underscores or dots."""
    return _OF_A_NAME.search(word) is not None


def is_test(node: Node) -> bool:
    """Whether a node is code that tests other code."""
    return node.domain is NodeDomain.CODE and distance_of(node) == FURTHEST


def distance_of(node: Node) -> int:
    """How far code is from the product: 0 for the product, then what stands beside it, then its tests."""
    bits = kind_of(node.path or "")
    is_inside = node.name.partition(".")[0] in _TEST_MODULES
    return FURTHEST if bits & TEST or is_inside else 1 if bits & ASIDE else 0


def _spelled_in(line: str) -> Iterable[str]:
    for at, found in enumerate(_SPELLED.finditer(line)):
        word = found["ticked"] or found["plain"]
        is_capital = at > 0 and word[0].isupper() and word.lower() not in STOP and len(word) > 1
        if found["ticked"] or found["call"] or is_capital or _OF_A_NAME.search(word):
            yield word.removesuffix("()")


def _defining(near: Sequence[ScoredNode], name: str, asked: Named) -> list[list[ScoredNode]]:
    """Those of this very name, then those that differ in capitals alone, as far as they may be meant: not where the
    name is spelled and has a definition, of the kind that is asked for where one is."""
    wanted = name.replace("::", ".").replace("#", ".")
    named = [each for each in near if each.node.node_type is not NodeType.FILE]
    exact = [each for each in named if _ends_with(each.node.name, wanted)]
    meant = [each for each in exact if not asked.kind or each.node.node_type in _WANTED[asked.kind]]
    if meant and asked.is_spelled:
        return [exact]
    alike = [each for each in named if _ends_with(each.node.name.lower(), wanted.lower())]
    of_kind = [each for each in alike if asked.kind and each.node.node_type in _WANTED[asked.kind]]
    return [of_kind, alike] if asked.kind else [exact, alike]


def _ends_with(qualname: str, wanted: str) -> bool:
    return qualname == wanted or qualname.endswith(f".{wanted}")


def standing_of(node: Node, kind: str = "") -> tuple[bool, int, int, int, int, str]:
    """What orders definitions: of the kind that is asked for, the product, types, upper ones, long ones."""
    place = _ORDER.index(node.node_type) if node.node_type in _ORDER else len(_ORDER)
    place = 0 if node.node_type in _TYPES else place
    length = (node.line_end or 0) - (node.line_start or 0)
    is_other = bool(kind) and node.node_type not in _WANTED[kind]
    return (is_other, distance_of(node), place, node.name.count("."), -length, node.path or "")
