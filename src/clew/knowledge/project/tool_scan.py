"""The first tier of discovery: the tools that configurations, manifests, scripts, CI and editor settings of a project
name. Files are read without following links and up to a limit; nothing is run."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

import msgspec

from clew.catalog.operations.text import inline
from clew.knowledge.code.file_content import read_content
from clew.knowledge.project.formats import ManifestFile, parse
from clew.knowledge.project.manifests import Statement, parse_manifest, reader_of
from clew.knowledge.project.tools import (
    CATEGORIES,
    Confidence,
    DiscoveredTool,
    KnownTool,
    Source,
    ToolCategory,
    install_of,
    known_tools,
    language_by_extension,
)
from clew.tools.search.gitignore import NEVER_READ, TOOLS_OWN

MAX_TEXT = 500_000
"""Larger files count by their name only."""
MAX_LISTED, MAX_WALKED = 50, 20_000
MAX_LINE, MAX_VERSION = 2_000, 60
SHORT_HASH = 10
CONFIG, PACKAGE, SCRIPT, COMPANION, EDITOR = range(5)
"""Ranks of signs. A companion is a package that is used with a tool: its version is not the tool's."""

_ECOSYSTEMS = ("npm", "python", "go", "rust", "java")
_FOLDER_OPTION = {"npm": "--prefix", "pnpm": "--dir", "yarn": "--cwd", "bun": "--cwd", "make": "-C"}
_VERSION = re.compile(r"(?=.*\d)[\w.*^~<>=!|, +-]+")
_SCRIPT_NAME = re.compile(r"\w[\w:.-]{0,60}")
_EDITOR_FILE = re.compile(r"(?:.*/)?(?:\.vscode/[^/]+\.json|\.idea/[^/]+\.xml)")
_FOLDERS = ("", ".github/workflows", ".circleci", ".config", ".vscode", ".idea")
_LOCKS = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}
_OTHERS = NEVER_READ | TOOLS_OWN | frozenset(("vendor", "dist", "build", "target", "venv"))
_BINARIES = ("node_modules/.bin", ".venv/bin", "venv/bin", ".venv/Scripts", "venv/Scripts", "vendor/bin", "bin")


# -- signs in a file -------------------------------------------------------------------------------------------


class Sign(NamedTuple):
    """A sign of a tool at a line of a file, or 0 for the file as a whole. One of rank CONFIG proves the tool, the
    others only name it. `run` is the command of the project that runs the tool alone."""

    path: str
    rank: int
    tool: str
    category: str
    line: int = 0
    version: str = ""
    run: str = ""

    @property
    def source(self) -> Source:
        return "config_file" if self.rank in (CONFIG, EDITOR) else "package_manifest"


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
            yield Sign(file.path, CONFIG, rule.tool, rule.category, line, run=run)


def find_signs(file: ManifestFile, runner: str = "npm") -> Iterator[Sign]:
    """All signs in a file; `runner` runs the scripts of package.json."""
    yield from find_configured(file)
    yield from _find_packages(file)
    yield from _find_scripts(file, runner)
    for rule in sign_rules()["editor"] if _EDITOR_FILE.fullmatch(file.path) else ():
        if (line := _find_part(file, rule.part, is_text=True)) is not None:
            yield Sign(file.path, EDITOR, rule.tool, rule.category, line)


def used_tools(line: str, category: ToolCategory) -> dict[str, str]:
    """The tools of a category that a line of a script runs, each with the pattern that shows it."""
    line = line[:MAX_LINE]
    if not _pattern("|".join(_shown(category).values())).search(line):
        return {}
    return {tool: words for tool, words in _shown(category).items() if _pattern(words).search(line)}


def _find_part(file: ManifestFile, part: str, is_text: bool = False) -> int | None:
    """The line of a section, or of a text in a file that has none; 0 for the file as a whole."""
    if not part:
        return 0
    if not is_text and file.name.endswith((".toml", ".json", ".cfg", ".ini")):
        parsed = parse(file)
        return next((parsed.span(keys)[0] for keys, _ in parsed.select(part)), None)
    at = file.text.find(part)
    return file.line_at(at) if at >= 0 else None


def _find_packages(file: ManifestFile) -> Iterator[Sign]:
    for given in parse_manifest(file.path, file.text).packages:
        parts = given.name.split("/")  # a package of Go may be a folder of the one that is known
        names = ["/".join(parts[:end]) for end in range(len(parts), 0, -1)]
        for rule in (rule for name in names for rule in sign_rules().get(f"{given.ecosystem}:{name}", ())):
            known, bare = known_tools()[rule.tool], re.split(r"[/:]", rule.path)[-1]
            is_own = bare.startswith(rule.tool) or rule.path.endswith(f":{known.package}")
            fits = is_own and len(given.version) <= MAX_VERSION and _VERSION.fullmatch(given.version)
            rank, line = PACKAGE if is_own else COMPANION, int(given.source.rpartition(":")[2])
            version, run = given.version if fits else "", known.run_in.get(file.name, "")
            yield Sign(file.path, rank, rule.tool, rule.category, line, version, run)


def _find_scripts(file: ManifestFile, runner: str) -> Iterator[Sign]:
    read = reader_of(file.path)
    for each in read(file) if read else ():
        if each.kind != "script" and each.group != "pre-commit hook":
            continue
        lines = each.value.split("\n") if each.kind == "script" else [f"id: {each.name}"]
        used = [
            (each.end - len(lines) + 1 + at, category, tool, words)
            for at, line in enumerate(lines)
            for category in CATEGORIES
            for tool, words in used_tools(line, category).items()
        ]
        for line, category, tool, _ in used:
            own = {words for _, other, _, words in used if other == category}
            runs_more = any(words not in own for *_, words in used)
            run = "" if runs_more else _run_command(file, each, runner)
            yield Sign(file.path, SCRIPT, tool, category, line, run=run)


def _run_command(file: ManifestFile, script: Statement, runner: str) -> str:
    """The command that runs a script of package.json or make; empty for others."""
    program = {"npm run": runner, "make": "make"}.get(script.group, "")
    if not program or not _SCRIPT_NAME.fullmatch(script.name):
        return ""
    folder = file.path.rpartition("/")[0]
    start = f"{program} {_FOLDER_OPTION[program]} {shlex.quote(folder)}" if folder else program
    return f"{start} {script.name}" if program == "make" else f"{start} run {script.name}"


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

    def texts(self) -> list[ManifestFile]:
        """The files; one that is too large or not readable has no text."""
        bodies = ((path, each.body if len(each.body) <= MAX_TEXT else b"") for path, each in self.contents.items())
        return [ManifestFile(path, body.decode("utf-8-sig", "replace")) for path, body in bodies]

    def place(self, path: str, line: int) -> str:
        """`path:line@blob`; without the line where that is 0."""
        blob = self.contents[path].blob
        return f"{path}{f':{line}' if line else ''}{f'@{blob[:SHORT_HASH]}' if blob else ''}"

    def fingerprint(self) -> dict[str, str]:
        """The content of each file: the id of its blob. Lock files count by their presence."""
        marks = {path: each.blob or f"{each.status.size} bytes" for path, each in self.contents.items()}
        return {path: "" if path.rpartition("/")[2] in _LOCKS else mark for path, mark in marks.items()}

    def languages(self) -> list[str]:
        """The languages below the target, that of most files first."""
        names = [self.target] if self.is_file else islice(self._walk(), MAX_WALKED)
        counted = Counter(filter(None, map(language_by_extension, names)))
        return sorted(counted, key=lambda language: (-counted[language], language))

    def script_runner(self) -> str:
        """The program that runs the scripts of package.json."""
        names = [path.rpartition("/")[2] for path in self.contents]
        return next((_LOCKS[name] for name in names if name in _LOCKS), "npm")

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
    """The names in a folder, sorted; none where it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _may_name_tools(path: str) -> bool:
    name = path.rpartition("/")[2]
    is_known = name in sign_rules() or name in _LOCKS
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
    """The tools of one category. `open_language` is the first in question for which nothing is configured."""

    open_language: str
    tools: tuple[DiscoveredTool, ...]
    confidence: Confidence


def scan_project(files: ProjectFiles, category: ToolCategory, named: Sequence[str] = ()) -> Scan:
    """Find the tools of a category. Every named language needs a configuration; without names one is enough, and the
    language of most files is in question."""
    if files.is_file and not named:
        named = files.languages()
    languages = tuple(dict.fromkeys(named)) or tuple(files.languages()[:1])
    found = [sign for file in files.texts() for sign in find_signs(file, files.script_runner())]
    signs = [sign for sign in found if sign.category == category and known_tools()[sign.tool].languages]
    if named:
        signs = [sign for sign in signs if any(map(known_tools()[sign.tool].serves, languages))]
    signs.sort(key=lambda sign: sign.rank)
    configured = [known_tools()[sign.tool] for sign in signs if sign.rank == CONFIG]
    is_enough = bool(configured) and not named
    missing = [each for each in languages if not is_enough and not any(tool.serves(each) for tool in configured)]
    tools = tuple(_to_tool(files, category, sign, signs, languages) for sign in _choose(signs, languages))
    confidence: Confidence = "high" if configured and not missing else "medium" if tools else "low"
    return Scan(open_language=next(iter(missing), ""), tools=tools, confidence=confidence)


def _language(tool: str, languages: Sequence[str]) -> str:
    """The first language in question that a tool serves, or else its first."""
    served = known_tools()[tool].languages
    return next((each for each in languages if each in served), served[0])


def _choose(signs: Sequence[Sign], languages: Sequence[str]) -> list[Sign]:
    """The first sign of each tool, in the order of the languages. A configuration for a language displaces tools that
    are only named for it; tools for any language come last and displace nothing."""
    configured = {_language(sign.tool, languages) for sign in signs if sign.rank == CONFIG} - {"*"}
    chosen = dict[str, Sign]()
    for sign in signs:
        if sign.rank == CONFIG or _language(sign.tool, languages) not in configured:
            chosen.setdefault(sign.tool, sign)
    order = {language: at for at, language in enumerate((*languages, "", "*"))}
    return sorted(chosen.values(), key=lambda sign: order.get(_language(sign.tool, languages), order[""]))


def _to_tool(
    files: ProjectFiles, category: ToolCategory, sign: Sign, signs: Sequence[Sign], languages: Sequence[str]
) -> DiscoveredTool:
    same = [each for each in signs if each.tool == sign.tool]
    tool = describe_tool(files.root, sign.tool, category, _language(sign.tool, languages), files.target)
    is_config = sign.rank == CONFIG
    why = "configured" if is_config else "named"
    return msgspec.structs.replace(
        tool,
        version=next((each.version for each in same if each.version), ""),
        config_path=sign.path if is_config else "",
        run_command=next((each.run for each in same if each.run), tool.run_command),
        source=sign.source,
        rationale=inline(f"{sign.tool} is {why} in {files.place(sign.path, sign.line)}"),
    )
