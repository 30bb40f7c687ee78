"""The facts that the files of a project state of it: runtimes, dependencies, scripts, tools, metadata and people, each
with its lines. Reading is bounded and never raises; keys are not masked here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from itertools import islice

import msgspec

from clew.knowledge.lines import clip
from clew.knowledge.project.formats import ManifestFile, load_table, parse, table
from clew.knowledge.project.manifests import Kind, Statement, is_copied, reader_of
from clew.knowledge.project.tool_scan import find_configured, sign_rules, used_tools
from clew.knowledge.project.tools import CATEGORIES

MAX_TEXT = 500_000
"""Of a larger file only its name is read."""
MAX_FACTS = 2_000
"""Facts that are taken from one file."""
MAX_LINES, MAX_WIDTH = 30, 400
"""Lines of a fact that are shown, and characters of each."""
MAX_VALUE = 1_000

_WORKFLOWS = ".github/workflows/"


class ProjectFact(msgspec.Struct, frozen=True):
    """One fact. `start` and `end` are lines, counted from 1; `text` is these lines as written, up to a limit."""

    path: str
    start: int
    end: int
    kind: Kind
    name: str
    value: str
    text: str
    keywords: str


def is_fact_file(path: str) -> bool:
    """Whether a file of this name may state facts of its project."""
    name = path.rpartition("/")[2]
    is_known = name in sign_rules() or path.startswith(_WORKFLOWS) or reader_of(path) is not None
    return is_known and not is_copied(path)


def read_facts(files: Iterable[tuple[str, bytes]]) -> list[ProjectFact]:
    """The facts of some files, given by path and content, in the order of the files; other files state none."""
    return [fact for path, body in files if is_fact_file(path) for fact in islice(_read(path, body), MAX_FACTS)]


def _read(path: str, body: bytes) -> Iterator[ProjectFact]:
    text = body.decode("utf-8-sig", "replace") if len(body) <= MAX_TEXT else ""
    file = ManifestFile(path, text)
    read = reader_of(path)
    for stated in (*(read(file) if read else ()), *_read_tools(file)):
        yield _to_fact(file, stated)


def _read_tools(file: ManifestFile) -> Iterator[Statement]:
    """The tools that a file configures. A section `tool` of `pyproject.toml` counts though the tool is not known."""
    for sign in find_configured(file):
        line = max(1, sign.line)
        yield Statement("tool", sign.tool, sign.category.replace("_", " "), line, line, sign.category)
    if file.path.startswith(_WORKFLOWS):
        yield Statement("tool", "GitHub Actions", "CI", 1, 1, "CI")
    if file.name == "pyproject.toml":
        parsed = parse(file)
        known = {rule.part.split("/")[1] for rule in sign_rules()[file.name]}
        for name in table(parsed.data.get("tool")):
            if name not in known:
                line = parsed.span(("tool", name))[0]
                yield Statement("tool", name, "configuration", line, line)


def _to_fact(file: ManifestFile, stated: Statement) -> ProjectFact:
    end = min(stated.end, len(file.lines), stated.start + MAX_LINES - 1)
    shown = (line[:MAX_WIDTH].rstrip("\r") for line in file.lines[stated.start - 1 : end])
    return ProjectFact(
        path=file.path,
        start=stated.start,
        end=stated.end,
        kind=stated.kind,
        name=clip(stated.name),
        value=stated.value[:MAX_VALUE],
        text="\n".join(shown),
        keywords=_keywords(stated),
    )


def _keywords(stated: Statement) -> str:
    groups = {stated.group, stated.name}
    if stated.kind == "dependency":
        groups |= _tool_packages().get(stated.name, set())
    elif stated.kind == "script":
        groups |= {each for each in CATEGORIES if used_tools(stated.value.replace("\n", " ; "), each)}
    keys = (f"{each} {group}" for group in sorted(groups) for each in dict.fromkeys((stated.kind, "tool")))
    return _join_keywords((stated.kind, *(key for key in keys if key in _load_keywords())), stated.words)


@lru_cache(maxsize=256)
def _join_keywords(keys: tuple[str, ...], words: str) -> str:
    found = " ".join((*(_load_keywords().get(key, "") for key in keys), words))
    return " ".join(dict.fromkeys(found.split()))


@cache
def _load_keywords() -> dict[str, str]:
    """Words by which people ask for a fact: by its kind, with its group, and with its name."""
    return load_table("keywords.json", dict[str, str])


@cache
def _tool_packages() -> dict[str, set[str]]:
    """The categories of the tools that packages bring."""
    found: dict[str, set[str]] = {}
    for rule in (rule for rules in sign_rules().values() for rule in rules):
        found.setdefault(rule.path.partition(":")[2], set()).add(rule.category)
    return found
