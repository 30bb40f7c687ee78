"""Who stands behind a project: its files of maintainers, owners and authors, and what its manifests say. Answers only
questions on the whole project; addresses are left out."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator
from os.path import basename

from clew.catalog.text import inline
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.evidence.citations import on_one_line
from clew.knowledge.lines import clip
from clew.knowledge.manifests.formats import read_json, table
from clew.knowledge.project.dependencies import is_copied
from clew.knowledge.project.manifest_facts import NAME, read_facts
from clew.knowledge.project.texts import FileText, read_files

MAX_LINES = 8
MAX_NAMES = 10
MAX_TEXT = 160
DEEPEST = 1
"""Files further down than this are of a part, or of something that was copied."""

_THING = (
    r"(?:it|this|(?:this|the|our) (?:project|package|library|crate|repo|repository|tool|app)|(?P<name>[\w.-]{1,60}))"
)
_ROLES = r"(?:(?:current|core|main|code|project) )*(?:maintainers?|authors?|owners?|contributors?|developers?|team)"
_OF = _THING.replace("name", "of")
_ASKED = re.compile(
    rf"who (?:maintains|owns|leads|develops|is behind) {_THING}"
    rf"|who(?: is| are|'s) (?:the )?{_ROLES}(?: (?:of|for|behind) {_OF}| here)?",
    re.IGNORECASE,
)
_FILES = re.compile(
    r"(?:maintainers|owners|codeowners|authors|contributors|credits)(?:\.(?:md|txt|rst|ya?ml))?", re.IGNORECASE
)
_MANIFESTS = frozenset(("pyproject.toml", "Cargo.toml", "package.json"))
_LISTED = re.compile(r"^(?P<role>authors|maintainers)\s*=\s*\[(?P<who>.{0,2000}?)\]", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"name\s*=\s*[\"']([^\"']{1,100})[\"']")
_QUOTED = re.compile(r"[\"']([^\"'<]{1,100}?)\s*(?:<[^>]{0,100}>)?[\"']")
_ADDRESS = re.compile(r"\s*<?[\w.+-]{1,80}@[\w-]{1,80}\.[\w.]{1,80}>?")
_POINT = re.compile(r"^\s*[-*] ")
_SILENT = re.compile(r"\s*(?:[#;<=*~-].*)?$|\s*//")


def asks_for_people(question: str) -> re.Match[str] | None:
    """The question as one for those who stand behind a project, or None."""
    return _ASKED.fullmatch(" ".join(question[:300].split()).rstrip(" ?!."))


async def tell_people(question: str, code: CodeGraph) -> list[str]:
    """A line for each place that names those who stand behind the project, `path:line` first; none for another
    question, and where nothing says so."""
    found = asks_for_people(question)
    if found is None:
        return []
    paths = [file.path for file in await code.files() if _is_asked(file.path)]
    files = await asyncio.to_thread(lambda: list(read_files(code, sorted(paths, key=_order))))
    name = (found["name"] or found["of"] or "").lower()
    if name and name not in (basename(str(code.tree.root)).lower(), *_names_of(files)):
        return []
    return [line for file in files for line in _told(file)][:MAX_LINES]


def _names_of(files: Iterable[FileText]) -> list[str]:
    """What the manifests call the project."""
    facts = (fact for file in files for fact in read_facts(file.path, file.text))
    return [fact.value.lower() for fact in facts if fact.what == NAME]


def _is_asked(path: str) -> bool:
    name = path.rpartition("/")[2]
    is_one = _FILES.fullmatch(name) is not None or name in _MANIFESTS
    return is_one and path.count("/") <= DEEPEST and not is_copied(path)


def _order(path: str) -> tuple[bool, int, str]:
    return basename(path) in _MANIFESTS, path.count("/"), path


def _told(file: FileText) -> Iterator[str]:
    name = basename(file.path)
    if name not in _MANIFESTS:
        yield from _written(file)
        return
    if "/" in file.path:
        return
    named = _of_package(file) if name == "package.json" else _of_toml(file)
    for line, role, who in named:
        yield f"- {on_one_line(file.source(line))}: {role}: {inline(_names(who), MAX_TEXT)}"


def _written(file: FileText) -> Iterator[str]:
    """What a file of people says, without headings and comments."""
    for number, line in enumerate(file.lines, 1):
        said = _POINT.sub("", _ADDRESS.sub("", line)).strip()
        if re.search(r"\w", said) and not _SILENT.match(_POINT.sub("", line)):
            yield f"- {on_one_line(file.source(number))}: {inline(clip(said, MAX_TEXT))}"


def _of_toml(file: FileText) -> Iterator[tuple[int, str, list[str]]]:
    for found in _LISTED.finditer(file.text):
        who = _NAMED.findall(found["who"]) or _QUOTED.findall(found["who"])
        if who:
            yield file.line_of(found.start()), found["role"], who


def _of_package(file: FileText) -> Iterator[tuple[int, str, list[str]]]:
    said = read_json(file.text).table
    for role in ("author", "maintainers", "contributors"):
        value = said.get(role)
        who = [_person(each) for each in (value if isinstance(value, list) else [value])]
        at = file.text.find(f'"{role}"')
        if any(who) and at >= 0:
            yield file.line_of(at), role, [each for each in who if each]


def _person(value: object) -> str:
    """A person as npm writes one: a text, or a table with a name."""
    name = value if isinstance(value, str) else table(value).get("name")
    return re.split(r"\s*[<(]", name)[0].strip() if isinstance(name, str) else ""


def _names(who: Iterable[str]) -> str:
    named = list(who)
    more = f", and {len(named) - MAX_NAMES} more" if len(named) > MAX_NAMES else ""
    return f"{', '.join(named[:MAX_NAMES])}{more}"
