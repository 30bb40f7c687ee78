"""Questions on what uses what: `what calls Y`, `what does Y call`, `who inherits from Y`, `what imports Y`. They are
answered by the edges of the code, each with the line of the use."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

import msgspec

from clew.access import Principal
from clew.errors import InvalidInput, NotFound
from clew.knowledge.code.views import Callers, Link
from clew.knowledge.resolving.definitions import NAME, THE, Named, distance_of, find_definitions
from clew.knowledge.shelves import Shelf
from clew.trail.nodes import Node

MOST_DEFINITIONS = 5
"""Of a name that several have, the uses of so many are looked for."""

_WHO = r"(?:who|what|which (?:\w+ )?(?:functions?|methods?|class(?:es)?|files?|modules?|code|tests?|types?|places?))"
_HERE = r"(?: (?:here|in (?:this|the|our) (?:\w+)))?"
_IT = rf"{THE}{NAME}(?: (?:function|method|class|module|trait|interface|struct|type))?{_HERE}"
_OF = r"(?:(?:all |the |any )*)"
_PATTERNS = tuple(
    (edge_type, backwards, re.compile(pattern, re.IGNORECASE))
    for edge_type, backwards, pattern in (
        ("calls", True, rf"{_WHO} (?:is |are )?(?:calls?|calling|invokes?|invoking) {_IT}"),
        ("calls", True, rf"(?:find |list |show (?:me )?)?{_OF}(?:callers?|calls|call sites?) (?:of|to|for) {_IT}"),
        ("calls", True, rf"{NAME} callers?"),
        (
            "calls",
            True,
            rf"(?:where|from where|by what) (?:is|are|does|do|gets?) {_IT} (?:get )?(?:called|invoked)(?: from)?",
        ),
        ("all", True, rf"{_WHO} (?:uses?|depends? on|references?|needs?) {_IT}"),
        (
            "all",
            True,
            rf"(?:find |list |show (?:me )?)?{_OF}(?:usages?|uses|users|dependents|references) (?:of|to) {_IT}",
        ),
        ("all", True, rf"where (?:is|are) {_IT} (?:used|referenced)"),
        ("calls", False, rf"(?:what|which \w+) (?:does|do|did) {_IT} (?:call|invoke)"),
        ("calls", False, rf"(?:what|which \w+) (?:is|are|gets?) (?:called|invoked) by {_IT}"),
        ("calls", False, rf"{_OF}callees of {_IT}"),
        ("all", False, rf"(?:what|which \w+) (?:does|do) {_IT} (?:use|need|depend on)"),
        ("all", False, rf"{_OF}dependencies of {_IT}"),
        ("extends", True, rf"{_WHO} (?:inherits?(?: from)?|extends?|derives? from|subclass(?:es)?|implements?) {_IT}"),
        ("extends", True, rf"{_OF}(?:subclasses|child classes|implementations|implementors) of {_IT}"),
        ("extends", False, rf"(?:what|which \w+) (?:does|do) {_IT} (?:inherit(?: from)?|extend|implement|derive from)"),
        ("imports", True, rf"{_WHO} (?:imports?) {_IT}"),
        ("imports", False, rf"(?:what|which \w+) (?:does|do) {_IT} import"),
    )
)
_SAID = {"calls": "calls", "inherits": "inherits from", "implements": "implements", "imports": "imports"}
_EDGES = {"extends": ("extends", "implements")}
"""What inherits from an interface implements it."""
_NONE = {
    ("calls", True): "calls",
    ("calls", False): "is called by",
    ("all", True): "uses",
    ("all", False): "is used by",
    ("extends", True): "inherits from",
    ("extends", False): "is a parent of",
    ("imports", True): "imports",
    ("imports", False): "is imported by",
}
_PRONOUNS = frozenset(("it", "this", "that", "we", "you", "i", "they", "them", "us", "me"))


class UseQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """Which edges of which name: to it (`backwards`), or from it."""

    named: Named
    edge_type: str
    backwards: bool

    @property
    def none_found(self) -> str:
        return f"Nothing that is known here {_NONE[self.edge_type, self.backwards]} {self.named.names[0]}."


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """One use: the node at the line where it stands, and what is done there."""

    place: Node
    user: str
    used: str
    does: str
    is_guess: bool = False


class CodeLinks(Protocol):
    """What is needed of the graph of code."""

    async def dependents(self, ref: str, *, edge_type: str = "all", depth: int = 1) -> list[Link]: ...

    async def dependencies(self, ref: str, *, edge_type: str = "all", depth: int = 1) -> list[Link]: ...

    async def callers(self, ref: str, *, depth: int = 1) -> Callers: ...

    async def symbol(self, ref: str) -> Node: ...


def read_use_question(question: str) -> UseQuestion | None:
    """What a question wants to know of uses; None where it asks for something else, or names nothing in particular."""
    line = " ".join(question.split()).rstrip(" ?!.")[:500]
    for edge_type, backwards, pattern in _PATTERNS:
        found = pattern.fullmatch(line)
        if found is not None and found["name"].lower() not in _PRONOUNS:
            return UseQuestion(
                named=Named(names=(found["name"],), is_spelled=True), edge_type=edge_type, backwards=backwards
            )
    return None


async def find_uses(code: CodeLinks, asked: UseQuestion, definitions: Sequence[Node]) -> list[Use]:
    """The uses, those that are sure before those that only a name speaks for, and the product before its tests."""
    found: dict[tuple[str, str, str], Use] = {}
    for node in definitions[:MOST_DEFINITIONS]:
        for edge_type in _EDGES.get(asked.edge_type, (asked.edge_type,)):
            for link in await _links(code, asked, node.id, edge_type):
                use = _use(node, link, asked)
                found.setdefault((use.place.path or "", use.user, use.used), use)
    by_name = await _calls_by_name(code, asked) if asked.edge_type == "calls" and asked.backwards else []
    return sorted((*found.values(), *by_name), key=lambda use: (use.is_guess, distance_of(use.place)))


async def _calls_by_name(code: CodeLinks, asked: UseQuestion) -> list[Use]:
    """Calls of the name, of which nobody can tell what they call."""
    [name] = asked.named.names
    try:
        calls = (await code.callers(name)).places
        files = {path: await code.symbol(path) for path in {call.path for call in calls}}
    except (NotFound, InvalidInput):  # a file went meanwhile
        return []
    return [
        Use(
            place=msgspec.structs.replace(files[call.path], line_start=call.line, line_end=call.line),
            user=call.caller or call.path,
            used=name,
            does="calls",
            is_guess=True,
        )
        for call in calls
    ]


async def _links(code: CodeLinks, asked: UseQuestion, ref: str, edge_type: str) -> list[Link]:
    look = code.dependents if asked.backwards else code.dependencies
    try:
        return await look(ref, edge_type=edge_type)
    except (NotFound, InvalidInput):  # it went, or another has its name by now
        return []


def _use(node: Node, link: Link, asked: UseQuestion) -> Use:
    user, used = (link.node, node) if asked.backwards else (node, link.node)
    return Use(
        place=msgspec.structs.replace(user, line_start=link.line, line_end=link.line),
        user=user.name,
        used=used.name,
        does=_SAID.get(link.edge_type, "refers to"),
        is_guess=link.is_guess,
    )


async def find_used(shelf: Shelf, asked: UseQuestion, *, by: Principal) -> list[Node]:
    """What has the name that a question asks about, the product before its tests."""
    return [each.node for each in await find_definitions(shelf, asked.named, by=by)]
