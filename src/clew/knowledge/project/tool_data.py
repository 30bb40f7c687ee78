"""Data on development tools: how they show in a project, how they are run, and the default toolsets of 22 languages.
The tables are the JSON files in `data`, read once when first needed."""

from __future__ import annotations

from functools import cache

import msgspec

from clew.knowledge.project.formats import load_table
from clew.knowledge.project.tool_records import ToolCategory

ANY = "*"


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
    """How tools show. `configs` are files that are enough by themselves, `sections` parts of files that serve other
    tools too, `others` both for tools that discovery does not offer; `*_folders` say which endings count there."""

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
