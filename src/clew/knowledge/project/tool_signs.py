"""Development tools: the data on them, and their signs in the files of a project, which are configurations, builds,
packages, scripts and editor settings. The tables are the JSON files in `data`, read once when first needed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

import msgspec

from clew.knowledge.project.formats import TextFile, load_table, parse
from clew.knowledge.project.manifests import reader_of
from clew.knowledge.project.packages import parse_manifest
from clew.knowledge.project.scripts import read_targets
from clew.knowledge.project.tool_records import CATEGORIES, Source, ToolCategory

ANY = "*"
MAX_LINE, MAX_LINES = 2_000, 5_000
MAX_VERSION = 60
CONFIG, BUILD, PACKAGE, SCRIPT, COMPANION, EDITOR = range(6)
"""Ranks of signs. A companion is a package that is used with a tool: its version is not the tool's."""

_MANIFESTS = {
    "npm": "package.json",
    "python": "pyproject.toml",
    "go": "go.mod",
    "rust": "Cargo.toml",
    "java": "pom.xml",
}
_FOLDER_OPTION = {"npm": "--prefix", "pnpm": "--dir", "yarn": "--cwd", "bun": "--cwd", "make": "-C"}
_VERSION = re.compile(r"(?=.*\d)[\w.*^~<>=!|, +-]+")
_SCRIPT_NAME = re.compile(r"\w[\w:.-]{0,60}")


class ToolRule(msgspec.Struct, frozen=True, kw_only=True):
    """A sign of a tool: a configuration file, or a section of it; a package that a manifest names; or a text in the
    files of a build, which runs the tool, or in the settings of an editor."""

    tool: str
    category: str
    language: str = ""
    file: str = ""
    section: str = ""
    manifest: str = ""
    package: str = ""
    files: tuple[str, ...] = ()
    text: str = ""
    run: str = ""
    is_config: bool = True


class Detection(msgspec.Struct, frozen=True, kw_only=True):
    """The rules on signs. `configs` are files that configure one tool, `sections` parts of shared files, `others` both
    for tools that discovery does not offer; `*_folders` give the endings of the files that count there."""

    configs: tuple[ToolRule, ...]
    sections: tuple[ToolRule, ...]
    others: tuple[ToolRule, ...]
    packages: tuple[ToolRule, ...]
    builds: tuple[ToolRule, ...]
    ide: tuple[ToolRule, ...]
    scripts: tuple[str, ...]
    ci: tuple[str, ...]
    ci_folders: dict[str, tuple[str, ...]]
    ide_folders: dict[str, tuple[str, ...]]
    requirements: tuple[str, ...]


class KnownTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool with its command for each category; `seen` is what shows in a script that it is used."""

    languages: tuple[str, ...]
    run: dict[ToolCategory, str]
    install_cmd: str = ""
    binary: str = ""
    package: str = ""
    seen: dict[ToolCategory, tuple[str, ...]] = {}
    pros: tuple[str, ...] = ()
    cons: tuple[str, ...] = ()


class ToolDefault(msgspec.Struct, frozen=True, kw_only=True):
    """The usual tool of a category, without a name where a language has none. One without an install command comes
    with the language or its build."""

    name: str
    install_cmd: str


class LanguageToolset(msgspec.Struct, frozen=True, kw_only=True):
    package_manager: str
    linter: ToolDefault
    formatter: ToolDefault
    type_checker: ToolDefault
    lsp: ToolDefault
    test_framework: ToolDefault

    def default(self, category: ToolCategory) -> ToolDefault:
        found: ToolDefault = getattr(self, category)
        return found


class _Tools(msgspec.Struct, frozen=True):
    tools: dict[str, KnownTool]


class _Toolsets(msgspec.Struct, frozen=True):
    toolsets: dict[str, LanguageToolset]
    extensions: dict[str, str]
    aliases: dict[str, str]
    covers: dict[str, tuple[str, ...]]


@cache
def detection() -> Detection:
    return load_table("detection.json", Detection)


@cache
def known_tools() -> dict[str, KnownTool]:
    return load_table("tools.json", _Tools).tools


@cache
def _languages() -> _Toolsets:
    return load_table("toolsets.json", _Toolsets)


def default_toolsets() -> dict[str, LanguageToolset]:
    """The default toolset of each language."""
    return _languages().toolsets


def normal_language(name: str) -> str:
    """The one spelling of a language: `py` and `Python` are python."""
    plain = name.strip().lower()
    return _languages().aliases.get(plain, plain)


def language_by_extension(name: str) -> str:
    """The language of a file by the end of its name, or empty."""
    return _languages().extensions.get(name.rpartition(".")[2].lower(), "") if "." in name else ""


def serves(rule_language: str, language: str) -> bool:
    """Whether a tool of one language is of use for another: those of JavaScript are for TypeScript."""
    return rule_language in (ANY, language) or language in _languages().covers.get(rule_language, ())


def command_of(tool: str, category: ToolCategory, path: str = ".") -> str:
    """The command that runs a tool on a path, which is quoted already; the name of a tool that is not known."""
    known = known_tools().get(tool)
    return known.run[category].replace("{path}", path) if known and category in known.run else tool


def install_of(tool: str, category: ToolCategory, language: str) -> str:
    """The command that installs a tool, as usual for a language; empty where there is nothing to install."""
    toolset = default_toolsets().get(language)
    usual = toolset.default(category) if toolset else None
    if usual is not None and usual.name == tool:
        return usual.install_cmd
    return known_tools()[tool].install_cmd if tool in known_tools() else ""


# -- signs -----------------------------------------------------------------------------------------------------


class Sign(NamedTuple):
    """A sign of a tool at a line, or 0 for the file as a whole. One that is a configuration proves the tool, the
    others only name it. `run` is the command of the project that runs the tool alone."""

    rank: int
    tool: str
    category: str
    language: str
    line: int = 0
    is_config: bool = False
    source: Source = "config_file"
    version: str = ""
    run: str = ""


def find_signs(file: TextFile, runner: str = "npm") -> Iterator[Sign]:
    """All signs in a file; `runner` runs the scripts of package.json."""
    yield from find_configured(file)
    yield from _from_packages(file)
    yield from _from_scripts(file, runner)
    for rule in detection().ide if is_below(file.path, detection().ide_folders) else ():
        at = file.text.find(rule.text)
        if at >= 0:
            yield Sign(EDITOR, rule.tool, rule.category, rule.language, file.line_at(at))


def find_configured(file: TextFile) -> Iterator[Sign]:
    """The signs in configurations and builds."""
    for rule in config_rules().get(file.name, ()):
        if not rule.section:
            yield Sign(CONFIG, rule.tool, rule.category, rule.language, is_config=True)
            continue
        parsed = parse(file)
        keys = tuple(rule.section.split(".")) if file.name.endswith(".toml") else (rule.section,)
        if any(True for _ in parsed.select("/".join(keys))):
            yield Sign(CONFIG, rule.tool, rule.category, rule.language, parsed.span(keys)[0], is_config=True)
    for rule in detection().builds:
        at = file.text.find(rule.text) if file.name in rule.files else -1
        if at >= 0:
            source: Source = "config_file" if rule.is_config else "package_manifest"
            line, is_config = file.line_at(at), rule.is_config
            yield Sign(BUILD, rule.tool, rule.category, rule.language, line, is_config, source, run=rule.run)


@cache
def config_rules() -> dict[str, list[ToolRule]]:
    """All rules on configuration, by the name of the file."""
    found: dict[str, list[ToolRule]] = {}
    for rule in (*detection().configs, *detection().sections, *detection().others):
        found.setdefault(rule.file, []).append(rule)
    return found


def is_below(path: str, folders: Iterable[str]) -> bool:
    place = f"/{path.rpartition('/')[0]}"
    return any(place.endswith(f"/{folder}") for folder in folders)


def used_tools(line: str, category: ToolCategory) -> dict[str, str]:
    """The tools of a category that a line of a script runs, each with the pattern that shows it."""
    line = line[:MAX_LINE]
    if not _pattern("|".join(_shown(category).values())).search(line):
        return {}
    return {tool: words for tool, words in _shown(category).items() if _pattern(words).search(line)}


def _from_packages(file: TextFile) -> Iterator[Sign]:
    for given in parse_manifest(file.path, file.text).packages:
        for rule in detection().packages:
            is_it = given.name == rule.package or given.name.startswith(f"{rule.package}/")
            if is_it and rule.manifest == _MANIFESTS.get(given.ecosystem):
                rank = PACKAGE if _is_its_own(rule) else COMPANION
                fits = rank == PACKAGE and len(given.version) <= MAX_VERSION and _VERSION.fullmatch(given.version)
                line = int(given.source.rpartition(":")[2])
                version = given.version if fits else ""
                yield Sign(rank, rule.tool, rule.category, rule.language, line, False, "package_manifest", version)


def _is_its_own(rule: ToolRule) -> bool:
    known = known_tools().get(rule.tool)
    name = re.split(r"[/:]", rule.package)[-1]
    is_named = name == rule.tool or name.startswith(f"{rule.tool}-")
    return is_named or (known is not None and known.package == rule.package)


def _from_scripts(file: TextFile, runner: str) -> Iterator[Sign]:
    scripts = list(_scripts(file, runner))
    for category in CATEGORIES:
        mixed = {run for run, _, line in scripts if run and _does_more(line, category)}
        for run, number, line in scripts:
            source: Source = "package_manifest" if run else "config_file"
            for tool in used_tools(line, category):
                alone = "" if run in mixed else run
                yield Sign(SCRIPT, tool, category, "", number, False, source, "", alone)


def _scripts(file: TextFile, runner: str) -> Iterator[tuple[str, int, str]]:
    """The lines of a file that somebody runs, each with the command of the script that it is in, if that has a name."""
    folder, known, is_npm = file.path.rpartition("/")[0], detection(), file.name == "package.json"
    read = reader_of(file.path) if is_npm else read_targets
    if is_npm or file.name.lower() in ("makefile", "gnumakefile"):
        program = runner if is_npm else "make"
        start = f"{program} {_FOLDER_OPTION[program]} {shlex.quote(folder)}" if folder else program
        for each in read(file) if read else ():
            if each.kind == "script" and _SCRIPT_NAME.fullmatch(each.name):
                run = f"{start}{' run' if is_npm else ''} {each.name}"
                for at, line in enumerate(each.value.split("\n"), 0 if is_npm else 1):
                    yield run, each.start + at, line
    elif file.name in (*known.scripts, *known.ci) or is_below(file.path, known.ci_folders):
        for number, line in enumerate(file.lines[:MAX_LINES], 1):
            if not line.lstrip().startswith("#"):
                yield "", number, line


def _does_more(line: str, category: ToolCategory) -> bool:
    """Whether a line also runs tools of other categories: its script is not the way to run this one alone."""
    here = set(used_tools(line, category).values())
    others = {shown for other in CATEGORIES if other != category for shown in used_tools(line, other).values()}
    return not others <= here


@cache
def _shown(category: ToolCategory) -> dict[str, str]:
    """A pattern for each tool: its command up to the first option, or the one of the data."""
    found = {}
    for name, known in known_tools().items():
        if category in known.run:
            shown = known.seen.get(category) or (_command(known.run[category]),)
            found[name] = "|".join(r"[ \t]+".join(map(re.escape, each.split())) for each in shown)
    return found


@cache
def _pattern(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w@-])(?:{words})(?![\w-])")


def _command(template: str) -> str:
    words = template.removeprefix("npx ").split()
    end = next((at for at, word in enumerate(words) if word[0] in "-{./@"), len(words))
    return " ".join(words[:end])
