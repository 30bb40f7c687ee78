"""Which ways of doing things a project's code follows, counted line by line. The shapes that are looked for are data:
`patterns.json`."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations

from clew.knowledge.code.models import Import
from clew.knowledge.project.tables import load_table

Shapes = Mapping[str, Mapping[str, re.Pattern[str]]]

_MIXED = 0.25
"""The share from which a second way is no exception any more."""
_STYLE_SHEET = re.compile(r"\.(?:css|scss|sass|less|styl)$")
_NODE = re.compile(
    r"(?:assert|buffer|child_process|crypto|dns|events|fs|https?|net|os|path|process|querystring|readline|stream"
    r"|string_decoder|timers|tls|url|util|v8|vm|worker_threads|zlib)(?:/.*)?"
)
_GROUPS = ("builtin", "react", "external", "internal", "relative", "styles")
_MAX_LINE = 500


@cache
def load_shapes(language: str) -> Shapes:
    known = load_table("patterns.json", dict[str, dict[str, dict[str, str]]])
    found = known.get("javascript" if language == "typescript" else language, {})
    return {aspect: {name: re.compile(shape) for name, shape in ways.items()} for aspect, ways in found.items()}


def count_ways(plain: str, language: str) -> Iterator[tuple[str, str, int]]:
    """Each line that follows a known way, as (aspect, way, line)."""
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
    """The way that most exports follow, or `mixed`."""
    if counts.total() and len(counts) > 1 and counts.most_common(2)[1][1] >= _MIXED * counts.total():
        return "mixed"
    return name_way(counts)


def group_of(module: str, language: str, own: frozenset[str]) -> str:
    """Where an import comes from; empty for languages whose imports do not tell."""
    if language == "python":
        return _python_group(module, own)
    if language in ("javascript", "typescript"):
        return _script_group(module, own)
    if language == "go":
        return "external" if "." in module.partition("/")[0] else "builtin"
    return ""


def order_groups(orders: Sequence[Sequence[str]]) -> list[str]:
    """The groups in the order that most files have them in. Of each file, the groups in the order of its imports."""
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
