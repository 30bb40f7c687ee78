"""The style of a project's code, by counting names, layout and patterns. Every statement has lines that show it. The
shapes of patterns are data: `patterns.json`."""

from __future__ import annotations

import asyncio
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import Annotated, Any, NamedTuple

import msgspec

from clew.errors import InvalidInput
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.languages.detect import LANGUAGES
from clew.knowledge.code.models import FileInfo, Symbol
from clew.knowledge.lines import clip
from clew.knowledge.project.formats import load_table
from clew.knowledge.project.texts import FileText, own_files, read_files
from clew.knowledge.project.tools import normal_language
from clew.lazy_pattern import lazy_pattern

MAX_FILES, MAX_INDENT, MAX_LINE = 300, 8, 500
"""The most files of a language that are counted. If there are more, every second, third and so on is counted."""
MIXED = 0.25
"""From this share on, a second way of exporting is reported as a style and not as an exception."""
_STYLE_EXAMPLES, _PATTERN_EXAMPLES = 2, 3
_NAMED = ("functions", "variables", "constants", "types", "files", "components")
_WAYS = ("error_handling", "async_style", "component_style", "export_style", "custom_errors")
_CASES = {
    "UPPER_SNAKE_CASE": lazy_pattern(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"),
    "snake_case": lazy_pattern(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+"),
    "kebab-case": lazy_pattern(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+"),
    "camelCase": lazy_pattern(r"[a-z][a-z0-9]*[A-Z][A-Za-z0-9]*"),
    "PascalCase": lazy_pattern(r"[A-Z][A-Z0-9]*[a-z][A-Za-z0-9]*"),
    "lowercase": lazy_pattern(r"[a-z][a-z0-9]*"),
    "UPPERCASE": lazy_pattern(r"[A-Z][A-Z0-9]*"),
}
_ONE_WORD = {"lowercase": ("snake_case", "camelCase", "kebab-case"), "UPPERCASE": ("UPPER_SNAKE_CASE",)}
"""A single word fits all of these cases. It is counted as a case only if there are no other names."""
FAMILY = {"typescript": "javascript", "tsx": "javascript"}
_ROLES = {"function": "functions", "method": "functions", "class": "types", "interface": "types"}
_LITERAL = lazy_pattern(r"^[^=]*=\s*(?:-?[\d._]+\w*|'[^']*'|\"[^\"]*\"|true|false|True|False)\s*;?$")
_GENERIC_FILES = frozenset(("index", "main", "mod", "lib", "setup", "conftest"))
_MARKUP = lazy_pattern(r"<(?:[A-Za-z][\w.]*[\s/>]|>)|createElement\(")
_CHOOSES_QUOTES = ("python", "javascript", "ruby")
_NEEDS_SEMICOLONS = ("java", "c", "cpp", "rust")
_INDENT = lazy_pattern(r"^([ \t]*)(?=\S)", re.MULTILINE)
_STATEMENT = lazy_pattern(
    r"^[ \t]*(?:import\b|const\b|let\b|var\b|return\b|throw\b|await\b|break\b|continue\b|export\s+\*|[\w.]+\()"
    r".*(?<![,{(\[=+\-*/&|?:<>])$"
)
_CONTINUES = frozenset(".?:+-*/&|=)]")
_CLOSING = lazy_pattern(r"\s*([)\]}])")
_STYLE_SHEET = lazy_pattern(r"\.(?:css|scss|sass|less|styl)$")
_NODE = lazy_pattern(
    r"node:.*|(?:assert|child_process|crypto|events|fs|https?|net|os|path|stream|url|util|zlib)(?:/.*)?"
)
_GROUPS = ("builtin", "react", "external", "internal", "relative", "styles")
_C_COMMENT = r"//[^\n]*|/\*(?>(?:[^*]|\*(?!/))*)(?:\*/|\Z)"
_STRING = r"\"(?>(?:[^\"\\\n]|\\.)*)\"|'(?>(?:[^'\\\n]|\\.)*)'"
_SCANNERS = {
    "hash": lazy_pattern(
        r"(?P<long>(?s:\"\"\".*?(?:\"\"\"|\Z)|'''.*?(?:'''|\Z)))"
        rf"|(?P<comment>(?<![\w\"'])#(?!\{{)[^\n]*)|(?P<string>{_STRING})"
    ),
    "c": lazy_pattern(rf"(?P<comment>{_C_COMMENT})|(?P<long>`(?>(?:[^`\\]|\\.)*)`)|(?P<string>{_STRING})", re.DOTALL),
    "rust": lazy_pattern(rf"(?P<comment>{_C_COMMENT})|(?P<string>\"(?>(?:[^\"\\]|\\.)*)\")", re.DOTALL),
}
_SYNTAX = {"python": "hash", "ruby": "hash", "rust": "rust"}
_MARKUP_VALUE = lazy_pattern(r"[\w:-]=\Z")


class StyleExample(msgspec.Struct, frozen=True, kw_only=True):
    """A line that follows a pattern."""

    pattern: str
    file: str
    line: int
    text: str


class LanguageStyle(msgspec.Struct, frozen=True, kw_only=True):
    """The style of one language. A value is empty if the code shows none. `naming` are cases such as `snake_case`.
    `indent_size` counts spaces, or is 1 for tabs. `trailing_comma` is all, es5 or none. `counts` are the numbers behind
    each statement, from `files` files."""

    language: str
    naming: Mapping[str, str]
    formatting: Mapping[str, str | int | bool]
    patterns: Mapping[str, str | Sequence[str]]
    examples: Sequence[StyleExample] = ()
    counts: Mapping[str, Mapping[str, int]] = {}
    files: int = 0


class PatternUse(msgspec.Struct, frozen=True, kw_only=True):
    """The uses of a pattern: their number, the number of files, and examples as `path:line: text`."""

    aspect: str
    pattern: str
    count: int
    files: int
    examples: Sequence[str]


class LanguagePatterns(msgspec.Struct, frozen=True, kw_only=True):
    """The patterns in the code of one language, most frequent first within each aspect."""

    language: str
    files: int
    patterns: Sequence[PatternUse]


class _StyleTally:
    """Lines by aspect and way, further counts, and the import groups of each file."""

    def __init__(self) -> None:
        self.lines: defaultdict[tuple[str, str], list[StyleExample]] = defaultdict(list)
        self.counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.orders: list[list[str]] = []
        self.files = 0

    def add(self, file: FileText, aspect: str, way: str, line: int) -> None:
        self.counts[aspect][way] += 1
        text = clip(file.lines[line - 1], 160) if line <= len(file.lines) else ""
        self.lines[aspect, way].append(StyleExample(pattern=aspect, file=file.path, line=line, text=text))

    def most(self, aspect: str) -> str:
        """The most frequent way, or an empty string."""
        counts = +self.counts[aspect]
        return max(counts, key=lambda way: (counts[way], way), default="")


LanguageName = Annotated[str, msgspec.Meta(description="empty for all languages")]


async def get_style_guide(code: CodeGraph, language: LanguageName = "") -> list[LanguageStyle]:
    """Show how code is written here: names, layout and patterns, with examples; all languages, or one.

    The language with most files comes first. Raises InvalidInput for an unknown language.
    """
    tops = {file.path.removeprefix("src/").partition("/") for file in await code.files() if file.language}
    own = frozenset(top if rest else top.rpartition(".")[0] for top, rest, _ in tops) | {"src"}
    groups = await _files_by_language(code, language)
    return [await asyncio.to_thread(_infer, code, name, files, own) for name, files in groups.items()]


async def detect_patterns(code: CodeGraph, language: LanguageName = "") -> list[LanguagePatterns]:
    """Detect the patterns that the code follows, with examples: error handling, concurrency, exports and design
    patterns.

    The language with most files comes first. Raises InvalidInput for an unknown language.
    """
    groups = await _files_by_language(code, language)
    return [await asyncio.to_thread(_detect, code, name, files) for name, files in groups.items()]


async def _files_by_language(code: CodeGraph, language: str) -> dict[str, list[FileInfo]]:
    wanted = normal_language(language or "all")
    if wanted not in (*LANGUAGES, "all"):
        raise InvalidInput(
            "language", f"{wanted[:40]!r} is not supported", hint=f"Languages are {', '.join(LANGUAGES)}"
        )
    groups: defaultdict[str, list[FileInfo]] = defaultdict(list)
    for file in await code.files():
        if file.language and wanted in ("all", normal_language(file.language)):
            groups[normal_language(file.language)].append(file)
    return dict(sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])))


def _count(code: CodeGraph, language: str, files: Sequence[FileInfo], own: frozenset[str]) -> _StyleTally:
    tally, family = _StyleTally(), FAMILY.get(language, language)
    for file in read_files(code, own_files(files, MAX_FILES)):
        plain = strip_code(file.text, language)
        tally.files += 1
        for aspect, way, line in (*_names(file, family), *_ways(plain.text, family)):
            if way:
                tally.add(file, aspect, way, line)
        _count_layout(plain, family, tally.counts)
        imports = sorted(file.facts.imports, key=lambda each: each.line)
        origins = (group_of(each.module, family, own) for each in imports if each.module != "__future__")
        tally.orders.append(list(filter(None, origins)))
    return tally


def _infer(code: CodeGraph, language: str, files: Sequence[FileInfo], own: frozenset[str]) -> LanguageStyle:
    tally = _count(code, language, files, own)
    naming = {aspect: _case(tally.counts[aspect]) for aspect in _NAMED}
    shown = [*naming.items(), *((aspect, tally.most(aspect)) for aspect in _WAYS)]
    return LanguageStyle(
        language=language,
        naming=naming,
        formatting=_formatting(tally, language),
        patterns=_patterns(tally),
        examples=[example for key in shown for example in tally.lines[key][:_STYLE_EXAMPLES]],
        counts={aspect: dict(counts.most_common()) for aspect, counts in sorted(tally.counts.items()) if counts},
        files=tally.files,
    )


def _detect(code: CodeGraph, language: str, files: Sequence[FileInfo]) -> LanguagePatterns:
    tally = _count(code, language, files, frozenset())
    uses = [
        PatternUse(
            aspect=aspect,
            pattern=way,
            count=len(lines),
            files=len({line.file for line in lines}),
            examples=[f"{line.file}:{line.line}: {line.text}" for line in lines[:_PATTERN_EXAMPLES]],
        )
        for (aspect, way), lines in tally.lines.items()
        if aspect not in _NAMED
    ]
    uses.sort(key=lambda use: (use.aspect, -use.count, use.pattern))
    return LanguagePatterns(language=language, files=tally.files, patterns=uses)


def _formatting(tally: _StyleTally, language: str) -> dict[str, Any]:
    style, semicolons = tally.most("indent_style"), tally.counts["semicolons"]
    return {
        "indent_style": style,
        "indent_size": 1 if style == "tabs" else int(tally.most("indent_size") or 0),
        "quote_style": tally.most("quote_style"),
        "semicolons": language in _NEEDS_SEMICOLONS or semicolons["yes"] > semicolons["no"],
        "trailing_comma": _comma(tally.counts["trailing_comma"]),
    }


def _patterns(tally: _StyleTally) -> dict[str, Any]:
    exports, components = tally.counts["export_style"], tally.most("component_style")
    is_mixed = len(exports) > 1 and exports.most_common(2)[1][1] >= MIXED * exports.total()
    return {
        "error_handling": _with(tally.most("error_handling"), "custom errors" if tally.counts["custom_errors"] else ""),
        "async_style": tally.most("async_style"),
        "component_style": _with(components, "hooks" if tally.counts["hooks"] and components == "functional" else ""),
        "export_style": "mixed" if is_mixed else tally.most("export_style"),
        "import_order": _order(tally.orders),
    }


def _with(way: str, more: str) -> str:
    return f"{way} with {more}" if way and more else way or more


# -- names -----------------------------------------------------------------------------------------------------


def case_of(name: str) -> str:
    """The case of a name; empty for one of no known case."""
    bare = name.strip("_$")
    return next((case for case, shape in _CASES.items() if shape.fullmatch(bare)), "")


def is_component(file: FileText, symbol: Symbol) -> bool:
    """Whether a symbol renders markup: a function or class with a capital letter in a file that can hold markup."""
    is_named = symbol.name[:1].isupper() and case_of(symbol.name) != "UPPER_SNAKE_CASE" and "." not in symbol.qualname
    can_render = symbol.kind in ("function", "class", "variable") and file.path.endswith((".tsx", ".jsx", ".js"))
    if not is_named or not can_render:
        return False
    return _MARKUP.search("\n".join(file.lines[symbol.line_start - 1 : symbol.line_end])) is not None


def _case(counts: Counter[str]) -> str:
    """The case of most names. Single words count for the case of the others."""
    clear = Counter({case: count for case, count in counts.items() if case not in _ONE_WORD})
    if not clear:
        return (
            "UPPER_SNAKE_CASE" if set(counts) == {"UPPERCASE"} else max(counts, key=lambda way: counts[way], default="")
        )
    for word, cases in _ONE_WORD.items():
        near = max((case for case in cases if case in clear), key=lambda case: clear[case], default=word)
        clear[near] += counts[word]
    return clear.most_common(1)[0][0]


def _names(file: FileText, family: str) -> Iterator[tuple[str, str, int]]:
    """Each name that a file defines, as (role, case, line), and the components that are functions."""
    for symbol in file.facts.symbols:
        role = _role(file, symbol, family)
        if role:
            yield role, case_of(symbol.name), symbol.line_start
        if role == "components" and symbol.kind != "class":
            yield "component_style", "functional", symbol.line_start
    stem = file.path.rpartition("/")[2].partition(".")[0]
    if stem.lower() not in _GENERIC_FILES and not stem.startswith("__"):
        yield "files", case_of(stem), 1


def _role(file: FileText, symbol: Symbol, family: str) -> str:
    if family == "javascript" and is_component(file, symbol):
        return "components"
    if symbol.kind in _ROLES:
        return "" if symbol.name.startswith("__") or symbol.name == "constructor" else _ROLES[symbol.kind]
    if symbol.kind == "variable" and "." not in symbol.qualname:
        return "constants" if _LITERAL.match(symbol.signature) else "variables"
    return "constants" if symbol.kind == "constant" else ""


# -- layout ----------------------------------------------------------------------------------------------------


class Plain(NamedTuple):
    """Code with empty strings and without comments, and how often each quotation mark was chosen."""

    text: str
    double: int
    single: int


def strip_code(text: str, language: str) -> Plain:
    """Blank comments and strings. Attributes of markup and strings that contain a quote are not counted for either
    quotation mark."""
    family = FAMILY.get(language, language)
    marks = {'"': 0, "'": 0}

    def blank(found: re.Match[str]) -> str:
        whole, start = found[0], found.start()
        lines = "\n" * whole.count("\n")
        if found["comment"] is not None:
            return lines
        is_markup = family == "javascript" and _MARKUP_VALUE.search(text[max(0, start - 2) : start])
        if found["string"] is not None and not is_markup and '"' not in whole[1:-1] and "'" not in whole[1:-1]:
            marks[whole[0]] += 1
        return f'"{lines}"'

    plain = _SCANNERS[_SYNTAX.get(family, "c")].sub(blank, text)
    return Plain(plain, marks['"'], marks["'"])


def _count_layout(plain: Plain, family: str, counts: Mapping[str, Counter[str]]) -> None:
    if family in _CHOOSES_QUOTES:
        counts["quote_style"].update({"double": plain.double, "single": plain.single})
    before = 0
    for indent in _INDENT.findall(plain.text):
        if indent:
            counts["indent_style"]["tabs" if "\t" in indent else "spaces"] += 1
        if 1 < len(indent) - before <= MAX_INDENT and "\t" not in indent:
            counts["indent_size"][str(len(indent) - before)] += 1
        before = len(indent)
    lines = [line.rstrip() for line in plain.text.split("\n")]
    for before_last, last, line in zip(lines, lines[1:], [*lines[2:], ""], strict=False):
        if family == "javascript" and last.endswith(";"):
            counts["semicolons"]["yes"] += 1
        elif family == "javascript" and _STATEMENT.match(last[:MAX_LINE]) and line.lstrip()[:1] not in _CONTINUES:
            counts["semicolons"]["no"] += 1
        closing = _CLOSING.match(line)
        is_item = not _CLOSING.match(last) and not last.endswith((";", "{"))
        if closing and is_item and (last.endswith(",") or before_last.endswith(",")):
            place = "call" if closing[1] == ")" else "item"
            counts["trailing_comma"][f"{place} {'yes' if last.endswith(',') else 'no'}"] += 1


def _comma(counts: Counter[str]) -> str:
    """`all`, `es5` (in lists and objects, not in calls) or `none`; empty if no list goes over several lines."""
    ends = {place: counts[f"{place} yes"] > counts[f"{place} no"] for place in ("item", "call")}
    if not counts.total():
        return ""
    if not counts["item yes"] + counts["item no"]:
        return "all" if ends["call"] else "none"
    return ("all" if ends["call"] else "es5") if ends["item"] else "none"


# -- patterns --------------------------------------------------------------------------------------------------


@cache
def _shapes(family: str) -> list[tuple[str, str, re.Pattern[str]]]:
    known = load_table("patterns.json", dict[str, dict[str, dict[str, str]]])
    found = {**known["any"], **known.get(family, {})}
    return [(aspect, way, re.compile(shape)) for aspect, ways in found.items() for way, shape in ways.items()]


def _ways(plain: str, family: str) -> Iterator[tuple[str, str, int]]:
    """Each line that follows a known pattern, as (aspect, pattern, line). The pattern of a variable is its case."""
    for number, line in enumerate(plain.split("\n"), 1):
        for aspect, way, shape in _shapes(family) if line and len(line) <= MAX_LINE else ():
            if found := shape.search(line):
                way = case_of(found[1]) if aspect == "variables" else way
                yield aspect, way, number


def group_of(module: str, family: str, own: frozenset[str]) -> str:
    """The origin of an import; empty for languages whose imports do not show it."""
    top = re.split(r"[./]" if family == "python" else "/", module, maxsplit=1)[0]
    if family == "go":
        return "external" if "." in top else "builtin"
    if family not in ("python", "javascript"):
        return ""
    if family == "javascript" and _STYLE_SHEET.search(module):
        return "styles"
    if module.startswith("."):
        return "relative"
    if top in own or module.startswith(("@/", "~/", "#")):
        return "internal"
    if top in sys.stdlib_module_names if family == "python" else _NODE.fullmatch(module):
        return "builtin"
    return "react" if top in ("react", "react-dom") and family == "javascript" else "external"


def _order(orders: Sequence[Sequence[str]]) -> list[str]:
    """The groups of imports in the order of most files, given the groups of each file in the order of its imports."""
    wins = Counter(pair for groups in orders for pair in combinations(groups, 2))
    present = sorted({group for groups in orders for group in groups}, key=_GROUPS.index)
    ahead = {one: sum(wins[one, other] > wins[other, one] for other in present) for one in present}
    return sorted(present, key=lambda group: -ahead[group])
