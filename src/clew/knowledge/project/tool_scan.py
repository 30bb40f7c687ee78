"""The first tier of discovery: the tools that configurations, manifests, scripts, CI and editor settings of a project
name. Files are read without following links and up to a limit; nothing is run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from clew.catalog.operations.text import inline
from clew.knowledge.code.file_content import read_content
from clew.knowledge.project.formats import ManifestFile, parse
from clew.knowledge.project.manifests import Statement, ecosystem_of, reader_of
from clew.knowledge.project.tools import (
    CATEGORIES,
    Confidence,
    DiscoveredTool,
    KnownTool,
    Source,
    ToolCategory,
    default_toolsets,
    file_globs,
    install_of,
    known_tools,
    language_by_extension,
)
from clew.lazy_pattern import lazy_pattern
from clew.tools.search.gitignore import NEVER_READ, TOOLS_OWN

MAX_TEXT = 500_000
"""Larger files count by their name only."""
MAX_LISTED, MAX_WALKED = 50, 20_000
MAX_LINE, MAX_VERSION = 2_000, 60

_ECOSYSTEMS = ("npm", "python", "go", "rust", "java")
_VERSION = lazy_pattern(r"(?=.*\d)[\w.*^~<>=!|, +-]+")
_EDITOR_FILE = lazy_pattern(r"(?:.*/)?(?:\.vscode/[^/]+\.json|\.idea/[^/]+\.xml)")
_FOLDERS = ("", ".github/workflows", ".circleci", ".config", ".vscode", ".idea")
_OTHERS = NEVER_READ | TOOLS_OWN | frozenset(("vendor", "dist", "build", "target", "venv"))
_BINARIES = ("node_modules/.bin", ".venv/bin", "venv/bin", ".venv/Scripts", "venv/Scripts", "vendor/bin", "bin")


# -- signs in a file -------------------------------------------------------------------------------------------


class Sign(NamedTuple):
    """A sign of a tool at a line of a file, or 0 for the file as a whole. A configuration proves the tool, other signs
    only name it. `run` is the command of the build that runs it."""

    path: str
    tool: str
    category: str
    line: int = 0
    version: str = ""
    run: str = ""
    is_config: bool = False
    source: Source = "package_manifest"


class _ToolRule(NamedTuple):
    tool: str
    category: str
    path: str
    part: str


@cache
def sign_rules() -> dict[str, list[_ToolRule]]:
    """The signs of all tools, by the name of a file, by `ecosystem:package`, and by `editor`."""
    found: dict[str, list[_ToolRule]] = {}
    signs = ((tool, *each) for tool, known in known_tools().items() for each in known.signs.items())
    for tool, category, sign in ((tool, category, sign) for tool, category, listed in signs for sign in listed):
        prefix, _, rest = sign.partition(":")
        path, _, part = ("", "", rest) if prefix == "editor" else sign.partition("#")
        key = prefix if prefix == "editor" else sign if prefix in _ECOSYSTEMS else path.rpartition("/")[2]
        found.setdefault(key, []).append(_ToolRule(tool, category, path, part))
    return found


def find_configured(file: ManifestFile) -> Iterator[Sign]:
    """The signs in configurations and builds."""
    for rule in sign_rules().get(file.name, ()):
        line = _find_part(file, rule.part) if f"/{file.path}".endswith(f"/{rule.path}") else None
        if line is not None:
            run = known_tools()[rule.tool].run_in.get(file.name, "")
            yield Sign(file.path, rule.tool, rule.category, line, run=run, is_config=True, source="config_file")


def find_signs(file: ManifestFile) -> Iterator[Sign]:
    """All signs in a file: configurations, then packages, then scripts and settings of editors."""
    yield from find_configured(file)
    read = reader_of(file.path)
    stated = list(read(file)) if read else []
    for each in stated:
        if each.kind == "dependency":
            yield from _find_package(file, each)
    for each in stated:
        if each.kind == "script" or each.group == "pre-commit hook":
            yield from _find_in_script(file, each)
    for rule in sign_rules()["editor"] if _EDITOR_FILE.fullmatch(file.path) else ():
        if (line := _find_part(file, rule.part, is_text=True)) is not None:
            yield Sign(file.path, rule.tool, rule.category, line, source="config_file")


def used_tools(line: str, category: ToolCategory) -> list[str]:
    """The tools of a category that a line of a script runs."""
    line = line[:MAX_LINE]
    if not _pattern("|".join(_shown(category).values())).search(line):
        return []
    return [tool for tool, words in _shown(category).items() if _pattern(words).search(line)]


def _find_part(file: ManifestFile, part: str, is_text: bool = False) -> int | None:
    """The line of a section, or of a text in a file that has none; 0 for the file as a whole."""
    if not part:
        return 0
    if not is_text and file.name.endswith((".toml", ".json", ".cfg", ".ini")):
        parsed = parse(file)
        return next((parsed.span(keys)[0] for keys, _ in parsed.select(part)), None)
    at = file.text.find(part)
    return file.line_at(at) if at >= 0 else None


def _find_package(file: ManifestFile, stated: Statement) -> Iterator[Sign]:
    """The tools that a package contains or belongs to. Only the tool's own package gives its version."""
    parts = stated.name.split("/")  # a package of Go may be a folder of the one that is known
    names = ["/".join(parts[:end]) for end in range(len(parts), 0, -1)]
    for rule in (rule for name in names for rule in sign_rules().get(f"{ecosystem_of(file.path)}:{name}", ())):
        known, bare = known_tools()[rule.tool], re.split(r"[/:]", rule.path)[-1]
        is_own = bare.startswith(rule.tool) or rule.path.endswith(f":{known.package}")
        fits = is_own and len(stated.value) <= MAX_VERSION and _VERSION.fullmatch(stated.value)
        version, run = stated.value if fits else "", known.run_in.get(file.name, "")
        yield Sign(file.path, rule.tool, rule.category, stated.start, version, run)


def _find_in_script(file: ManifestFile, stated: Statement) -> Iterator[Sign]:
    lines = stated.value.split("\n") if stated.kind == "script" else [f"id: {stated.name}"]
    for number, line in enumerate(lines, stated.end - len(lines) + 1):
        for category in CATEGORIES:
            for tool in used_tools(line, category):
                yield Sign(file.path, tool, category, number)


@cache
def _shown(category: ToolCategory) -> dict[str, str]:
    """A pattern for each tool: its command up to the first option, or the one of the data."""
    found = {}
    for name, known in known_tools().items():
        if category in known.run:
            words = known.run[category].removeprefix("npx ").split()
            end = next((at for at, word in enumerate(words) if word[0] in "-{./@"), len(words))
            shown = known.seen.get(category) or (" ".join(words[:end]),)
            found[name] = "|".join(r"[ \t]+".join(map(re.escape, each.split())) for each in shown)
    return found


@cache
def _pattern(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w@-])(?:{words})(?![\w-])")


# -- files of a project ----------------------------------------------------------------------------------------


class ProjectFiles:
    """The files that may name tools for a target: those from its folder up to the root, nearest first. Paths are
    relative to the real root."""

    def __init__(self, root: str, target: str) -> None:
        self.root, self.target = root, target
        self.is_file = os.path.isfile(os.path.join(root, target))
        found = ((path, read_content(root, path)) for path in self._list())
        self.contents = {path: content for path, content in found if content is not None}

    @cached_property
    def texts(self) -> list[ManifestFile]:
        """The files; one that is too large or not readable has no text."""
        bodies = ((path, each.body if len(each.body) <= MAX_TEXT else b"") for path, each in self.contents.items())
        return [ManifestFile(path, body.decode("utf-8-sig", "replace")) for path, body in bodies]

    @cached_property
    def signs(self) -> list[Sign]:
        """The signs of tools in all files."""
        return [sign for file in self.texts for sign in find_signs(file)]

    @cached_property
    def scripts(self) -> dict[str, tuple[str, str]]:
        """The command of each script of a manifest or build file, and where it is, by the name of the script."""
        found: dict[str, tuple[str, str]] = {}
        for file in self.texts:
            read = reader_of(file.path)
            for each in read(file) if read else ():
                if each.kind == "script" and each.group not in ("CI", "tox"):
                    found.setdefault(each.name, (f"{each.group} {each.name}", f"named in {file.path}:{each.start}"))
        return found

    def fingerprint(self) -> dict[str, str]:
        """The content of each file: the id of its blob."""
        return {path: each.blob or f"{each.status.size} bytes" for path, each in self.contents.items()}

    def languages(self) -> list[str]:
        """The languages below the target, that of most files first."""
        names = [self.target] if self.is_file else islice(self._walk(), MAX_WALKED)
        counted = Counter(filter(None, map(language_by_extension, names)))
        return sorted(counted, key=lambda language: (-counted[language], language))

    def _list(self) -> Iterator[str]:
        level = self.target.rpartition("/")[0] if self.is_file else self.target
        while True:
            for place in (os.path.join(level, folder) for folder in _FOLDERS):
                real = os.path.normpath(os.path.join(self.root, place))
                is_own = os.path.realpath(real) == real  # no link leads out of the project
                paths = (os.path.join(place, name) for name in (_list_names(real) if is_own else ()))
                yield from islice(filter(_may_name_tools, paths), MAX_LISTED)
            if not level:
                return
            level = level.rpartition("/")[0]

    def _walk(self) -> Iterator[str]:
        """Names of files; links are not followed."""
        for _, folders, names in os.walk(os.path.join(self.root, self.target)):
            folders[:] = sorted(name for name in folders if name not in _OTHERS and name[0] != ".")
            yield from names


def _list_names(folder: str) -> list[str]:
    """The names in a folder, sorted; empty if it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _may_name_tools(path: str) -> bool:
    is_known = path.rpartition("/")[2] in sign_rules()
    return is_known or _EDITOR_FILE.fullmatch(path) is not None or reader_of(path) is not None


def is_installed(root: str, tool: str, run_command: str = "") -> bool:
    """Whether the project or PATH has the program of a tool."""
    known = known_tools().get(tool)
    program = (known.binary or tool) if known else next(iter((run_command or tool).split()), "")
    if not program or "/" in program or "\\" in program:
        return False
    local = (os.path.join(root, folder, name) for folder in _BINARIES for name in (program, f"{program}.exe"))
    return any(map(os.path.isfile, local)) or shutil.which(program) is not None


def describe_tool(root: str, name: str, category: ToolCategory, language: str, target: str) -> DiscoveredTool:
    """A tool as the table knows it, with its command for a target. An unknown tool is run by its name."""
    known = known_tools().get(name, KnownTool())
    command = known.run.get(category, name).replace("{path}", shlex.quote(target or "."))
    return DiscoveredTool(
        name=name,
        category=category,
        language=language or next(iter(known.languages), ""),
        run_command=command,
        install_cmd=install_of(name, language),
        is_installed=is_installed(root, name, command),
    )


# -- the scan --------------------------------------------------------------------------------------------------


class Scan(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of one category. `open_language` is the language in question if nothing is configured."""

    open_language: str
    tools: tuple[DiscoveredTool, ...]
    confidence: Confidence


def scan_project(files: ProjectFiles, category: ToolCategory, named: Sequence[str] = ()) -> Scan:
    """Find the tools of a category, for the named languages or for all. Configured tools replace others. If no tool is
    configured, the first named language, or the language of most files, stays in question (`open_language`). Tools for
    one language come before tools for any."""
    languages = tuple(named) or tuple(files.languages()[:1])
    wanted = languages if named or files.is_file else ()
    signs = [sign for sign in files.signs if sign.category == category and _serves(sign.tool, wanted)]
    configured = [sign for sign in signs if sign.is_config]
    is_enough = any("*" not in known_tools()[sign.tool].languages for sign in configured)
    chosen: dict[str, Sign] = {}
    for sign in configured if is_enough else (*configured, *signs):
        chosen.setdefault(sign.tool, sign)
    ordered = sorted(chosen.values(), key=lambda sign: "*" in known_tools()[sign.tool].languages)
    tools = tuple(_to_tool(files, category, signs, sign, languages) for sign in ordered)
    confidence: Confidence = "high" if configured else "medium" if tools else "low"
    return Scan(open_language="".join(languages[:1]), tools=tools, confidence=confidence)


def _serves(tool: str, languages: Sequence[str]) -> bool:
    """Whether a tool serves one of the languages, or any if there are none."""
    known = known_tools()[tool]
    return any(map(known.serves, languages)) if languages else bool(known.languages)


def _language(tool: str, languages: Sequence[str]) -> str:
    """The first language in question that a tool serves, or else its first."""
    served = known_tools()[tool].languages
    return next((each for each in languages if each in served), served[0])


def _to_tool(
    files: ProjectFiles, category: ToolCategory, signs: Sequence[Sign], sign: Sign, languages: Sequence[str]
) -> DiscoveredTool:
    same = [each for each in signs if each.tool == sign.tool]
    tool = describe_tool(files.root, sign.tool, category, _language(sign.tool, languages), files.target)
    place = f"{sign.path}:{sign.line}" if sign.line else sign.path
    return msgspec.structs.replace(
        tool,
        version=next((each.version for each in same if each.version), ""),
        config_path=sign.path if sign.is_config else "",
        run_command=next((each.run for each in same if each.run), tool.run_command),
        source=sign.source,
        rationale=inline(f"{sign.tool} is {'configured' if sign.is_config else 'named'} in {place}"),
    )


# -- the tools of a folder -------------------------------------------------------------------------------------

ToolKind = Literal["lint", "format", "types", "test"]
_KINDS: dict[ToolKind, tuple[ToolCategory, tuple[str, ...]]] = {
    "lint": ("linter", ("lint",)),
    "format": ("formatter", ("format", "fmt")),
    "types": ("type_checker", ("types", "typecheck")),
    "test": ("test_framework", ("test", "tests")),
}
"""The category of each kind of tool, and the names that scripts of this kind have."""


class ProjectTool(NamedTuple):
    """A tool of a project. `files` are globs of the files that it is for; `reason` says which file names it, or that it
    is the usual one of the language."""

    kind: ToolKind
    name: str
    command: str
    files: tuple[str, ...]
    reason: str


def find_project_tools(folder: str | Path) -> list[ProjectTool]:
    """The linters, formatters, type checkers and test commands of a folder: those that it configures, or names in its
    manifests, scripts and CI, else a script of this name, else the usual one. Reads files, and runs nothing."""
    files = ProjectFiles(os.path.realpath(folder), "")
    return [tool for kind in _KINDS for tool in _find_kind(files, kind)]


def _find_kind(files: ProjectFiles, kind: ToolKind) -> list[ProjectTool]:
    category, names = _KINDS[kind]
    scan = scan_project(files, category)
    for name in () if scan.tools else names:
        if script := files.scripts.get(name):
            return [ProjectTool(kind, name, script[0], ("*",), script[1])]
    usual = default_toolsets().get(scan.open_language, {}).get(category, "")
    if not scan.tools and usual:
        tool = describe_tool(files.root, usual, category, scan.open_language, "")
        return [ProjectTool(kind, usual, tool.run_command, file_globs(usual), f"usual for {tool.language}")]
    return [
        ProjectTool(kind, each.name, each.run_command, file_globs(each.name), each.rationale) for each in scan.tools
    ]
