"""What is known of development tools, as data: how they show in a project, how they are run, and the default toolsets
of 22 languages. The tables are JSON files beside this one, read once when first needed."""

from __future__ import annotations

from functools import cache

import msgspec

from clew.knowledge.project.devtools_records import ToolCategory
from clew.knowledge.project.tables import load_table

ANY = "*"


class ConfigRule(msgspec.Struct, frozen=True, kw_only=True):
    """A file that configures a tool, by its name; with a `section`, only where the file has it."""

    file: str
    tool: str
    category: ToolCategory
    language: str
    section: str = ""


class PackageRule(msgspec.Struct, frozen=True, kw_only=True):
    """A package that brings a tool, where a manifest names it."""

    manifest: str
    package: str
    tool: str
    category: ToolCategory
    language: str


class BuildRule(msgspec.Struct, frozen=True, kw_only=True):
    """A text in the file of a build that speaks for a tool, which the build runs; one that only needs its package does
    not configure it."""

    files: tuple[str, ...]
    text: str
    tool: str
    category: ToolCategory
    language: str
    run: str
    is_config: bool = True


class IdeRule(msgspec.Struct, frozen=True, kw_only=True):
    """A text in the settings of an editor that speaks for a tool."""

    text: str
    tool: str
    category: ToolCategory
    language: str


class Detection(msgspec.Struct, frozen=True, kw_only=True):
    """How tools show. `configs` are files that are enough by themselves, `sections` parts of files that serve others
    too; `*_folders` say which endings count in a folder."""

    configs: tuple[ConfigRule, ...]
    sections: tuple[ConfigRule, ...]
    packages: tuple[PackageRule, ...]
    builds: tuple[BuildRule, ...]
    ide: tuple[IdeRule, ...]
    scripts: tuple[str, ...]
    ci: tuple[str, ...]
    ci_folders: dict[str, tuple[str, ...]]
    ide_folders: dict[str, tuple[str, ...]]
    requirements: tuple[str, ...]


class KnownTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool by what it can do: its command for each category, and what in a script shows that it is used."""

    languages: tuple[str, ...]
    run: dict[ToolCategory, str]
    install_cmd: str = ""
    binary: str = ""
    package: str = ""
    seen: dict[ToolCategory, tuple[str, ...]] = {}
    pros: tuple[str, ...] = ()
    cons: tuple[str, ...] = ()


class ToolDefault(msgspec.Struct, frozen=True, kw_only=True):
    """The usual tool of a category; no name where a language has none. No install command: it comes with the
    language, or with the build."""

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
    return load_table("devtools_detection.json", Detection)


@cache
def known_tools() -> dict[str, KnownTool]:
    return load_table("devtools_tools.json", _Tools).tools


@cache
def _languages() -> _Toolsets:
    return load_table("devtools_toolsets.json", _Toolsets)


def default_toolsets() -> dict[str, LanguageToolset]:
    """The default toolset of each language, for when nothing better is known."""
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
