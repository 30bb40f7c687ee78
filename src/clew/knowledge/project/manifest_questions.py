"""Questions that the manifests of a project answer: which version of a package or language it needs, its own version
and licence, and what it depends on. Any other question is answered by nothing here."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from clew.catalog.text import inline
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.path_kinds import ASIDE, TEST, kind_of
from clew.knowledge.evidence.citations import on_one_line
from clew.knowledge.manifests.records import Declared, PackageType, normal_name
from clew.knowledge.project.dependencies import is_copied, list_packages
from clew.knowledge.project.manifest_facts import LICENCE, NAME, VERSION, Fact, has_facts, read_facts
from clew.knowledge.project.texts import read_files
from clew.trail.text import STOP

MAX_LINES = 5
MAX_LISTED, MAX_FURTHER = 12, 5
"""Packages that are named in the first line of a list, and in each further one."""
MAX_QUESTION, MAX_FILES = 300, 60

Kind = Literal["version", "own version", "licence", "dependencies"]

_ASKS = re.compile(r"^\W*(?:which|what|what's|whats|is|are|does|do|under|list|show|tell|how)\b", re.IGNORECASE)
_VERSION = re.compile(
    r"\b(?:which|what)\b(?:\s+\S+){0,6}?\s+versions?\b|^\s*\S+(?:\s+\S+)?\s+versions?\W*$|\bmsrv\b"
    r"|\b(?:minimum|min|supported|required|needed)\b.{0,40}\bversions?\b"
    r"|\b(?:supports?|supported|needs?|needed|requires?|required|runs? on|works? with)\b.{0,30}\b\d+(?:\.\d+)*\b"
    r"|\b\d+(?:\.\d+)*\b.{0,10}\b(?:supported|works?)\b",
    re.IGNORECASE,
)
_OF_ONE = re.compile(
    r"^\W*(?:which|what) (?:versions? of (?P<of>[\w.@/-]{1,80})|(?P<before>[\w.@/-]{1,80}) versions?)"
    r"(?: (?:is|are|do|does|should)\b.{0,100})?\W*$",
    re.IGNORECASE,
)
_THING = r"(?:project|package|library|crate|module|repo|repository|program|tool|app)"
_OWN = re.compile(
    rf"\bversion (?:is|of) (?:this|it)\b|\bversion (?:is|of|does) (?:this|the|our) {_THING}\b"
    rf"|\b(?:current|own|this {_THING}(?:'s)?|{_THING}(?:'s)?) version\b|\bversion (?:are we|is current)\b",
    re.IGNORECASE,
)
_OF_PAST = re.compile(
    r"\b(?:introduc|add(?:s|ed)?\b|remov|dropp?(?:s|ed)?\b|delet|deprecat|fix|broke|chang|releas|renam)", re.IGNORECASE
)
"""What was done with a version is told by the past, not by what is needed now."""
_SAYS_VERSION = re.compile(r"\bversions?\b|\bmsrv\b", re.IGNORECASE)
_LICENCE = re.compile(r"\blicen[cs]ed?\b", re.IGNORECASE)
_IN_CODE = re.compile(r"\b(?:header|key|server|check|code|class|function|parse|test|file)s?\b", re.IGNORECASE)
_DEPENDS = re.compile(
    rf"\b(?:which|what|list|show|our|its)\b(?:\W+\w+){{0,4}}?\W+(?:dependencies|requirements)\b(?!\W+(?:injection|graph))"
    rf"|\bwhat (?:does|do) (?:this|the|our|it|we)(?: {_THING})? depends? on\b"
    r"|\bwhich (?:packages|libraries|crates|modules) (?:does|do|are)\b.{0,30}\b(?:use|used|need|needed|depend)",
    re.IGNORECASE,
)
_DEV = re.compile(r"\bdev(?:elopment)?\b|\btests?\b|\btesting\b", re.IGNORECASE)
_WORD = re.compile(r"@?[^\W_][\w./-]*[^\W_]|[^\W_]")
_LANGUAGES = {
    **{"py": "python", "golang": "go", "nodejs": "node", "node.js": "node", "rustc": "rust", "msrv": "rust"},
    **{"jdk": "java", "jre": "java", "jvm": "java", "cargo": "rust", "license": LICENCE, "licence": LICENCE},
    **{each: each for each in ("python", "go", "node", "rust", "java", "ruby", "npm", "pnpm", "yarn", "bun")},
}
_COMMON = (
    frozenset(("version", "versions", "project", "package", "library", "required", "needed", "used", "here")) | STOP
)
_NEEDED: dict[PackageType, str] = {"runtime": "to run", "dev": "for development", "peer": "beside it"}


class Asked(NamedTuple):
    """What a question wants to know, and the names in it."""

    kind: Kind
    names: tuple[str, ...] = ()
    is_dev: bool = False


def read_question(question: str) -> Asked | None:
    """What a question wants to know of the manifests; None for any other question."""
    text = question[:MAX_QUESTION]
    words = tuple(word for word in map(str.lower, _WORD.findall(text)) if word in _LANGUAGES or word not in _COMMON)
    is_question = _ASKS.search(text) is not None or len(text.split()) <= 5
    if not is_question:
        return None
    if _DEPENDS.search(text):
        return Asked("dependencies", is_dev=_DEV.search(text) is not None)
    if _LICENCE.search(text) and not _IN_CODE.search(text):
        return Asked("licence")
    if _OWN.search(text):
        return Asked("own version", words)
    return Asked("version", words) if _VERSION.search(text) and not _OF_PAST.search(text) else None


async def tell_manifest(question: str, code: CodeGraph) -> list[str]:
    """What the manifests answer to a question, a line for each place that says it, `path:line` first; none where it is
    not about them, or they do not say."""
    asked = read_question(question)
    if asked is None:
        return []
    if asked.kind == "dependencies":
        return _listed(await list_packages(code), is_dev=asked.is_dev)
    facts = await _facts(code)
    if asked.kind == "licence":
        return _told(LICENCE, facts)
    packages, own = await list_packages(code), _own_names(facts)
    names = [name for name in asked.names if name not in own]
    lines = [line for name in names for line in (*_languages(name, facts), *_packages(name, packages, facts))]
    if not lines and asked.kind == "version" and len(names) == len(asked.names):
        return _unknown(question, names) if packages or facts else []
    if lines or not _SAYS_VERSION.search(question):
        return lines[:MAX_LINES]
    return _told(VERSION, _beside(asked.names, facts) or facts)


def _unknown(question: str, names: Sequence[str]) -> list[str]:
    """That no manifest names the one thing whose version a question wants."""
    found = _OF_ONE.search(question[:MAX_QUESTION])
    name = (found["of"] or found["before"]) if found else ""
    return [f"- No manifest here names {inline(name)}."] if name.lower() in names else []


async def _facts(code: CodeGraph) -> list[Fact]:
    files = [file.path for file in await code.files() if has_facts(file.path) and not is_copied(file.path)]
    own = [path for path in files if not kind_of(path) & (TEST | ASIDE)] or files
    paths = sorted(own, key=lambda path: (path.count("/"), path))[:MAX_FILES]
    return await asyncio.to_thread(_read, code, paths)


def _read(code: CodeGraph, paths: Sequence[str]) -> list[Fact]:
    return [fact for file in read_files(code, paths) for fact in read_facts(file.path, file.text)]


def _languages(name: str, facts: Sequence[Fact]) -> list[str]:
    what = _LANGUAGES.get(name, "")
    return _told(what, facts) if what else []


def _packages(name: str, packages: Sequence[Declared], facts: Iterable[Fact]) -> list[str]:
    """Each version that a package of this name is asked for in, where that is said first; with what only says the
    version, for others to ask for."""
    fitting = [each for each in packages if name in _names(each)]
    managed = [fact for fact in facts if fitting and fact.what in {each.name for each in fitting}]
    said = [each for each in fitting if each.version] or ([] if managed else fitting)
    found = {(each.name, each.version): each for each in reversed(said)}
    told = [f"- {on_one_line(fact.source)}: {inline(f'{fact.what} {fact.value}')}" for fact in managed]
    return [*map(_package_line, reversed(found.values())), *told]


def _names(package: Declared) -> frozenset[str]:
    """How people call a package: whole, or by the end of its path."""
    name = package.name.lower()
    ends = (re.sub(r"/v\d+$", "", name).rpartition("/")[2], name.rpartition(":")[2])
    return frozenset((name, normal_name(name), *(ends if package.ecosystem in ("go", "java") else ())))


def _package_line(package: Declared) -> str:
    said = inline(f"{package.name} {package.version or 'in any version'}")
    return f"- {on_one_line(package.source)}: {said} ({package.ecosystem}, needed {_NEEDED[package.type]})"


def _own_names(facts: Sequence[Fact]) -> frozenset[str]:
    return frozenset(fact.value.lower() for fact in facts if fact.what == NAME)


def _beside(names: Sequence[str], facts: Sequence[Fact]) -> list[Fact]:
    """What the manifests say that give one of the names to the project, or to a part of it."""
    paths = {_path(fact) for fact in facts if fact.what == NAME and fact.value.lower() in names}
    found = [fact for fact in facts if _path(fact) in paths]
    return found if any(fact.what == VERSION for fact in found) else []


def _path(fact: Fact) -> str:
    return fact.source.rpartition(":")[0]


def _told(what: str, facts: Sequence[Fact]) -> list[str]:
    """What is said of one thing, each value once. The folders below say it only where the upper ones do not."""
    fitting = [fact for fact in facts if fact.what == what]
    depth = min((fact.source.count("/") for fact in fitting), default=0)
    found = {fact.value: fact for fact in reversed(fitting) if fact.source.count("/") == depth}
    shown = {VERSION: "this project has version", LICENCE: "licence"}.get(what, f"{what} version")
    return [f"- {on_one_line(fact.source)}: {inline(f'{shown} {fact.value}')}" for fact in reversed(found.values())][
        :MAX_LINES
    ]


def _listed(packages: Sequence[Declared], *, is_dev: bool) -> list[str]:
    """A line for each kind of packages, those that the project needs to run first."""
    lines: list[str] = []
    for type, why in _NEEDED.items():
        found = {each.name: each for each in reversed(packages) if each.type == type and "${" not in each.name}
        if not found or (is_dev and type != "dev"):
            continue
        most = MAX_FURTHER if lines else MAX_LISTED
        named = [f"{each.name} {each.version}".strip() + f" ({each.source})" for each in reversed(found.values())]
        more = f", and {len(named) - most:,} more" if len(named) > most else ""
        lines.append(f"- {len(named):,} packages needed {why}: {', '.join(map(inline, named[:most]))}{more}")
    return lines
