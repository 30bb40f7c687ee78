"""The first tier of discovery: the tools that configurations, manifests, scripts, CI and editor settings of a project
name. Files are read without following links and up to a limit; nothing is run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from clew.catalog.text import inline
from clew.knowledge.code.blobs import read_content
from clew.knowledge.project.formats import TextFile
from clew.knowledge.project.manifests import reader_of
from clew.knowledge.project.packages import find_npm, find_python, parse_manifest
from clew.knowledge.project.scripts import script_reader_of
from clew.knowledge.project.tool_data import (
    ANY,
    PackageRule,
    command_of,
    detection,
    find_configured,
    install_of,
    known_tools,
    language_by_extension,
    serves,
    used_tools,
)
from clew.knowledge.project.tool_records import CATEGORIES, Confidence, DiscoveredTool, Source, ToolCategory
from clew.tools.ignoring import NEVER_READ, TOOLS_OWN

MAX_TEXT = 500_000
"""Larger files count by their name only."""
MAX_LISTED, MAX_WALKED, MAX_LINES = 50, 5_000, 5_000
MAX_VERSION = 60
SHORT_HASH = 10

_MANIFESTS = {
    "package.json": ("npm", "javascript"),
    "pyproject.toml": ("python", "python"),
    "go.mod": ("go", "go"),
    "Cargo.toml": ("rust", "rust"),
    "pom.xml": ("java", "java"),
}
"""The manifest that package rules name, with its ecosystem and language."""
_BUILDS = frozenset(("pom.xml", "build.gradle", "build.gradle.kts"))
"""Builds that have modules in folders of their own, each with such a file."""
_LOCKS = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}
_FOLDER_OPTION = {"npm": "--prefix", "pnpm": "--dir", "yarn": "--cwd", "bun": "--cwd", "make": "-C"}
_OTHERS = NEVER_READ | TOOLS_OWN | frozenset(("vendor", "dist", "build", "target", "venv"))
_BINARIES = ("node_modules/.bin", ".venv/bin", "venv/bin", ".venv/Scripts", "venv/Scripts", "vendor/bin", "bin")
_VERSION = re.compile(r"(?=.*\d)[\w.*^~<>=!|, +-]+")
_SCRIPT_NAME = re.compile(r"\w[\w:.-]{0,60}")


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

    def place(self, path: str, word: str) -> str:
        """`path:line@blob` of the first line with a word, headings first; without the line where no line has it."""
        content, lines = read_content(self.root, path), self.file(path).text.casefold().splitlines()
        blob = f"@{content.blob[:SHORT_HASH]}" if content is not None and content.blob else ""
        having = [(not line.startswith("["), number) for number, line in enumerate(lines, 1) if word.casefold() in line]
        return f"{path}:{min(having)[1]}{blob}" if having else f"{path}{blob}"

    def fingerprint(self) -> dict[str, str]:
        """The content of each file: the id of its blob. Lock files count by their presence."""
        return {path: self._mark(path) for path in self.paths}

    def languages(self) -> list[str]:
        """The languages below the target by number of files, or else those of its manifests."""
        if self.is_file:
            return [found] if (found := language_by_extension(self.target)) else []
        counted = Counter(filter(None, map(language_by_extension, self._walk())))
        names = {path.rpartition("/")[2] for path in self.paths}
        by_manifest = [language for manifest, (_, language) in _MANIFESTS.items() if manifest in names]
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


class Evidence(NamedTuple):
    """Something that speaks for a tool: a configuration by itself, all else by inference. `word` shows it in the file,
    where that is not the name of the tool."""

    tool: str
    language: str
    path: str
    is_config: bool
    source: Source
    version: str = ""
    run: str = ""
    word: str = ""


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
    found = list(_evidence(files, category, languages))
    if named:
        found = [each for each in found if any(serves(each.language, language) for language in languages)]
    configured = [each.language for each in found if each.is_config]
    open_languages = tuple(language for language in languages if not any(serves(each, language) for each in configured))
    if configured and not named:
        open_languages = ()
    tools = tuple(_to_tool(files, category, each, found) for each in _choose(found, languages))
    is_high = bool(configured) and not open_languages
    confidence: Confidence = "high" if is_high else "medium" if tools else "low"
    return Scan(languages=languages, open_languages=open_languages, tools=tools, confidence=confidence)


def _evidence(files: ProjectFiles, category: ToolCategory, languages: Sequence[str]) -> Iterator[Evidence]:
    for path in files.paths:
        for rule, _ in find_configured(files.file(path)):
            if rule.category == category and rule.language:
                yield Evidence(rule.tool, rule.language, path, True, "config_file")
    yield from _from_builds(files, category)
    yield from _from_packages(files, category, is_its_own=True)
    yield from _from_scripts(files, category, languages)
    yield from _from_packages(files, category, is_its_own=False)
    for path in files.paths:
        for text_rule in detection().ide if _is_below(path, detection().ide_folders) else ():
            if text_rule.category == category and text_rule.text in files.file(path).text:
                yield Evidence(text_rule.tool, text_rule.language, path, False, "config_file")


def _from_builds(files: ProjectFiles, category: ToolCategory) -> Iterator[Evidence]:
    for path in files.paths:
        name = path.rpartition("/")[2]
        for rule in detection().builds:
            if rule.category == category and name in rule.files and rule.text in files.file(path).text:
                source: Source = "config_file" if rule.is_config else "package_manifest"
                yield Evidence(rule.tool, rule.language, path, rule.is_config, source, run=rule.run, word=rule.text)


def _from_packages(files: ProjectFiles, category: ToolCategory, *, is_its_own: bool) -> Iterator[Evidence]:
    """Packages that are the tool itself, or else those that are used with it: their version is not the tool's."""
    rules = [rule for rule in detection().packages if rule.category == category and _is_its_own(rule) == is_its_own]
    for path in files.paths:
        for given in parse_manifest(path, files.file(path).text).packages:
            for rule in rules:
                is_it = given.name == rule.package or given.name.startswith(f"{rule.package}/")
                if is_it and given.ecosystem == _MANIFESTS[rule.manifest][0]:
                    version = given.version if is_its_own and len(given.version) <= MAX_VERSION else ""
                    shown, word = (version if _VERSION.fullmatch(version) else ""), "" if is_its_own else given.name
                    yield Evidence(rule.tool, rule.language, path, False, "package_manifest", shown, word=word)


def _is_its_own(rule: PackageRule) -> bool:
    known = known_tools().get(rule.tool)
    name = re.split(r"[/:]", rule.package)[-1]
    is_named = name == rule.tool or name.startswith(f"{rule.tool}-")
    return is_named or (known is not None and known.package == rule.package)


def _from_scripts(files: ProjectFiles, category: ToolCategory, languages: Sequence[str]) -> Iterator[Evidence]:
    for path in files.paths:
        scripts = list(_scripts(files, path))
        mixed = {run for run, line in scripts if run and _does_more(line, category)}
        for run, line in scripts:
            source: Source = "package_manifest" if run else "config_file"
            for tool in used_tools(line, category):
                served = known_tools()[tool].languages
                language = next((each for each in languages if each in served), served[0])
                yield Evidence(tool, language, path, False, source, run="" if run in mixed else run)


def _scripts(files: ProjectFiles, path: str) -> Iterator[tuple[str, str]]:
    """The lines of a file that somebody runs, each with the command that runs it, if it has a name."""
    folder, _, name = path.rpartition("/")
    known = detection()
    read = reader_of(path) if name == "package.json" else script_reader_of(path)
    program = files.script_runner() if name == "package.json" else "make"
    if name == "package.json" or name.lower() in ("makefile", "gnumakefile"):
        start = f"{program} {_FOLDER_OPTION[program]} {shlex.quote(folder)}" if folder else program
        for each in read(files.file(path)) if read else ():
            if each.kind == "script" and _SCRIPT_NAME.fullmatch(each.name):
                run = f"{start}{' run' if name == 'package.json' else ''} {each.name}"
                yield from ((run, line) for line in each.value.split("\n"))
    elif name in (*known.scripts, *known.ci) or _is_below(path, known.ci_folders):
        lines = files.file(path).lines[:MAX_LINES]
        yield from (("", line) for line in lines if not line.lstrip().startswith("#"))


def _does_more(line: str, category: ToolCategory) -> bool:
    """Whether a line also runs tools of other categories: its script is not the way to run this one alone."""
    here = set(used_tools(line, category).values())
    others = {shown for other in CATEGORIES if other != category for shown in used_tools(line, other).values()}
    return not others <= here


def _is_below(path: str, folders: Iterable[str]) -> bool:
    place = f"/{path.rpartition('/')[0]}"
    return any(place.endswith(f"/{folder}") for folder in folders)


def _choose(found: Sequence[Evidence], languages: Sequence[str]) -> list[Evidence]:
    """The first evidence for each tool, in the order of the languages. A configuration for a language displaces what
    is merely inferred for it; tools for any language come last and displace nothing."""
    settled = [each.language for each in found if each.is_config and each.language != ANY]
    chosen = dict[str, Evidence]()
    for each in found:
        is_out = not each.is_config and any(serves(language, each.language) for language in settled)
        if each.tool not in chosen and not is_out:
            chosen[each.tool] = each

    def order(each: Evidence) -> tuple[bool, int]:
        served = [number for number, language in enumerate(languages) if serves(each.language, language)]
        return each.language == ANY, min(served, default=len(languages))

    return sorted(chosen.values(), key=order)


def _to_tool(files: ProjectFiles, category: ToolCategory, first: Evidence, found: Sequence[Evidence]) -> DiscoveredTool:
    same = [each for each in found if each.tool == first.tool]
    version = next((each.version for each in same if each.version), "")
    command = command_of(first.tool, category, shlex.quote(files.target or "."))
    why = "configured" if first.is_config else "named"
    return DiscoveredTool(
        name=first.tool,
        category=category,
        language=first.language,
        version=_installed_version(files.root, first.tool) or version,
        config_path=first.path if first.is_config else "",
        run_command=next((each.run for each in same if each.run), command),
        install_cmd=install_of(first.tool, category, first.language),
        is_installed=is_installed(files.root, first.tool),
        source=first.source,
        rationale=inline(f"{first.tool} is {why} in {files.place(first.path, first.word or first.tool)}"),
    )
