"""What one has to know to use a part: what it is given, which variants it has, and a place where it is used."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from clew.knowledge.code.models import Symbol
from clew.knowledge.lines import clip
from clew.knowledge.project.texts import FileText

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
    """Something that a part is given: a property of a component, a parameter of a function."""

    name: str
    type: str = ""
    required: bool = True
    default: str = ""


def read_props(file: FileText, symbol: Symbol, is_ui: bool) -> list[Prop]:
    """What a part takes, in its order, as far as it is written down in its own file."""
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
    """The words that a property such as `variant` is one of."""
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
    """The members of the type of a component's properties."""
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
    """What is called to have a part; None for a class that takes nothing of its own."""
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
    """The parts of a list up to its closing bracket; commas within brackets divide nothing."""
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
