"""The facts that the files of a project state of it: runtimes, dependencies, scripts, tools, metadata and people, each
with its lines; and the facts that a question asks for. Reading is bounded and never raises."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from itertools import islice
from typing import NamedTuple

import msgspec

from clew.knowledge.code.file_content import read_content
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.search.words import terms_of
from clew.knowledge.lines import clip
from clew.knowledge.nodes.kinds import NodeDomain, NodeType, TrustLevel, Verification
from clew.knowledge.nodes.node_store import Node, ScoredNode
from clew.knowledge.project.formats import ManifestFile, load_table, parse, table
from clew.knowledge.project.manifests import Kind, Statement, is_copied, reader_of
from clew.knowledge.project.tool_scan import find_configured, sign_rules, used_tools
from clew.knowledge.project.tools import CATEGORIES
from clew.secrecy import mask_keys
from clew.trail.model.readable import find_words

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


# -- facts that a question asks for ------------------------------------------------------------------------------

SHOWN = 3
STATED = 0.7
"""A fact that covers this share of a question answers it."""
SHORTEST_ASKING = 4
NAME_BONUS = 0.2
"""How much more a fact counts whose name the question has."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _IndexedFact(NamedTuple):
    fact: ProjectFact
    blob: str
    name: frozenset[int]
    asked_by: frozenset[int]
    asked_in: frozenset[str]
    said: frozenset[int]


class ProjectFacts:
    """The facts of one folder, read again when a file changes."""

    def __init__(self, code: CodeGraph) -> None:
        self._code = code
        self._state = ""
        self._facts: list[_IndexedFact] = []
        self._by_key: dict[int | str, list[int]] = defaultdict(list)
        """The numbers of the facts that a term or a plain word asks for."""

    async def search(self, question: str, state: str, weights: Mapping[str, float]) -> list[ScoredNode]:
        """The facts that a question asks for, best first: they have its words, and words by which such facts are asked
        for. Reads the manifests again in another `state` of the files."""
        if state != self._state:
            await self._refresh()
            self._state = state
        words = {term: weight for word, weight in weights.items() for term in terms_of(word)[:1]}
        total = sum(words.values())
        if not total:
            return []
        asked = _plain_words(question)
        keys: set[int | str] = {*asked, *words}
        numbers = {number for key in keys for number in self._by_key.get(key, ())}
        scored = [(_score(self._facts[number], words, total, asked), self._facts[number]) for number in sorted(numbers)]
        stated = [one for one in scored if one[0] >= STATED]
        best = sorted(stated, key=lambda one: (-round(one[0], 1), *_depth(one[1]), -len(one[1].name & words.keys())))
        distinct = {(each.fact.kind, each.fact.name, each.fact.value): (score, each) for score, each in reversed(best)}
        found = list(reversed(distinct.values()))[:SHOWN]
        return [ScoredNode(node=_node(each), similarity=min(1.0, score)) for score, each in found]

    async def _refresh(self) -> None:
        paths = [file.path for file in await self._code.files() if is_fact_file(file.path)]
        self._facts = await asyncio.to_thread(_index, self._code.tree.root, paths)
        self._by_key = defaultdict(list)
        for number, each in enumerate(self._facts):
            keys: set[int | str] = {*each.asked_by, *each.asked_in}
            for key in keys:
                self._by_key[key].append(number)


def _index(root: str, paths: Sequence[str]) -> list[_IndexedFact]:
    contents = {path: content for path in paths if (content := read_content(root, path)) is not None}
    facts = read_facts((path, content.body) for path, content in contents.items())
    return [
        _IndexedFact(
            fact,
            contents[fact.path].blob,
            _terms(fact.name.rpartition(": ")[2]),  # a step of a job is named by its own words
            _terms(fact.keywords),
            _plain_words(fact.keywords),
            _terms(f"{fact.name} {fact.value} {fact.text} {fact.path}"),
        )
        for fact in facts
    ]


def _score(each: _IndexedFact, words: Mapping[int, float], total: float, asked: frozenset[str]) -> float:
    """The share of the words that a fact has; 0 unless some word asks for facts of its kind, a stop word such as `need`
    included."""
    if each.asked_by.isdisjoint(words) and asked.isdisjoint(each.asked_in):
        return 0.0
    held = sum(weight for term, weight in words.items() if term in each.asked_by or term in each.said)
    return held / total + (0.0 if each.name.isdisjoint(words) else NAME_BONUS)


def _depth(each: _IndexedFact) -> tuple[bool, int]:
    """Manifests at the top before those below it, and these before configuration of services."""
    return each.fact.path.startswith("."), each.fact.path.count("/")


def _node(each: _IndexedFact) -> Node:
    fact = each.fact
    return Node(
        id=f"fact:{fact.path}:{fact.start}:{fact.name}",
        name=f"{fact.kind} {fact.name}",
        domain=NodeDomain.CODE,
        node_type=NodeType.FILE,
        content=mask_keys(fact.text),
        path=fact.path,
        line_start=fact.start,
        line_end=fact.end,
        content_hash=each.blob,
        signature=mask_keys(fact.text.split("\n", 1)[0].strip()) or None,
        metadata={"kind": fact.kind, "doc": f"{fact.kind} {fact.name}: {fact.value}"},
        verified=True,
        verification=Verification.CODE,
        trust=TrustLevel.GROUND,
        created_at=_EPOCH,
    )


def _terms(text: str) -> frozenset[int]:
    return frozenset(term for word in find_words(text) for term in terms_of(word))


def _plain_words(text: str) -> frozenset[str]:
    """Words of four letters and more, without the `s` at their ends."""
    return frozenset(word.lower().rstrip("s") for word in find_words(text) if len(word) >= SHORTEST_ASKING)
