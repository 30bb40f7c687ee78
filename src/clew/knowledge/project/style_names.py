"""How things are named: which way of writing several words as one each kind of name follows, by counting."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from clew.knowledge.code.models import Symbol
from clew.knowledge.project.texts import FileText

_CASES = (
    ("UPPER_SNAKE_CASE", re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")),
    ("snake_case", re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+")),
    ("kebab-case", re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+")),
    ("camelCase", re.compile(r"[a-z][a-z0-9]*[A-Z][A-Za-z0-9]*")),
    ("PascalCase", re.compile(r"[A-Z][A-Z0-9]*[a-z][A-Za-z0-9]*")),
    ("lowercase", re.compile(r"[a-z][a-z0-9]*")),
    ("UPPERCASE", re.compile(r"[A-Z][A-Z0-9]*")),
)
_ONE_WORD = {"lowercase": ("snake_case", "camelCase", "kebab-case"), "UPPERCASE": ("UPPER_SNAKE_CASE",)}
"""A single word speaks for none of these; it is a name of its own only where nothing else is there."""

_LOCALS = {
    "python": re.compile(r"^[ \t]+([A-Za-z_]\w*)(?:[ \t]*:[^=\n]{1,80})?[ \t]*=(?!=)", re.MULTILINE),
    "javascript": re.compile(
        r"^[ \t]+(?:const|let|var)[ \t]+([A-Za-z_$][\w$]*)[^=\n]{0,80}=(?![^\n]*=>)", re.MULTILINE
    ),
    "go": re.compile(r"^[ \t]+(\w+)[^=\n]{0,80}:=", re.MULTILINE),
    "rust": re.compile(r"^[ \t]+let[ \t]+(?:mut[ \t]+)?(\w+)", re.MULTILINE),
    "ruby": re.compile(r"^[ \t]+([a-z_]\w*)[ \t]*=(?![=~>])", re.MULTILINE),
}
_LITERAL = re.compile(r"^[^=]*=\s*(?:-?[\d._]+\w*|'[^']*'|\"[^\"]*\"|true|false|True|False)\s*;?$")
_JS = ("javascript", "typescript")
_UNTOLD_FILES = frozenset(("index", "main", "mod", "lib", "setup", "conftest"))
_MARKUP = re.compile(r"<(?:[A-Za-z][\w.]*[\s/>]|>)|createElement\(")


def case_of(name: str) -> str:
    """How a name is written; empty for what follows no known way."""
    bare = name.strip("_$")
    return next((case for case, shape in _CASES if shape.fullmatch(bare)), "")


def name_case(counts: Counter[str]) -> str:
    """The way that most names follow. Single words count for what the others show."""
    told = Counter({case: count for case, count in counts.items() if case not in _ONE_WORD})
    if not told:
        return "UPPER_SNAKE_CASE" if set(counts) == {"UPPERCASE"} else (counts.most_common(1) or [("", 0)])[0][0]
    for word, cases in _ONE_WORD.items():
        near = [case for case in cases if case in told]
        if near:
            told[max(near, key=lambda case: told[case])] += counts[word]
        elif counts[word]:
            told[word] += counts[word]
    return told.most_common(1)[0][0]


def count_names(file: FileText, plain: str, language: str) -> Iterator[tuple[str, str, int]]:
    """Each name that one file gives, as (what it names, how it is written, the line)."""
    for symbol in file.facts.symbols:
        role = _role(file, symbol, language)
        if role and (case := case_of(symbol.name)):
            yield role, case, symbol.line_start
    shape = _LOCALS.get("javascript" if language in _JS else language)
    for found in shape.finditer(plain) if shape else ():
        if case := case_of(found[1]):
            yield "variables", case, plain.count("\n", 0, found.start(1)) + 1
    stem = file.path.rpartition("/")[2].partition(".")[0]
    if stem.lower() not in _UNTOLD_FILES and not stem.startswith("__") and (case := case_of(stem)):
        yield "files", case, 1


def is_component(file: FileText, symbol: Symbol) -> bool:
    """Whether a symbol makes markup: a function or class with a capital letter in a file of a dialect with markup."""
    if symbol.kind not in ("function", "class", "variable") or "." in symbol.qualname:
        return False
    if not symbol.name[:1].isupper() or case_of(symbol.name) == "UPPER_SNAKE_CASE":
        return False
    if not file.path.endswith((".tsx", ".jsx", ".js")):
        return False
    return _MARKUP.search("\n".join(file.lines[symbol.line_start - 1 : symbol.line_end])) is not None


def _role(file: FileText, symbol: Symbol, language: str) -> str:
    if language in _JS and is_component(file, symbol):
        return "components"
    if symbol.kind in ("function", "method"):
        return "" if symbol.name.startswith("__") or symbol.name == "constructor" else "functions"
    if symbol.kind in ("class", "interface"):
        return "types"
    if symbol.kind == "constant":
        return "constants"
    if symbol.kind != "variable" or "." in symbol.qualname:
        return ""
    return "constants" if _LITERAL.match(symbol.signature) else "variables"
