"""The component registry: finds existing components, hooks, utilities and patterns by a need in words."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, get_args

import msgspec

from clew.errors import ClewError, InvalidInput
from clew.knowledge.code.files import ASIDE, TEST, kind_of
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.models import Symbol, SymbolRow
from clew.knowledge.code.refs import node_id
from clew.knowledge.code.rows import find_symbols
from clew.knowledge.lines import clip
from clew.knowledge.project.needs import Need, alike, read_need, terms_in
from clew.knowledge.project.style import is_component
from clew.knowledge.project.texts import FileText, read_file
from clew.trail.text import split_word

ComponentType = Literal["ui", "hook", "utility", "pattern"]
TYPES: tuple[str, ...] = get_args(ComponentType)
MAX_MATCHES = 5
MAX_CANDIDATES = 50_000

_LOOKED_AT = 30
_ENOUGH = 0.5
_IN_NAME, _IN_TEXT, _FOUND = 1.0, 0.6, 0.1
"""The worth of a word in the name and in the description of a component, and of a hit of the code search."""
_KINDS = frozenset(("component", "components", "hook", "hooks", "utility", "utilities", "helper", "function", "class"))
_GENERAL = frozenset(("app", "base", "common", "custom", "default", "generic", "get", "set", "shared", "simple", "use"))
_HOOK = re.compile(r"use[A-Z]\w*")
_PATH_UI = re.compile(r"(?:^|/)(?:components?|widgets?|ui|views)/")
_NOT_PARTS = re.compile(r"\w+(?:Props|State|Options|Params|Args)$|_|(?:test|Test)(?:_|[A-Z])")
_WRAPPED = re.compile(r"\b(?:forwardRef|memo|styled|observer|lazy)\b")
_USES = ("calls", "references")
_SCRIPTS = ("javascript", "typescript", "tsx")
_PARTS = "WHERE s.kind IN ('function', 'class', 'interface', 'variable') AND s.qualname = s.name LIMIT ?"

MAX_PROPS = 40
_HEAD_LINES, _USE_LINES = 30, 12
_PROPS_TYPE = re.compile(
    r"(?:\}|\w)\s*:\s*(?:Readonly<)?(\w+)\b|\b(?:FC|FunctionComponent|forwardRef|Component)<[^>]*?(\w+)>"
)
_DEFAULT = re.compile(r"\b(\w+)(?:\s*:\s*\w+)?\s*=\s*([^,{}()=>\n][^,\n]{0,80}?)\s*(?=[,}\n])")
_PROP = re.compile(r"(?:readonly\s+)?([\w$'\"-]+)(\?)?\s*:\s*(.+?)[;,]?$")
_DESTRUCTURED = re.compile(r"\(\s*\{([^{}]{0,1000})\}")
_CHOICE = re.compile(r"[\"']([^\"']{1,40})[\"']")
_VARIANT = ("variant", "kind", "type", "size", "color", "tone", "severity", "status")
_PYTHON_SKIPPED = ("self", "cls", "*", "/")


class Prop(msgspec.Struct, frozen=True, kw_only=True):
    """A property of a component, or a parameter of a function."""

    name: str
    type: str = ""
    required: bool = True
    default: str = ""


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


class _Candidate(NamedTuple):
    row: SymbolRow
    score: float


async def find_component(code: CodeGraph, need: str, type: str = "any") -> ComponentAnswer:
    """Return the components that fit a need, best first, or a suggestion. Raises InvalidInput for a need without words
    and for an unknown type."""
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
    return ComponentAnswer(found=False, suggestion="No existing component does this. You may need to create it.")


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
    """The share of a need that a component covers; 0 where its name does not name the thing, unless name and
    description cover the whole need, and 0 for a thing of that kind with another purpose."""
    in_name = need.matched(terms_in(row.name))
    in_text = need.matched(terms_in(f"{row.doc} {row.path}"))
    worth = [_IN_NAME if name else _IN_TEXT * text for name, text in zip(in_name, in_text, strict=True)]
    says_what = in_name[need.head] or (any(in_name) and all(worth))
    is_for_other = len(worth) > 1 and sum(map(bool, worth)) == 1 and not _is_general(need, row.name)
    if not says_what or is_for_other:
        return 0.0
    return sum(worth) / len(worth) + _FOUND * (node_id(row.path, row.qualname) in hits)


def _is_general(need: Need, name: str) -> bool:
    """Whether a name has no word beyond the need: `BaseModal` is any modal, `ImageModal` one for images."""
    return all(part in _GENERAL or any(need.matched(terms_in(part))) for part in split_word(name))


def _describe(code: CodeGraph, candidate: _Candidate, need: Need) -> Component | None:
    """A component as its file has it now; None when it is gone."""
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
    """The words of the name, and those of the need that mean the same."""
    named = terms_in(symbol.name)
    asked = [word for word in need.words if not alike(word).isdisjoint(named)]
    return list(dict.fromkeys((type, *split_word(symbol.name), *asked)))


async def _with_use(code: CodeGraph, part: Component) -> Component:
    """A component with a line of the project that uses it, preferably outside of tests."""
    try:
        links = await code.dependents(f"{part.path}#{part.name}")
    except ClewError:  # it is changing at this moment: no example
        return part
    uses = [(link.node.path or "", link.line) for link in links if link.edge_type in _USES and not link.is_guess]
    for path, line in sorted(uses, key=lambda use: (kind_of(use[0]) & TEST, use)):
        file = await asyncio.to_thread(read_file, code, path)
        shown = cut_use(file, line, part.name) if file else ""
        if part.name in shown:
            return msgspec.structs.replace(part, usage_example=shown, usage_source=f"{path}:{line}")
    return part


# -- the parts of a component -----------------------------------------------------------------------------------


def read_props(file: FileText, symbol: Symbol, is_ui: bool) -> list[Prop]:
    """The properties or parameters, in their order, as far as the file itself states them."""
    head = "\n".join(file.lines[symbol.line_start - 1 : symbol.line_start - 1 + _HEAD_LINES])
    if not is_ui:
        return list(_parameters(_maker(file, symbol)))[:MAX_PROPS]
    defaults = _defaults(head)
    members = _members(file, symbol, head)
    if not members:
        found = _DESTRUCTURED.search(head)
        names = [part.split("=")[0].split(":")[0].strip() for part in (found[1] if found else "").split(",")]
        return [_with_default(Prop(name=name), defaults) for name in names if name.isidentifier()][:MAX_PROPS]
    return [_with_default(prop, defaults) for prop in members][:MAX_PROPS]


def read_variants(props: Sequence[Prop]) -> list[str]:
    """The choices of a property such as `variant`."""
    for name in _VARIANT:
        for prop in props:
            if prop.name == name and "|" in prop.type:
                return list(dict.fromkeys(_CHOICE.findall(prop.type)))
    return []


def cut_use(file: FileText, line: int, name: str) -> str:
    """The lines of a use: a whole element of markup, or one line."""
    if not 1 <= line <= len(file.lines):
        return ""
    first = file.lines[line - 1]
    at = first.find(f"<{name}")
    if at < 0:
        return clip(first)
    lines = [first[at:], *file.lines[line : line + _USE_LINES]]
    for number, text in enumerate(lines):
        if re.search(r"/>|(?<!=)>\s*$", text):
            return "\n".join(part[:200].rstrip() for part in lines[: number + 1])
    return clip(first)


def _members(file: FileText, symbol: Symbol, head: str) -> list[Prop]:
    """The members of the type of the properties."""
    named = [name for found in _PROPS_TYPE.findall(head) for name in found if name]
    for owner in (f"{symbol.name}Props", *named, "Props"):
        inside = [each for each in file.facts.symbols if each.qualname.rpartition(".")[0] == owner]
        if inside:
            return [_member(each) for each in inside]
    return []


def _member(symbol: Symbol) -> Prop:
    found = _PROP.match(symbol.signature)
    if found is None:
        return Prop(name=symbol.name)
    return Prop(name=symbol.name, type=clip(found[3], 120), required=found[2] is None)


def _defaults(head: str) -> dict[str, str]:
    end = re.search(r"\)\s*(?::[^{=]{1,100})?(?:=>|\{)", head)
    return {name: value.strip("\"'` ;") for name, value in _DEFAULT.findall(head[: end.end() if end else 0])}


def _with_default(prop: Prop, defaults: dict[str, str]) -> Prop:
    if prop.name not in defaults:
        return prop
    return msgspec.structs.replace(prop, required=False, default=clip(defaults[prop.name], 80))


def _maker(file: FileText, symbol: Symbol) -> Symbol | None:
    """The function to call, or the constructor of a class; None for a class without its own."""
    if symbol.kind not in ("class", "interface"):
        return symbol
    makers = [f"{symbol.qualname}.{name}" for name in ("__init__", "constructor", "initialize", symbol.name)]
    return next((each for each in file.facts.symbols if each.qualname in makers), None)


def _parameters(symbol: Symbol | None) -> Iterator[Prop]:
    signature = symbol.signature if symbol else ""
    start = signature.find("(", max(0, signature.find(symbol.name))) if symbol else -1
    for part in _split(signature[start + 1 :]) if start >= 0 else ():
        left, has_default, default = part.partition("=") if "=>" not in part else (part, "", "")
        name, _, type = left.partition(":")
        bare = name.strip().lstrip("*&.").removesuffix("?")
        if bare and name.strip() not in _PYTHON_SKIPPED:
            required = not has_default and not name.strip().endswith("?")
            yield Prop(name=clip(bare, 80), type=clip(type, 120), required=required, default=clip(default, 80))


def _split(text: str) -> Iterator[str]:
    """The items of a list up to its closing bracket; commas within brackets do not divide it."""
    depth, start = 0, 0
    for at, char in enumerate(text):
        if char in "([{<":
            depth += 1
        elif char in ")]}" or (char == ">" and text[at - 1 : at] not in "=-"):
            depth -= 1
        if depth < 0 or (char == "," and depth == 0):
            yield text[start:at].strip()
            start = at + 1
        if depth < 0:
            return
