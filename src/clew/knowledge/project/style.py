"""The style that a project's code follows, found by counting what is there; every statement has lines that show it."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from clew.errors import InvalidInput
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.languages.detect import LANGUAGES
from clew.knowledge.code.models import FileInfo
from clew.knowledge.lines import clip
from clew.knowledge.project.code_text import strip_code
from clew.knowledge.project.style_layout import count_layout, has_semicolons, name_comma
from clew.knowledge.project.style_names import count_names, name_case
from clew.knowledge.project.style_patterns import count_ways, groups_of, name_exports, name_way, order_groups
from clew.knowledge.project.texts import FileText, own_files, read_files

MAX_FILES = 300
"""Files of a language that are counted; of more, every second, third and so on."""
_EXAMPLES = 2
_SAME = {"tsx": "typescript"}
_SHORT = {"ts": "typescript", "js": "javascript", "jsx": "javascript", "py": "python", "rb": "ruby", "rs": "rust"}
_NAMED = ("functions", "variables", "constants", "types", "files", "components")
_WAYS = ("error_handling", "async_style", "component_style", "export_style")


class Naming(msgspec.Struct, frozen=True, kw_only=True):
    """How names are written, such as `snake_case`; empty where there are none."""

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
    """A line that follows what is said of a pattern."""

    pattern: str
    file: str
    line: int
    text: str


class LanguageStyle(msgspec.Struct, frozen=True, kw_only=True):
    """The style of one language. `counts` has what was counted for each statement, `files` how many files."""

    language: str
    naming: Naming
    formatting: Formatting
    patterns: Patterns
    examples: Sequence[StyleExample] = ()
    counts: Mapping[str, Mapping[str, int]] = {}
    files: int = 0


class _Tally:
    """What was counted, and the first lines that show each."""

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
    """The style of one language, or of all that the project has, the one with most files first; nothing for one that
    it has not. Raises InvalidInput for what is no language that is read."""
    wanted = _wanted(language)
    groups: defaultdict[str, list[FileInfo]] = defaultdict(list)
    for file in await code.files():
        if file.language:
            groups[_SAME.get(file.language, file.language)].append(file)
    chosen = sorted((name for name in groups if wanted in ("", name)), key=lambda name: (-len(groups[name]), name))
    own = _own_modules([file for files in groups.values() for file in files])
    return [await asyncio.to_thread(_infer, code, name, groups[name], own) for name in chosen]


def _wanted(language: str | None) -> str:
    name = (language or "all").strip().lower()
    name = _SAME.get(_SHORT.get(name, name), _SHORT.get(name, name))
    if name == "all":
        return ""
    if name not in LANGUAGES:
        raise InvalidInput("language", f"{name[:40]!r} is not read", hint=f"Languages are {', '.join(LANGUAGES)}")
    return name


def _own_modules(files: Sequence[FileInfo]) -> frozenset[str]:
    """The first parts by which a project's files import each other."""
    tops = {file.path.removeprefix("src/").partition("/") for file in files}
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
    """Lines that show what most of the code does, for each statement that has lines."""
    found: list[StyleExample] = []
    for what in (*_NAMED, *_WAYS, "custom_errors"):
        counts = tally.counts[what]
        way = name_case(counts) if what in _NAMED else name_way(counts)
        found += tally.shown[what, way]
    return found
