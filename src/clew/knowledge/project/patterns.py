"""Recurring patterns of a project's code, counted line by line: error handling, concurrency, exports, components,
design patterns by name, and the order of imports. The shapes of patterns are data: `patterns.json`."""

from __future__ import annotations

import asyncio
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import NamedTuple

import msgspec

from clew.errors import InvalidInput
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.languages.detect import LANGUAGES
from clew.knowledge.code.models import FileInfo, Import
from clew.knowledge.lines import clip
from clew.knowledge.project.formats import load_table
from clew.knowledge.project.texts import own_files, read_files

Shapes = Mapping[str, Mapping[str, re.Pattern[str]]]
MAX_FILES = 300
"""Files of a language that are counted; of more, every second, third and so on."""
MAX_EXAMPLES = 3

_SAME = {"tsx": "typescript"}
_SHORT = {"ts": "typescript", "js": "javascript", "jsx": "javascript", "py": "python", "rb": "ruby", "rs": "rust"}
_MIXED = 0.25
"""The share from which a second way is no exception."""
_STYLE_SHEET = re.compile(r"\.(?:css|scss|sass|less|styl)$")
_NODE = re.compile(
    r"(?:assert|buffer|child_process|crypto|dns|events|fs|https?|net|os|path|process|querystring|readline|stream"
    r"|string_decoder|timers|tls|url|util|v8|vm|worker_threads|zlib)(?:/.*)?"
)
_GROUPS = ("builtin", "react", "external", "internal", "relative", "styles")
_MAX_LINE = 500
_C = r"//[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)"
_LINE_STRINGS = r"\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'"
_SCANNERS = {
    "python": re.compile(
        r"(?s:(?P<long>\"\"\"(?:[^\\]|\\.)*?(?:\"\"\"|\Z)|'''(?:[^\\]|\\.)*?(?:'''|\Z)))"
        rf"|(?P<comment>#[^\n]*)|(?P<string>{_LINE_STRINGS})"
    ),
    "ruby": re.compile(rf"(?P<comment>(?<![\w\"'])#(?!\{{)[^\n]*)|(?P<long>(?!))|(?P<string>{_LINE_STRINGS})"),
    "javascript": re.compile(rf"(?P<comment>{_C})|(?P<long>`(?:[^`\\]|\\.)*+`)|(?P<string>{_LINE_STRINGS})", re.DOTALL),
    "rust": re.compile(rf"(?P<comment>{_C})|(?P<long>(?!))|(?P<string>\"(?:[^\"\\]|\\.)*+\")", re.DOTALL),
    "other": re.compile(rf"(?P<comment>{_C})|(?P<long>`[^`]*`)|(?P<string>{_LINE_STRINGS})"),
}
_FAMILY = {"typescript": "javascript", "tsx": "javascript"}
_MARKUP_VALUE = re.compile(r"[\w:-]=\Z")


class Plain(NamedTuple):
    """Code with empty strings and without comments, and how often each quotation mark was chosen."""

    text: str
    double: int
    single: int


def strip_code(text: str, language: str) -> Plain:
    """Blank comments and strings of any text. Attributes of markup and strings with a quote inside count for no
    mark."""
    family = _FAMILY.get(language, language)
    marks = {'"': 0, "'": 0}

    def blank(found: re.Match[str]) -> str:
        whole = found[0]
        if found["comment"] is not None:
            return "\n" * whole.count("\n")
        if found["string"] is not None and not _is_forced(found, family):
            marks[whole[0]] += 1
        return '"' + "\n" * whole.count("\n") + '"'

    plain = _SCANNERS.get(family, _SCANNERS["other"]).sub(blank, text)
    return Plain(plain, marks['"'], marks["'"])


def _is_forced(found: re.Match[str], family: str) -> bool:
    inner = found[0][1:-1]
    start = found.start()
    is_markup = family == "javascript" and _MARKUP_VALUE.search(found.string[max(0, start - 2) : start]) is not None
    return is_markup or '"' in inner or "'" in inner


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


async def detect_patterns(code: CodeGraph, language: str | None = None) -> list[LanguagePatterns]:
    """Return the patterns of one language, or of all, that with most files first. Raises InvalidInput for an unknown
    language."""
    groups = await files_by_language(code, language)
    return [await asyncio.to_thread(_detect, code, name, files) for name, files in groups.items()]


async def files_by_language(code: CodeGraph, language: str | None) -> dict[str, list[FileInfo]]:
    """The files of one language, or of all, that with most files first. Raises InvalidInput for an unknown one."""
    name = (language or "all").strip().lower()
    wanted = _SAME.get(_SHORT.get(name, name), _SHORT.get(name, name))
    if wanted not in (*LANGUAGES, "all"):
        raise InvalidInput("language", f"{wanted[:40]!r} is not read", hint=f"Languages are {', '.join(LANGUAGES)}")
    groups: defaultdict[str, list[FileInfo]] = defaultdict(list)
    for file in await code.files():
        if file.language and wanted in ("all", _SAME.get(file.language, file.language)):
            groups[_SAME.get(file.language, file.language)].append(file)
    return dict(sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])))


def _detect(code: CodeGraph, language: str, files: Sequence[FileInfo]) -> LanguagePatterns:
    found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    read = 0
    for file in read_files(code, (each.path for each in own_files(files, MAX_FILES))):
        read += 1
        for aspect, way, line in count_ways(strip_code(file.text, language).text, language):
            found[aspect, way].append(f"{file.source(line)}: {clip(file.lines[line - 1], 160)}")
    uses = [
        PatternUse(
            aspect=aspect,
            pattern=way,
            count=len(lines),
            files=len({line.partition(":")[0] for line in lines}),
            examples=lines[:MAX_EXAMPLES],
        )
        for (aspect, way), lines in found.items()
    ]
    uses.sort(key=lambda use: (use.aspect, -use.count, use.pattern))
    return LanguagePatterns(language=language, files=read, patterns=uses)


@cache
def load_shapes(language: str) -> Shapes:
    known = load_table("patterns.json", dict[str, dict[str, dict[str, str]]])
    found = {**known["any"], **known.get("javascript" if language == "typescript" else language, {})}
    return {aspect: {name: re.compile(shape) for name, shape in ways.items()} for aspect, ways in found.items()}


def count_ways(plain: str, language: str) -> Iterator[tuple[str, str, int]]:
    """Each line that follows a known pattern, as (aspect, pattern, line)."""
    shapes = [(aspect, way, shape) for aspect, ways in load_shapes(language).items() for way, shape in ways.items()]
    for number, line in enumerate(plain.split("\n"), 1):
        if not line or len(line) > _MAX_LINE:
            continue
        for aspect, way, shape in shapes:
            if shape.search(line):
                yield aspect, way, number


def name_way(counts: Counter[str]) -> str:
    return max(counts, key=lambda way: (counts[way], way)) if counts else ""


def name_exports(counts: Counter[str]) -> str:
    """The way of most exports, or `mixed`."""
    if counts.total() and len(counts) > 1 and counts.most_common(2)[1][1] >= _MIXED * counts.total():
        return "mixed"
    return name_way(counts)


def group_of(module: str, language: str, own: frozenset[str]) -> str:
    """The origin of an import; empty for languages whose imports do not show it."""
    if language == "python":
        return _python_group(module, own)
    if language in ("javascript", "typescript"):
        return _script_group(module, own)
    if language == "go":
        return "external" if "." in module.partition("/")[0] else "builtin"
    return ""


def order_groups(orders: Sequence[Sequence[str]]) -> list[str]:
    """The groups of imports in the order of most files, given the groups of each file in the order of its imports."""
    wins: Counter[tuple[str, str]] = Counter()
    for groups in orders:
        for first, second in combinations(groups, 2):
            if first != second:
                wins[first, second] += 1
    present = sorted({group for groups in orders for group in groups}, key=_GROUPS.index)
    ahead = {one: sum(wins[one, other] > wins[other, one] for other in present) for one in present}
    return sorted(present, key=lambda group: -ahead[group])


def groups_of(imports: Sequence[Import], language: str, own: frozenset[str]) -> list[str]:
    ordered = sorted(imports, key=lambda each: each.line)
    found = (group_of(each.module, language, own) for each in ordered if each.module != "__future__")
    return [group for group in found if group]


def _python_group(module: str, own: frozenset[str]) -> str:
    if module.startswith("."):
        return "relative"
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names:
        return "builtin"
    return "internal" if top in own else "external"


def _script_group(module: str, own: frozenset[str]) -> str:
    if _STYLE_SHEET.search(module):
        return "styles"
    if module.startswith("."):
        return "relative"
    top = module.partition("/")[0]
    if module.startswith(("@/", "~/", "#")) or top in own:
        return "internal"
    if module.startswith("node:") or _NODE.fullmatch(module):
        return "builtin"
    return "react" if top in ("react", "react-dom") else "external"
