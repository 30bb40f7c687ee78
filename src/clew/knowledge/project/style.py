"""The style of a project's code, by counting: names, layout and patterns. Every statement has lines that show it."""

from __future__ import annotations

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.models import FileInfo, Symbol
from clew.knowledge.lines import clip
from clew.knowledge.project.patterns import (
    Plain,
    count_ways,
    files_by_language,
    groups_of,
    name_exports,
    name_way,
    order_groups,
    strip_code,
)
from clew.knowledge.project.texts import FileText, own_files, read_files

Counts = dict[str, Counter[str]]
MAX_FILES, MAX_INDENT = 300, 8
"""Files of a language that are counted; of more, every second, third and so on."""
_EXAMPLES = 2
_NAMED = ("functions", "variables", "constants", "types", "files", "components")
_WAYS = ("error_handling", "async_style", "component_style", "export_style")
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
"""A single word fits all of these; it is a case of its own only where no other name is there."""

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
_CHOOSES_QUOTES = frozenset(("python", "javascript", "typescript", "ruby"))
_CHOOSES_SEMICOLONS = frozenset(("javascript", "typescript"))
_NEEDS_SEMICOLONS = frozenset(("java", "c", "cpp", "rust"))
_INDENT = re.compile(r"^([ \t]*)(?=\S)", re.MULTILINE)
_STATEMENT = re.compile(
    r"^[ \t]*(?:import\b|const\b|let\b|var\b|return\b|throw\b|await\b|break\b|continue\b|export\s+\*|[\w.]+\()"
    r".*(?<![,{(\[=+\-*/&|?:<>])$"
)
_GOES_ON = re.compile(r"^\s*(?:[.?:+\-*/&|=)\]}]|$)")
_CLOSING = re.compile(r"\s*([)\]}])")


class Naming(msgspec.Struct, frozen=True, kw_only=True):
    """The case of names, such as `snake_case`; empty where there are none."""

    functions: str = ""
    variables: str = ""
    constants: str = ""
    types: str = ""
    files: str = ""
    components: str = ""


class Formatting(msgspec.Struct, frozen=True, kw_only=True):
    """`indent_size` counts spaces, or 1 for tabs. `trailing_comma` is all, es5, none, or empty where none is seen."""

    indent_style: str = ""
    indent_size: int = 0
    quote_style: str = ""
    semicolons: bool = False
    trailing_comma: str = ""


class Patterns(msgspec.Struct, frozen=True, kw_only=True):
    error_handling: str = ""
    async_style: str = ""
    component_style: str = ""
    export_style: str = ""
    import_order: Sequence[str] = ()


class StyleExample(msgspec.Struct, frozen=True, kw_only=True):
    """A line that follows a pattern."""

    pattern: str
    file: str
    line: int
    text: str


class LanguageStyle(msgspec.Struct, frozen=True, kw_only=True):
    """The style of one language. `counts` are the numbers behind each statement, from `files` files."""

    language: str
    naming: Naming
    formatting: Formatting
    patterns: Patterns
    examples: Sequence[StyleExample] = ()
    counts: Mapping[str, Mapping[str, int]] = {}
    files: int = 0


class _Tally:
    """Counts, and the first lines that show each."""

    def __init__(self) -> None:
        self.counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.shown: defaultdict[tuple[str, str], list[StyleExample]] = defaultdict(list)
        self.orders: list[list[str]] = []

    def add(self, file: FileText, what: str, way: str, line: int) -> None:
        self.counts[what][way] += 1
        shown = self.shown[what, way]
        if len(shown) < _EXAMPLES and line <= len(file.lines):
            shown.append(StyleExample(pattern=what, file=file.path, line=line, text=clip(file.lines[line - 1], 160)))


async def get_style_guide(code: CodeGraph, language: str | None = None) -> list[LanguageStyle]:
    """Return the style of one language, or of all, that with most files first; nothing for a language without files.
    Raises InvalidInput for an unknown language."""
    groups = await files_by_language(code, language)
    own = _own_modules(await code.files())
    return [await asyncio.to_thread(_infer, code, name, files, own) for name, files in groups.items()]


def _own_modules(files: Sequence[FileInfo]) -> frozenset[str]:
    """The first parts of the names by which the files of a project import each other."""
    tops = {file.path.removeprefix("src/").partition("/") for file in files if file.language}
    return frozenset(top if rest else top.rpartition(".")[0] for top, rest, _ in tops) | {"src"}


def _infer(code: CodeGraph, language: str, files: Sequence[FileInfo], own: frozenset[str]) -> LanguageStyle:
    tally = _Tally()
    read = 0
    for file in read_files(code, (each.path for each in own_files(files, MAX_FILES))):
        _count(tally, file, language, own)
        read += 1
    return LanguageStyle(
        language=language,
        naming=Naming(**{what: name_case(tally.counts[what]) for what in _NAMED}),
        formatting=_formatting(tally, language),
        patterns=_patterns(tally),
        examples=_examples(tally),
        counts={what: dict(counts.most_common()) for what, counts in sorted(tally.counts.items()) if counts},
        files=read,
    )


def _count(tally: _Tally, file: FileText, language: str, own: frozenset[str]) -> None:
    plain = strip_code(file.text, language)
    for what, way, line in count_names(file, plain.text, language):
        tally.add(file, what, way, line)
        if what == "components" and not _is_class(file, line):
            tally.add(file, "component_style", "functional", line)
    for what, way, line in count_ways(plain.text, language):
        tally.add(file, what, way, line)
    for what, counts in count_layout(plain, language).items():
        tally.counts[what].update(counts)
    tally.orders.append(groups_of(file.facts.imports, language, own))


def _is_class(file: FileText, line: int) -> bool:
    return any(each.line_start == line and each.kind == "class" for each in file.facts.symbols)


def _formatting(tally: _Tally, language: str) -> Formatting:
    counts = tally.counts
    style = name_way(counts["indent_style"])
    size = int(name_way(counts["indent_size"]) or 0)
    return Formatting(
        indent_style=style,
        indent_size=1 if style == "tabs" else size,
        quote_style=name_way(+counts["quote_style"]),
        semicolons=has_semicolons(counts["semicolons"], language),
        trailing_comma=name_comma(counts["trailing_comma"]),
    )


def _patterns(tally: _Tally) -> Patterns:
    counts = tally.counts
    errors, components = name_way(counts["error_handling"]), name_way(counts["component_style"])
    return Patterns(
        error_handling=_with(errors, "custom errors" if counts["custom_errors"] else ""),
        async_style=name_way(counts["async_style"]),
        component_style=_with(components, "hooks" if counts["hooks"] and components == "functional" else ""),
        export_style=name_exports(counts["export_style"]),
        import_order=order_groups(tally.orders),
    )


def _with(way: str, more: str) -> str:
    return f"{way} with {more}" if way and more else way or more


def _examples(tally: _Tally) -> list[StyleExample]:
    """The lines that show each statement."""
    found: list[StyleExample] = []
    for what in (*_NAMED, *_WAYS, "custom_errors"):
        counts = tally.counts[what]
        way = name_case(counts) if what in _NAMED else name_way(counts)
        found += tally.shown[what, way]
    return found


# -- names -----------------------------------------------------------------------------------------------------


def case_of(name: str) -> str:
    """The case of a name; empty for one of no known case."""
    bare = name.strip("_$")
    return next((case for case, shape in _CASES if shape.fullmatch(bare)), "")


def name_case(counts: Counter[str]) -> str:
    """The case of most names. Single words count for the case of the others."""
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
    """Each name that a file defines, as (role, case, line)."""
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
    """Whether a symbol renders markup: a function or class with a capital letter in a file that can hold markup."""
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


# -- layout ----------------------------------------------------------------------------------------------------


def count_layout(plain: Plain, language: str) -> Counts:
    """Count the choices of one file."""
    counts: Counts = {
        "indent_style": Counter(),
        "indent_size": Counter(),
        "quote_style": Counter(),
        "semicolons": Counter(),
        "trailing_comma": Counter(),
    }
    _count_indents(plain.text, counts)
    if language in _CHOOSES_QUOTES:
        counts["quote_style"].update({"double": plain.double, "single": plain.single})
    if language in _CHOOSES_SEMICOLONS:
        counts["semicolons"].update(_semicolons(plain.text))
    counts["trailing_comma"].update(_last_commas(plain.text))
    return counts


def has_semicolons(counts: Counter[str], language: str) -> bool:
    return language in _NEEDS_SEMICOLONS or counts["yes"] > counts["no"]


def name_comma(counts: Counter[str]) -> str:
    """`all`, `es5` (in lists and objects, not in calls) or `none`; empty where no list goes over several lines."""
    inside = counts["item yes"] > counts["item no"]
    in_calls = counts["call yes"] > counts["call no"]
    if not counts.total():
        return ""
    if counts["call yes"] + counts["call no"] == 0:
        return "es5" if inside else "none"
    if counts["item yes"] + counts["item no"] == 0:
        return "all" if in_calls else "none"
    return ("all" if in_calls else "es5") if inside else "none"


def _count_indents(text: str, counts: Counts) -> None:
    before = 0
    for found in _INDENT.finditer(text):
        indent = found[1]
        if indent:
            counts["indent_style"]["tabs" if "\t" in indent else "spaces"] += 1
        step = len(indent) - before
        if 1 < step <= MAX_INDENT and "\t" not in indent:
            counts["indent_size"][str(step)] += 1
        before = len(indent)


def _semicolons(text: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    lines = text.split("\n")
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        end = line.rstrip()
        if end.endswith(";"):
            counts["yes"] += 1
        elif len(end) < 1_000 and _STATEMENT.match(end) and (not _GOES_ON.match(after) or after.strip() in ("", "}")):
            counts["no"] += 1
    return counts


def _last_commas(text: str) -> Counter[str]:
    """For each bracket that closes on a line of its own below a line that ends with a comma: whether the last item has
    one too."""
    counts: Counter[str] = Counter()
    lines = text.split("\n")
    for before, last, line in zip(lines, lines[1:], lines[2:], strict=False):
        found = _CLOSING.match(line)
        ends = [each.rstrip().endswith(",") for each in (before, last)]
        is_item = not _CLOSING.match(last) and not last.rstrip().endswith((";", "{"))
        if found and any(ends) and is_item:
            counts[f"{'call' if found[1] == ')' else 'item'} {'yes' if ends[1] else 'no'}"] += 1
    return counts
