"""The first tier of discovery: the tools that configurations, manifests, scripts, CI and editor settings of a project
name. Files are read without following links and up to a limit; nothing is run."""

from __future__ import annotations

import os
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from clew.catalog.text import inline
from clew.knowledge.code.file_content import read_content
from clew.knowledge.project.formats import TextFile
from clew.knowledge.project.packages import find_npm, find_python
from clew.knowledge.project.tool_records import Confidence, DiscoveredTool, ToolCategory
from clew.knowledge.project.tool_signs import (
    ANY,
    MAX_VERSION,
    SCRIPT,
    Sign,
    command_of,
    detection,
    find_signs,
    install_of,
    known_tools,
    language_by_extension,
    serves,
)
from clew.tools.ignoring import NEVER_READ, TOOLS_OWN

MAX_TEXT = 500_000
"""Larger files count by their name only."""
MAX_LISTED, MAX_WALKED = 50, 5_000
SHORT_HASH = 10

_MANIFESTS = {
    "package.json": "javascript",
    "pyproject.toml": "python",
    "go.mod": "go",
    "Cargo.toml": "rust",
    "pom.xml": "java",
}
_BUILDS = frozenset(("pom.xml", "build.gradle", "build.gradle.kts"))
"""Builds that have modules in folders of their own, each with such a file."""
_LOCKS = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}
_OTHERS = NEVER_READ | TOOLS_OWN | frozenset(("vendor", "dist", "build", "target", "venv"))
_BINARIES = ("node_modules/.bin", ".venv/bin", "venv/bin", ".venv/Scripts", "venv/Scripts", "vendor/bin", "bin")


class ProjectFiles:
    """The files that may name tools for a target: those from its folder up to the root, nearest first, and those of
    the modules of a build. Paths are relative to the real root."""

    def __init__(self, root: str, target: str) -> None:
        self.root, self.target = root, target
        self.is_file = os.path.isfile(os.path.join(root, target))
        self._texts: dict[str, TextFile] = {}
        self.paths = list(self._list())

    def file(self, path: str) -> TextFile:
        """A file; one without text where it is too large, gone or not readable."""
        if path not in self._texts:
            content = read_content(self.root, path)
            body = content.body if content is not None and len(content.body) <= MAX_TEXT else b""
            self._texts[path] = TextFile(path, body.decode("utf-8-sig", "replace"))
        return self._texts[path]

    def place(self, path: str, line: int) -> str:
        """`path:line@blob`; without the line where that is 0."""
        content = read_content(self.root, path)
        blob = f"@{content.blob[:SHORT_HASH]}" if content is not None and content.blob else ""
        return f"{path}:{line}{blob}" if line else f"{path}{blob}"

    def fingerprint(self) -> dict[str, str]:
        """The content of each file: the id of its blob. Lock files count by their presence."""
        return {path: self._mark(path) for path in self.paths}

    def languages(self) -> list[str]:
        """The languages below the target by number of files, or else those of its manifests."""
        if self.is_file:
            return [found] if (found := language_by_extension(self.target)) else []
        counted = Counter(filter(None, map(language_by_extension, self._walk())))
        names = {path.rpartition("/")[2] for path in self.paths}
        by_manifest = [language for manifest, language in _MANIFESTS.items() if manifest in names]
        return sorted(counted, key=lambda language: (-counted[language], language)) or by_manifest

    def script_runner(self) -> str:
        """The program that runs the scripts of package.json."""
        names = [path.rpartition("/")[2] for path in self.paths]
        return next((_LOCKS[name] for name in names if name in _LOCKS), "npm")

    def _mark(self, path: str) -> str:
        content = None if path.rpartition("/")[2] in _LOCKS else read_content(self.root, path)
        if content is None:
            return ""
        return content.blob or f"{content.status.size} bytes at {content.status.mtime_ns}"

    def _list(self) -> Iterator[str]:
        folder = self.target.rpartition("/")[0] if self.is_file else self.target
        for level in (*_parents(folder), ""):
            names = _names(self.root, level)
            yield from (_join(level, name) for name in names if name in _wanted())
            for inner, endings in {**detection().ci_folders, **detection().ide_folders}.items():
                if inner.split("/")[0] in names:
                    place = _join(level, inner)
                    listed = (name for name in _names(self.root, place) if name.rpartition(".")[2] in endings)
                    yield from (_join(place, name) for name in islice(listed, MAX_LISTED))
        names = [] if self.is_file else _names(self.root, self.target)
        if _BUILDS.intersection(names):
            inner_paths = (_join(_join(self.target, name), file) for name in names for file in sorted(_BUILDS)
                           if name not in _OTHERS and not name.startswith("."))  # fmt: skip
            yield from islice(filter(self._is_module, inner_paths), MAX_LISTED)

    def _is_module(self, path: str) -> bool:
        place = os.path.join(self.root, path)
        return os.path.isfile(place) and not os.path.islink(os.path.dirname(place))

    def _walk(self) -> Iterator[str]:
        """Names of files, up to a limit, level by level; links are not followed."""
        waiting, left = [os.path.join(self.root, self.target)], MAX_WALKED
        for place in waiting:
            try:
                with os.scandir(place) as listed:
                    entries = sorted(islice(listed, left), key=lambda entry: entry.name)
            except OSError:
                continue
            left -= len(entries)
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    yield entry.name
                elif entry.name not in _OTHERS and entry.name[0] != "." and entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)


def _parents(folder: str) -> Iterator[str]:
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]


def _names(root: str, folder: str) -> list[str]:
    place = os.path.join(root, folder)
    try:
        return sorted(os.listdir(place)) if os.path.realpath(place) == os.path.normpath(place) else []
    except OSError:
        return []


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


@cache
def _wanted() -> frozenset[str]:
    known = detection()
    rules = {rule.file for rule in (*known.configs, *known.sections)}
    return frozenset((*rules, *_BUILDS, *_MANIFESTS, *_LOCKS, *known.scripts, *known.ci, *known.requirements))


# -- what is installed -----------------------------------------------------------------------------------------


def is_installed(root: str, tool: str, run_command: str = "") -> bool:
    """Whether the project or PATH has the program of a tool."""
    known = known_tools().get(tool)
    program = (known.binary or tool) if known else next(iter((run_command or tool).split()), "")
    if not program or "/" in program or "\\" in program:
        return False
    local = (os.path.join(root, folder, name) for folder in _BINARIES for name in (program, f"{program}.exe"))
    return any(map(os.path.isfile, local)) or shutil.which(program) is not None


def _installed_version(root: str, tool: str) -> str:
    known = known_tools().get(tool)
    package = (known.package if known else "") or tool
    found = find_npm(Path(root), package) or find_python(Path(root), package)
    return found.version if found and len(found.version) <= MAX_VERSION and found.version.isprintable() else ""


# -- the scan --------------------------------------------------------------------------------------------------


class Scan(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of one category. `open_languages` are those in question for which nothing is configured."""

    languages: tuple[str, ...]
    open_languages: tuple[str, ...]
    tools: tuple[DiscoveredTool, ...]
    confidence: Confidence

    def tools_for(self, language: str) -> tuple[DiscoveredTool, ...]:
        return tuple(tool for tool in self.tools if not language or serves(tool.language, language))


def scan_project(files: ProjectFiles, category: ToolCategory, named: Sequence[str] = ()) -> Scan:
    """Find the tools of a category. Every named language needs a configuration; without names one is enough, and the
    language of most files is in question."""
    if files.is_file and not named:
        named = files.languages()
    languages = tuple(dict.fromkeys(named)) or tuple(files.languages()[:1])
    found = _find(files, category, languages)
    if named:
        found = [each for each in found if any(serves(each.sign.language, language) for language in languages)]
    configured = [each.sign.language for each in found if each.sign.is_config]
    open_languages = tuple(language for language in languages if not any(serves(each, language) for each in configured))
    if configured and not named:
        open_languages = ()
    tools = tuple(_to_tool(files, category, each, found) for each in _choose(found, languages))
    is_high = bool(configured) and not open_languages
    confidence: Confidence = "high" if is_high else "medium" if tools else "low"
    return Scan(languages=languages, open_languages=open_languages, tools=tools, confidence=confidence)


class _Found(NamedTuple):
    path: str
    sign: Sign


def _find(files: ProjectFiles, category: ToolCategory, languages: Sequence[str]) -> list[_Found]:
    """The signs of a category in all files, by rank. A tool that a script runs is for the first language it serves."""
    found = []
    for path in files.paths:
        for sign in find_signs(files.file(path), files.script_runner()):
            if sign.category == category and sign.rank == SCRIPT:
                served = known_tools()[sign.tool].languages
                language = next((each for each in languages if each in served), served[0])
                found.append(_Found(path, sign._replace(language=language)))
            elif sign.category == category and sign.language:
                found.append(_Found(path, sign))
    return sorted(found, key=lambda each: each.sign.rank)


def _choose(found: Sequence[_Found], languages: Sequence[str]) -> list[_Found]:
    """The first sign of each tool, in the order of the languages. A configuration for a language displaces what is
    merely named for it; tools for any language come last and displace nothing."""
    settled = [each.language for _, each in found if each.is_config and each.language != ANY]
    chosen = dict[str, _Found]()
    for path, sign in found:
        is_out = not sign.is_config and any(serves(language, sign.language) for language in settled)
        if not is_out:
            chosen.setdefault(sign.tool, _Found(path, sign))

    def order(each: _Found) -> tuple[bool, int]:
        served = [number for number, language in enumerate(languages) if serves(each.sign.language, language)]
        return each.sign.language == ANY, min(served, default=len(languages))

    return sorted(chosen.values(), key=order)


def _to_tool(files: ProjectFiles, category: ToolCategory, first: _Found, found: Sequence[_Found]) -> DiscoveredTool:
    path, sign = first
    same = [each.sign for each in found if each.sign.tool == sign.tool]
    version = next((each.version for each in same if each.version), "")
    command = command_of(sign.tool, category, shlex.quote(files.target or "."))
    why = "configured" if sign.is_config else "named"
    return DiscoveredTool(
        name=sign.tool,
        category=category,
        language=sign.language,
        version=_installed_version(files.root, sign.tool) or version,
        config_path=path if sign.is_config else "",
        run_command=next((each.run for each in same if each.run), command),
        install_cmd=install_of(sign.tool, category, sign.language),
        is_installed=is_installed(files.root, sign.tool),
        source=sign.source,
        rationale=inline(f"{sign.tool} is {why} in {files.place(path, sign.line)}"),
    )
