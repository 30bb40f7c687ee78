"""The component registry: finds existing components, hooks, utilities and patterns by a need in words."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from clew.errors import ClewError
from clew.knowledge.code.files import ASIDE, TEST, kind_of
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.models import Symbol, SymbolRow, node_id
from clew.knowledge.code.rows import find_symbols
from clew.knowledge.lines import clip
from clew.knowledge.project.style import is_component
from clew.knowledge.project.texts import FileText, Need, NeedText, read_file, read_need, terms_in
from clew.lazy_pattern import lazy_pattern
from clew.trail.search.text import split_word

ComponentType = Literal["ui", "hook", "utility", "pattern"]
MAX_MATCHES, MAX_PROPS = 5, 40
MAX_CANDIDATES = 50_000

_LOOKED_AT = 30
_ENOUGH = 0.5
_IN_NAME, _IN_TEXT, _FOUND = 1.0, 0.6, 0.1
"""The weights of a word in the name and in the description of a component, and of a hit of the code search."""
_KINDS = frozenset(("component", "components", "hook", "hooks", "utility", "utilities", "helper", "function", "class"))
_GENERAL = frozenset(("app", "base", "common", "custom", "default", "generic", "get", "set", "shared", "simple", "use"))
_HOOK = lazy_pattern(r"use[A-Z]\w*")
_PATH_UI = lazy_pattern(r"(?:^|/)(?:components?|widgets?|ui|views)/")
_NOT_PARTS = lazy_pattern(r"\w+(?:Props|State|Options|Params|Args)$|_|(?:test|Test)(?:_|[A-Z])")
_WRAPPED = lazy_pattern(r"\b(?:forwardRef|memo|styled|observer|lazy)\b")
_USES = ("calls", "references")
_SCRIPTS = ("javascript", "typescript", "tsx")
_PARTS = "WHERE s.kind IN ('function', 'class', 'interface', 'variable') AND s.qualname = s.name LIMIT ?"
_HEAD_LINES, _USE_LINES = 30, 12
_COMMA = lazy_pattern(r",(?![^(\[{<]*[)\]}>])")
"""A comma outside of brackets."""
_PROP = lazy_pattern(r"(?:readonly\s+)?([\w$'\"-]+)(\?)?\s*:\s*(.+?)[;,]?$")
_DESTRUCTURED = lazy_pattern(r"\(\s*\{([^{}]{0,1000})\}")
_CHOICE = lazy_pattern(r"[\"']([^\"']{1,40})[\"']")
_VARIANT = ("variant", "kind", "type", "size", "color", "tone", "severity", "status")
_MAKERS = ("__init__", "constructor", "initialize")


class Prop(msgspec.Struct, frozen=True, kw_only=True):
    """A property of a component, or a parameter of a function."""

    name: str
    type: str = ""
    required: bool = True


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """An existing component, defined at `source`, `path:line`, with an example of its use from `usage_source`."""

    name: str
    type: ComponentType
    path: str
    source: str
    score: float
    description: str = ""
    props: Sequence[Prop] = ()
    usage_example: str = ""
    usage_source: str = ""
    tags: Sequence[str] = ()
    variants: Sequence[str] = ()


class ComponentAnswer(msgspec.Struct, frozen=True, kw_only=True):
    found: bool
    matches: Sequence[Component] = ()
    suggestion: str = ""


async def find_component(
    code: CodeGraph, need: NeedText, type: ComponentType | Literal["any"] = "any"
) -> ComponentAnswer:
    """Find an existing component, hook or utility, before a new one is written.

    Raises InvalidInput for a need without words.
    """
    wanted = read_need(need, _KINDS)
    await code.look()
    hits = frozenset(hit.node.id for hit in await code.search(" ".join(wanted.words), limit=_LOOKED_AT))
    candidates = await asyncio.to_thread(_candidates, code, wanted, hits)
    matches: list[Component] = []
    for score, row in candidates[:_LOOKED_AT]:
        part = await asyncio.to_thread(_describe, code, row, score, wanted)
        if part is not None and type in (part.type, "any"):
            matches.append(await _with_use(code, part))
        if len(matches) >= MAX_MATCHES:
            break
    suggestion = "" if matches else "No existing component does this. You may need to create it."
    return ComponentAnswer(found=bool(matches), matches=matches, suggestion=suggestion)


def _candidates(code: CodeGraph, need: Need, hits: frozenset[str]) -> list[tuple[float, SymbolRow]]:
    with code.store.reading() as sql:
        rows = find_symbols(sql, _PARTS, (MAX_CANDIDATES,))
    scored = [(_score(need, row, hits), row) for row in rows if _is_part(row)]
    fitting = [each for each in scored if each[0] >= _ENOUGH]
    return sorted(fitting, key=lambda each: (-each[0], each[1].path, each[1].line_start))


def _is_part(row: SymbolRow) -> bool:
    if kind_of(row.path) & (TEST | ASIDE) or _NOT_PARTS.match(row.name):
        return False
    return row.kind != "variable" or (row.name[:1].isupper() and _WRAPPED.search(row.signature) is not None)


def _score(need: Need, row: SymbolRow, hits: frozenset[str]) -> float:
    """The share of a need that a component covers. It is 0 if the name of the component does not name the thing, unless
    name and description cover the whole need. It is also 0 if the component has another purpose: `BaseModal` is any
    modal, but `ImageModal` is one for images."""
    in_name = need.matched(terms_in(row.name))
    in_text = need.matched(terms_in(f"{row.doc} {row.path}"))
    worth = [_IN_NAME if name else _IN_TEXT * text for name, text in zip(in_name, in_text, strict=True)]
    names_it = in_name[need.head] or (any(in_name) and all(worth))
    is_general = all(part in _GENERAL or any(need.matched(terms_in(part))) for part in split_word(row.name))
    is_for_other = len(worth) > 1 and sum(map(bool, worth)) == 1 and not is_general
    if not names_it or is_for_other:
        return 0.0
    return sum(worth) / len(worth) + _FOUND * (node_id(row.path, row.qualname) in hits)


def _describe(code: CodeGraph, row: SymbolRow, score: float, need: Need) -> Component | None:
    """A component as its file has it now; None when it is gone."""
    file = read_file(code, row.path)
    symbol = next((each for each in file.facts.symbols if each.qualname == row.qualname), None) if file else None
    if file is None or symbol is None:
        return None
    type = _type_of(file, symbol)
    props = list(_ui_props(file, symbol) if type == "ui" else _parameters(file, symbol))[:MAX_PROPS]
    choices = {prop.name: prop.type for prop in props if prop.name in _VARIANT and "|" in prop.type}
    variants = next((_CHOICE.findall(choices[name]) for name in _VARIANT if name in choices), [])
    named = need.matched(terms_in(symbol.name))
    asked = [word for word, is_named in zip(need.words, named, strict=True) if is_named]
    return Component(
        name=symbol.name,
        type=type,
        path=file.path,
        source=file.source(symbol.line_start),
        score=round(min(1.0, score), 3),
        description=clip(symbol.doc, 300),
        props=props,
        tags=list(dict.fromkeys((type, *split_word(symbol.name), *asked))),
        variants=variants,
    )


def _type_of(file: FileText, symbol: Symbol) -> ComponentType:
    if file.language in _SCRIPTS and _HOOK.fullmatch(symbol.name):
        return "hook"
    if is_component(file, symbol) or (symbol.kind == "class" and _PATH_UI.search(file.path)):
        return "ui"
    return "utility" if symbol.kind == "function" else "pattern"


async def _with_use(code: CodeGraph, part: Component) -> Component:
    """A component with a line of the project that uses it, preferably outside of tests."""
    try:
        links = await code.dependents(f"{part.path}#{part.name}")
    except ClewError:  # it is changing at this moment: no example
        return part
    uses = [(link.node.path or "", link.line) for link in links if link.edge_type in _USES and not link.is_guess]
    for path, line in sorted(uses, key=lambda use: (kind_of(use[0]) & TEST, use)):
        file = await asyncio.to_thread(read_file, code, path)
        shown = _cut_use(file, line, part.name) if file else ""
        if part.name in shown:
            return msgspec.structs.replace(part, usage_example=shown, usage_source=f"{path}:{line}")
    return part


def _cut_use(file: FileText, line: int, name: str) -> str:
    """The lines of a use: a whole element of markup, or one line."""
    first, *more = file.lines[line - 1 : line + _USE_LINES] or [""]
    at = first.find(f"<{name}")
    lines = [first[at:], *more] if at >= 0 else []
    for number, text in enumerate(lines, 1):
        if re.search(r"/>|(?<!=)>\s*$", text):
            return "\n".join(part[:200].rstrip() for part in lines[:number])
    return clip(first)


# -- properties and parameters ---------------------------------------------------------------------------------


def _ui_props(file: FileText, symbol: Symbol) -> Iterator[Prop]:
    """The members of the type `…Props`, or else the names that are destructured in the head of the component."""
    owners = (f"{symbol.name}Props", "Props")
    members = [each for each in file.facts.symbols if each.qualname.rpartition(".")[0] in owners]
    if members:
        yield from map(_member, members)
        return
    head = "\n".join(file.lines[symbol.line_start - 1 : symbol.line_start - 1 + _HEAD_LINES])
    found = _DESTRUCTURED.search(head)
    for part in (found[1] if found else "").split(","):
        name = re.split("[=:]", part)[0].strip()
        if name.isidentifier():
            yield Prop(name=name, required="=" not in part)


def _member(symbol: Symbol) -> Prop:
    found = _PROP.match(symbol.signature)
    if found is None:
        return Prop(name=symbol.name)
    return Prop(name=symbol.name, type=clip(found[3], 120), required=found[2] is None)


def _parameters(file: FileText, symbol: Symbol) -> Iterator[Prop]:
    """The parameters of a function, or of the constructor of a class; none for a class without its own."""
    if symbol.kind in ("class", "interface"):
        makers = [f"{symbol.qualname}.{name}" for name in (*_MAKERS, symbol.name)]
        symbol = next((each for each in file.facts.symbols if each.qualname in makers), symbol)
    inside = symbol.signature.partition(symbol.name)[2].partition("(")[2].rpartition(")")[0]
    for part in _COMMA.split(inside) if symbol.kind not in ("class", "interface") else ():
        left, has_default, _ = part.partition("=") if "=>" not in part else (part, "", "")
        name, _, type = (each.strip() for each in left.partition(":"))
        bare = name.lstrip("*&.").removesuffix("?")
        if bare and name not in ("self", "cls", "/"):
            is_required = not has_default and not name.endswith("?")
            yield Prop(name=clip(bare, 80), type=clip(type, 120), required=is_required)
