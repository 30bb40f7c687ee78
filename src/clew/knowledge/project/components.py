"""What a project has already that could be used again: components, hooks, utilities and patterns, found by what
somebody needs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import msgspec

from clew.errors import ClewError, InvalidInput
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.models import Symbol, SymbolRow
from clew.knowledge.code.path_kinds import ASIDE, TEST, kind_of
from clew.knowledge.code.refs import node_id
from clew.knowledge.code.rows import find_symbols
from clew.knowledge.lines import clip
from clew.knowledge.project.component_parts import Prop, cut_use, read_props, read_variants
from clew.knowledge.project.needs import Need, alike, read_need, terms_in
from clew.knowledge.project.style_names import is_component
from clew.knowledge.project.texts import FileText, read_file
from clew.trail.text import split_word

ComponentType = Literal["ui", "hook", "utility", "pattern"]
TYPES: tuple[str, ...] = get_args(ComponentType)
MAX_MATCHES = 5
MAX_CANDIDATES = 50_000

_LOOKED_AT = 30
_ENOUGH = 0.5
_IN_NAME, _IN_TEXT, _FOUND = 1.0, 0.6, 0.1
"""What a word of a need is worth in the name of a part and in its description, and being found by the code search."""
_KINDS = frozenset(("component", "components", "hook", "hooks", "utility", "utilities", "helper", "function", "class"))
_GENERAL = frozenset(("app", "base", "common", "custom", "default", "generic", "get", "set", "shared", "simple", "use"))
_HOOK = re.compile(r"use[A-Z]\w*")
_PATH_UI = re.compile(r"(?:^|/)(?:components?|widgets?|ui|views)/")
_NOT_PARTS = re.compile(r"\w+(?:Props|State|Options|Params|Args)$|_|(?:test|Test)(?:_|[A-Z])")
_WRAPPED = re.compile(r"\b(?:forwardRef|memo|styled|observer|lazy)\b")
_USES = ("calls", "references")
_SCRIPTS = ("javascript", "typescript", "tsx")
_PARTS = "WHERE s.kind IN ('function', 'class', 'interface', 'variable') AND s.qualname = s.name LIMIT ?"


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """A part that exists. `source` is where it is defined, `path:line`; `usage_source` where the example is from."""

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


class _Candidate(NamedTuple):
    row: SymbolRow
    score: float


async def find_component(code: CodeGraph, need: str, type: str = "any") -> ComponentAnswer:
    """The parts that do what is needed, best first, or that there is none. Raises InvalidInput for a need without words
    and for a type that there is not."""
    if type not in (*TYPES, "any", ""):
        raise InvalidInput("type", f"{type[:40]!r} is none", hint=f"Types are {', '.join(TYPES)} and any")
    wanted = read_need(need, _KINDS)
    await code.look()
    hits = frozenset(hit.node.id for hit in await code.search(" ".join(wanted.words), limit=_LOOKED_AT))
    candidates = await asyncio.to_thread(_candidates, code, wanted, hits)
    matches: list[Component] = []
    for candidate in candidates[:_LOOKED_AT]:
        part = await asyncio.to_thread(_describe, code, candidate, wanted)
        if part is not None and type in (part.type, "any", ""):
            matches.append(await _with_use(code, part))
        if len(matches) >= MAX_MATCHES:
            break
    if matches:
        return ComponentAnswer(found=True, matches=matches)
    return ComponentAnswer(found=False, suggestion="Nothing that exists does this. You may need to create it.")


def _candidates(code: CodeGraph, need: Need, hits: frozenset[str]) -> list[_Candidate]:
    with code.store.reading() as sql:
        rows = find_symbols(sql, _PARTS, (MAX_CANDIDATES,))
    scored = [_Candidate(row, _score(need, row, hits)) for row in rows if _is_part(row)]
    fitting = [each for each in scored if each.score >= _ENOUGH]
    return sorted(fitting, key=lambda each: (-each.score, each.row.path, each.row.line_start))


def _is_part(row: SymbolRow) -> bool:
    if kind_of(row.path) & (TEST | ASIDE) or _NOT_PARTS.match(row.name):
        return False
    return row.kind != "variable" or (row.name[:1].isupper() and _WRAPPED.search(row.signature) is not None)


def _score(need: Need, row: SymbolRow, hits: frozenset[str]) -> float:
    """How much of a need a part speaks of; nothing where its name does not say what the thing is, unless all that is
    said of it does, and nothing for a part of the same kind that is for something else."""
    in_name = need.matched(terms_in(row.name))
    in_text = need.matched(terms_in(f"{row.doc} {row.path}"))
    worth = [_IN_NAME if name else _IN_TEXT * text for name, text in zip(in_name, in_text, strict=True)]
    says_what = in_name[need.head] or (any(in_name) and all(worth))
    is_for_other = len(worth) > 1 and sum(map(bool, worth)) == 1 and not _is_general(need, row.name)
    if not says_what or is_for_other:
        return 0.0
    return sum(worth) / len(worth) + _FOUND * (node_id(row.path, row.qualname) in hits)


def _is_general(need: Need, name: str) -> bool:
    """Whether a name says nothing that was not asked for: `BaseModal` is any modal, `ImageModal` one for images."""
    return all(part in _GENERAL or any(need.matched(terms_in(part))) for part in split_word(name))


def _describe(code: CodeGraph, candidate: _Candidate, need: Need) -> Component | None:
    """A part as its file has it now; None when it is gone."""
    row = candidate.row
    file = read_file(code, row.path)
    symbol = next((each for each in file.facts.symbols if each.qualname == row.qualname), None) if file else None
    if file is None or symbol is None:
        return None
    type = _type_of(file, symbol)
    props = read_props(file, symbol, type == "ui")
    return Component(
        name=symbol.name,
        type=type,
        path=file.path,
        source=file.source(symbol.line_start),
        score=round(min(1.0, candidate.score), 3),
        description=clip(symbol.doc, 300),
        props=props,
        tags=_tags(symbol, type, need),
        variants=read_variants(props),
    )


def _type_of(file: FileText, symbol: Symbol) -> ComponentType:
    if file.language in _SCRIPTS and _HOOK.fullmatch(symbol.name):
        return "hook"
    if is_component(file, symbol) or (symbol.kind == "class" and _PATH_UI.search(file.path)):
        return "ui"
    return "utility" if symbol.kind == "function" else "pattern"


def _tags(symbol: Symbol, type: ComponentType, need: Need) -> list[str]:
    """The words of its name, and those of the need that mean the same."""
    named = terms_in(symbol.name)
    asked = [word for word in need.words if not alike(word).isdisjoint(named)]
    return list(dict.fromkeys((type, *split_word(symbol.name), *asked)))


async def _with_use(code: CodeGraph, part: Component) -> Component:
    """A part with a place of the project that uses it, one that is no test if there is any."""
    try:
        links = await code.dependents(f"{part.path}#{part.name}")
    except ClewError:  # it changes at this moment; what is known of it stands without an example
        return part
    uses = [(link.node.path or "", link.line) for link in links if link.edge_type in _USES and not link.is_guess]
    for path, line in sorted(uses, key=lambda use: (kind_of(use[0]) & TEST, use)):
        file = await asyncio.to_thread(read_file, code, path)
        shown = cut_use(file, line, part.name) if file else ""
        if part.name in shown:
            return msgspec.structs.replace(part, usage_example=shown, usage_source=f"{path}:{line}")
    return part
