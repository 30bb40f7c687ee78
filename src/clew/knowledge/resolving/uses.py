"""Questions on what uses what: `what calls Y`, `what does Y call`, `who inherits from Y`, `what imports Y`. They are
answered by the edges of the code, each with the line of the use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from clew.access import Principal
from clew.catalog.text import code_span
from clew.errors import ClewError, InvalidInput, NotFound
from clew.knowledge.code.models import Callers, Link, Located
from clew.knowledge.code.path_kinds import TEXT, kind_of
from clew.knowledge.resolving.definitions import NAME, THE, Named, distance_of, find_definitions, is_name, read_names
from clew.knowledge.resolving.lines_of_use import find_assigning_lines, find_heir_lines, find_import_lines
from clew.knowledge.shelves import Shelf
from clew.trail.nodes import Node

MAX_NAME = 120
LOOKED_AT = 8
MOST_NEAR = 50
MOST_DEFINITIONS = 5
"""Of a name that several have, the uses of so many are looked for."""

_WHO = r"(?:who|what|which (?:\w+ )?(?:functions?|methods?|class(?:es)?|files?|modules?|code|tests?|types?|places?))"
_WHAT = r"(?:what|which (?:other )?(?:functions?|methods?|class(?:es)?|files?|modules?|packages?|code|types?|names?))"
_HERE = r"(?: (?:here|in (?:this|the|our) (?:\w+)))?"
_IT = rf"{THE}{NAME}(?: (?:function|method|class|module|trait|interface|struct|type))?{_HERE}"
_PACKAGE = (
    r"[`'\"]?(?P<name>@?[A-Za-z_][\w.]*(?:[/-][\w.]+)+)[`'\"]?"
    r"(?: (?:package|library|module|crate|gem|dependency))?(?: (?:here|in (?:this|the|our) \w+))?"
)
"""The name of a package of others that can be no name of code."""
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
        ("calls", False, rf"{_WHAT} (?:does|do|did) {_IT} (?:call|invoke)"),
        ("calls", False, rf"{_WHAT} (?:is|are|gets?) (?:called|invoked) by {_IT}"),
        ("calls", False, rf"{_OF}callees of {_IT}"),
        ("all", False, rf"{_WHAT} (?:does|do) {_IT} (?:use|need|depend on)"),
        ("all", False, rf"{_OF}dependencies of {_IT}"),
        ("extends", True, rf"{_WHO} (?:inherits?(?: from)?|extends?|derives? from|subclass(?:es)?|implements?) {_IT}"),
        ("extends", True, rf"{_OF}(?:subclasses|child classes|implementations|implementors) of {_IT}"),
        ("extends", False, rf"{_WHAT} (?:does|do) {_IT} (?:inherit(?: from)?|extend|implement|derive from)"),
        ("imports", True, rf"{_WHO} (?:imports?) {_IT}"),
        ("imports", True, rf"{_WHO} (?:imports?|uses?|depends? on|requires?) (?:the )?{_PACKAGE}"),
        ("imports", False, rf"{_WHAT} (?:does|do) {_IT} import"),
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
MEANT = "Did you mean"
_PARTS = re.compile(r"\w\.\w")
_PRONOUNS = frozenset(("it", "this", "that", "we", "you", "i", "they", "them", "us", "me"))


FindLines = Callable[[Sequence[str], str], Iterable[tuple[int, str]]]


class UseQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """Which edges of which name: to it (`backwards`), or from it."""

    named: Named
    edge_type: str
    backwards: bool

    @property
    def can_be_word(self) -> bool:
        """Whether the name may be a plain word, of which documents speak as well."""
        return self.edge_type in ("all", "imports") and not is_name(self.named.names[0])

    @property
    def plainly(self) -> str:
        """The question in the words of code, where these are found however it is put; else nothing."""
        return f"what extends {self.named.names[0]}" if self.edge_type == "extends" and self.backwards else ""

    @property
    def only_assigned(self) -> str:
        """That nothing can be told of what has no definition of its own."""
        done = _NONE[self.edge_type, self.backwards]
        return f"{self.named.names[0]} is assigned a value here, and not defined: what {done} it is not known."

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

    async def locate(self, query: str, *, limit: int = 10) -> list[Located]: ...

    async def symbol(self, ref: str) -> Node: ...

    async def source(self, ref: str) -> str: ...

    def rarity(self, words: Sequence[str]) -> Mapping[str, float]: ...


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
    found: dict[tuple[str, int, str, str], Use] = {}
    for node in definitions[:MOST_DEFINITIONS]:
        for edge_type in _EDGES.get(asked.edge_type, (asked.edge_type,)):
            for link in await _links(code, asked, node.id, edge_type):
                use = _use(node, link, asked)
                found.setdefault((use.place.path or "", use.place.line_start or 0, use.user, use.used), use)
    places = {(use.place.path, use.place.line_start) for use in found.values()}
    by_name = [use for use in await _by_name(code, asked) if (use.place.path, use.place.line_start) not in places]
    return sorted((*found.values(), *by_name), key=lambda use: (use.is_guess, distance_of(use.place)))


async def _by_name(code: CodeLinks, asked: UseQuestion) -> list[Use]:
    """The uses that only a name speaks for."""
    if not asked.backwards:
        return []
    if asked.edge_type == "extends":
        return await find_heirs(code, asked)
    return await _calls_by_name(code, asked) if asked.edge_type == "calls" else []


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
    is_same = user.name == used.name and user.path != used.path
    return Use(
        place=msgspec.structs.replace(user, line_start=link.line, line_end=link.line),
        user=_placed(user) if is_same else user.name,
        used=_placed(used) if is_same else used.name,
        does=_SAID.get(link.edge_type, "refers to"),
        is_guess=link.is_guess,
    )


async def _stands(code: CodeLinks, shelf: Shelf, name: str, by: Principal) -> bool:
    """Whether the code has all parts of a name, and what is found for it has the last as it is spelled."""
    parts = [part for part in re.split(r"\W+", name) if part]
    if not all(code.rarity(parts).values()):
        return False
    for each in await shelf.search(name, by=by, limit=LOOKED_AT):
        try:
            if parts[-1] in await code.source(each.node.id):
                return True
        except ClewError:  # it went meanwhile
            continue
    return False


def _placed(node: Node) -> str:
    """A name with its file, where the name alone says nothing."""
    return f"{node.path}#{node.name}" if node.path and node.path != node.name else node.name


async def tell_unknown(code: CodeLinks, shelf: Shelf, asked: UseQuestion, *, by: Principal) -> str:
    """That nothing has the name that a question asks about, with those that are near to it; nothing where it stands in
    the code, and so may be of elsewhere, or may be no name."""
    [name] = asked.named.names
    if asked.can_be_word or await _stands(code, shelf, name, by):
        return ""
    try:
        await code.symbol(name)
    except NotFound as error:
        return f"Nothing here is named {code_span(name, MAX_NAME)}. {error.hint}".strip()
    except InvalidInput:  # several have it
        return ""
    return ""


async def find_imports(code: CodeLinks, asked: UseQuestion) -> list[Use]:
    """The lines that import something that is not defined here, of the files that speak of it; the product before its
    tests."""
    [name] = asked.named.names
    found = await _find_written(code, name, find_import_lines)
    return [Use(place=place, user=_whole(place), used=name, does="imports") for place, _ in found]


async def find_heirs(code: CodeLinks, asked: UseQuestion) -> list[Use]:
    """The lines by which something inherits from what has the name, or implements it, by that name alone."""
    [name] = asked.named.names
    found = await _find_written(code, name, find_heir_lines)
    return [Use(place=place, user=_whole(place), used=name, does="inherits from", is_guess=True) for place, _ in found]


async def find_assigned(code: CodeLinks, name: str) -> list[Node]:
    """The lines that assign something to a name of several parts, as nodes; the product before its tests. For what has
    no definition of its own."""
    if not _PARTS.search(name):
        return []
    found = await _find_written(code, name, find_assigning_lines)
    return [
        msgspec.structs.replace(place, id=f"{place.id}#{name}", name=name, signature=said, content=said)
        for place, said in found
    ]


async def _find_written(code: CodeLinks, name: str, find: FindLines) -> list[tuple[Node, str]]:
    """The places where a name is written in some way, of the files that speak of it, each with its line."""
    found = []
    near = await code.locate(name, limit=MOST_NEAR)
    for path in dict.fromkeys(each.path for each in near if not kind_of(each.path) & TEXT):
        try:
            file, source = await code.symbol(path), await code.source(path)
        except ClewError:  # it went meanwhile
            continue
        found += [
            (msgspec.structs.replace(file, line_start=line, line_end=line), said)
            for line, said in find(source.split("\n"), name)
        ]
    return sorted(found, key=lambda each: distance_of(each[0]))


def _whole(file: Node) -> str:
    return file.path or file.name


async def tell_near(code: CodeLinks, question: str) -> str:
    """That nothing has the name whose place a question asks for, with those that are near to it; nothing where none
    is."""
    named = read_names(question)
    if not named.names or not (named.is_all or is_name(named.names[0])):
        return ""
    try:
        await code.symbol(named.names[0])
    except NotFound as error:
        said = f"Nothing here is named {code_span(named.names[0], MAX_NAME)}. {error.hint}"
        return said if (error.hint or "").startswith(MEANT) else ""
    except InvalidInput:  # several have it
        return ""
    return ""


async def find_used(shelf: Shelf, asked: UseQuestion, *, by: Principal) -> list[Node]:
    """What has the name that a question asks about, the product before its tests."""
    return [each.node for each in await find_definitions(shelf, asked.named, by=by)]
