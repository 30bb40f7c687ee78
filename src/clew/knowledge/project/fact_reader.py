"""Reads the facts of a project from its manifests, tool configurations and workflows. Reading is bounded and never
raises."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from itertools import islice

from clew.knowledge.code.file_content import read_content
from clew.knowledge.code.search.words import terms_of
from clew.knowledge.lines import clip
from clew.knowledge.project.facts import IndexedFact, ProjectFact, plain_words
from clew.knowledge.project.formats import ManifestFile, load_table, parse, table
from clew.knowledge.project.manifests import Statement, is_copied, reader_of
from clew.knowledge.project.tool_scan import find_configured, sign_rules, used_tools
from clew.knowledge.project.tools import CATEGORIES
from clew.secrecy import mask_in_place, may_hold_keys
from clew.trail.model.readable import find_words

MAX_TEXT = 500_000
"""The largest file in bytes that is read. For a larger file, only the name is used."""
MAX_FACTS = 2_000
"""Facts that are taken from one file."""
MAX_LINES, MAX_WIDTH = 30, 400
"""Lines of a fact that are shown, and characters of each."""
MAX_VALUE = 1_000


_WORKFLOWS = ".github/workflows/"


def index_facts(root: str, paths: Iterable[str]) -> list[IndexedFact]:
    """The facts of those files of a folder that may state some, with the words that ask for them."""
    wanted = [path for path in paths if is_fact_file(path)]
    contents = {path: content for path in wanted if (content := read_content(root, path)) is not None}
    facts = read_facts((path, content.body) for path, content in contents.items())
    return [
        IndexedFact(
            fact,
            contents[fact.path].blob,
            _terms(fact.name.rpartition(": ")[2]),  # the name of a step of a job has the words for it
            _terms(fact.keywords),
            plain_words(fact.keywords),
            _terms(f"{fact.name} {fact.value} {fact.text} {fact.path}"),
        )
        for fact in facts
    ]


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
    file = ManifestFile(path, mask_in_place(text) if may_hold_keys(text) else text)  # facts are stored
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


def _terms(text: str) -> frozenset[int]:
    return frozenset(term for word in find_words(text) for term in terms_of(word))
