"""The first tier: what a project itself says about its tools, in configurations, manifests, scripts, CI and the
settings of editors."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import msgspec

from clew.catalog.text import inline
from clew.knowledge.manifests.formats import has_section
from clew.knowledge.manifests.reading import parse_manifest
from clew.knowledge.manifests.scripts import read_scripts
from clew.knowledge.project.devtools_data import (
    ANY,
    PackageRule,
    command_of,
    detection,
    install_of,
    known_tools,
    serves,
)
from clew.knowledge.project.devtools_files import ProjectFiles
from clew.knowledge.project.devtools_installed import installed_version, is_installed, shown_version
from clew.knowledge.project.devtools_records import CATEGORIES, Confidence, DiscoveredTool, Source, ToolCategory

MAX_LINE = 2_000
_MANIFESTS = {
    "npm": "package.json",
    "python": "pyproject.toml",
    "go": "go.mod",
    "rust": "Cargo.toml",
    "java": "pom.xml",
}
"""The manifest whose rules are for the packages of an ecosystem."""


class Evidence(NamedTuple):
    """Something that speaks for a tool. A configuration does so by itself, all else is inferred from. `word` is what
    shows it in the file, where that is not the name of the tool."""

    tool: str
    language: str
    path: str
    is_config: bool
    source: Source
    version: str = ""
    run: str = ""
    word: str = ""


class Scan(msgspec.Struct, frozen=True, kw_only=True):
    """What was found for one category. `languages` are those in question, `open_languages` those of them for which
    nothing is configured."""

    languages: tuple[str, ...]
    open_languages: tuple[str, ...]
    tools: tuple[DiscoveredTool, ...]
    confidence: Confidence

    def tools_for(self, language: str) -> tuple[DiscoveredTool, ...]:
        return tuple(tool for tool in self.tools if not language or serves(tool.language, language))


def scan_project(files: ProjectFiles, category: ToolCategory, named: Sequence[str] = ()) -> Scan:
    """Look for the tools of a category. Languages that are named are each looked for; else one configuration is
    enough, and the language of most files is in question."""
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
    tools = tuple(_to_tool(files, category, each, found) for each in _chosen(found, languages))
    is_high = bool(configured) and not open_languages
    confidence: Confidence = "high" if is_high else "medium" if tools else "low"
    return Scan(languages=languages, open_languages=open_languages, tools=tools, confidence=confidence)


def _evidence(files: ProjectFiles, category: ToolCategory, languages: Sequence[str]) -> Iterator[Evidence]:
    yield from _from_configs(files, category)
    yield from _from_builds(files, category)
    yield from _from_packages(files, category, is_its_own=True)
    yield from _from_scripts(files, category, languages)
    yield from _from_packages(files, category, is_its_own=False)
    yield from _from_ide(files, category)


def _from_configs(files: ProjectFiles, category: ToolCategory) -> Iterator[Evidence]:
    known = detection()
    rules = [rule for rule in (*known.configs, *known.sections) if rule.category == category]
    for path in files.paths:
        name = path.rpartition("/")[2]
        for rule in rules:
            if rule.file == name and (not rule.section or has_section(path, files.text(path), rule.section)):
                yield Evidence(rule.tool, rule.language, path, True, "config_file")


def _from_builds(files: ProjectFiles, category: ToolCategory) -> Iterator[Evidence]:
    rules = [rule for rule in detection().builds if rule.category == category]
    for path in files.paths:
        name = path.rpartition("/")[2]
        for rule in rules:
            if name in rule.files and rule.text in files.text(path):
                source: Source = "config_file" if rule.is_config else "package_manifest"
                yield Evidence(rule.tool, rule.language, path, rule.is_config, source, run=rule.run, word=rule.text)


def _from_packages(files: ProjectFiles, category: ToolCategory, *, is_its_own: bool) -> Iterator[Evidence]:
    """Packages that are the tool itself, or else those that are used with it: their version is not the tool's."""
    rules = [rule for rule in detection().packages if rule.category == category and _is_its_own(rule) == is_its_own]
    for path in files.paths:
        for given in parse_manifest(path, files.text(path)).packages:
            for rule in rules:
                is_it = given.name == rule.package or given.name.startswith(f"{rule.package}/")
                if rule.manifest == _MANIFESTS.get(given.ecosystem) and is_it:
                    version, word = (shown_version(given.version), "") if is_its_own else ("", given.name)
                    yield Evidence(rule.tool, rule.language, path, False, "package_manifest", version, word=word)


def _is_its_own(rule: PackageRule) -> bool:
    """Whether a package is the tool itself, and not another that is used with it."""
    known = known_tools().get(rule.tool)
    name = re.split(r"[/:]", rule.package)[-1]
    is_named = name == rule.tool or name.startswith(f"{rule.tool}-")
    return is_named or (known is not None and known.package == rule.package)


def _from_scripts(files: ProjectFiles, category: ToolCategory, languages: Sequence[str]) -> Iterator[Evidence]:
    for path in files.paths:
        if not _is_script(path):
            continue
        scripts = read_scripts(path, files.text(path), files.runner())
        mixed = {script.run for script in scripts if script.run and _does_more(script.line, category)}
        for script in scripts:
            source: Source = "package_manifest" if script.run else "config_file"
            for tool in _used(script.line, category):
                served = known_tools()[tool].languages
                language = next((each for each in languages if each in served), served[0])
                run = "" if script.run in mixed else script.run
                yield Evidence(tool, language, path, False, source, run=run)


def _from_ide(files: ProjectFiles, category: ToolCategory) -> Iterator[Evidence]:
    rules = [rule for rule in detection().ide if rule.category == category]
    for path in files.paths:
        if not _is_below(path, detection().ide_folders):
            continue
        for rule in rules:
            if rule.text in files.text(path):
                yield Evidence(rule.tool, rule.language, path, False, "config_file")


def _chosen(found: Sequence[Evidence], languages: Sequence[str]) -> list[Evidence]:
    """The first that speaks for each tool, in the order of the languages. What is configured for a language pushes out
    what is merely inferred for it; what serves any language comes last and pushes out nothing."""
    settled = [each.language for each in found if each.is_config and each.language != ANY]
    kept = dict[str, Evidence]()
    for each in found:
        is_out = not each.is_config and any(serves(language, each.language) for language in settled)
        if each.tool not in kept and not is_out:
            kept[each.tool] = each
    return sorted(kept.values(), key=lambda each: _place(each, languages))


def _place(each: Evidence, languages: Sequence[str]) -> tuple[bool, int]:
    at = next((number for number, language in enumerate(languages) if serves(each.language, language)), len(languages))
    return each.language == ANY, at


def _to_tool(files: ProjectFiles, category: ToolCategory, first: Evidence, found: Sequence[Evidence]) -> DiscoveredTool:
    same = [each for each in found if each.tool == first.tool]
    version = next((each.version for each in same if each.version), "")
    command = command_of(first.tool, category, shlex.quote(files.target or "."))
    why = "configured" if first.is_config else "named"
    return DiscoveredTool(
        name=first.tool,
        category=category,
        language=first.language,
        version=installed_version(files.root, first.tool) or version,
        config_path=first.path if first.is_config else "",
        run_command=next((each.run for each in same if each.run), command),
        install_cmd=install_of(first.tool, category, first.language),
        is_installed=is_installed(files.root, first.tool),
        source=first.source,
        rationale=inline(f"{first.tool} is {why} in {files.place(first.path, first.word or first.tool)}"),
    )


def _is_script(path: str) -> bool:
    name, known = path.rpartition("/")[2], detection()
    return name == "package.json" or name in (*known.scripts, *known.ci) or _is_below(path, known.ci_folders)


def _is_below(path: str, folders: Iterable[str]) -> bool:
    place = f"/{path.rpartition('/')[0]}"
    return any(place.endswith(f"/{folder}") for folder in folders)


def _does_more(line: str, category: ToolCategory) -> bool:
    """Whether a line runs something of other categories: its script is not the way to run this one alone."""
    here = {_shown(category)[tool] for tool in _used(line, category)}
    others = {_shown(other)[tool] for other in CATEGORIES if other != category for tool in _used(line, other)}
    return not others <= here


def _used(line: str, category: ToolCategory) -> list[str]:
    line = line[:MAX_LINE]
    if not _any_pattern(category).search(line):
        return []
    return [tool for tool, words in _shown(category).items() if _pattern(words).search(line)]


@cache
def _shown(category: ToolCategory) -> dict[str, str]:
    """How each tool shows in a line that is run: its command up to the first option, or what the data says."""
    found = {}
    for name, known in known_tools().items():
        if category in known.run:
            shown = known.seen.get(category) or (_command(known.run[category]),)
            found[name] = "|".join(r"[ \t]+".join(map(re.escape, each.split())) for each in shown)
    return found


@cache
def _any_pattern(category: ToolCategory) -> re.Pattern[str]:
    return _pattern("|".join(_shown(category).values()))


@cache
def _pattern(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w@-])(?:{words})(?![\w-])")


def _command(template: str) -> str:
    words = template.removeprefix("npx ").split()
    end = next((at for at, word in enumerate(words) if word[0] in "-{./@"), len(words))
    return " ".join(words[:end])
