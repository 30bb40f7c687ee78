"""Development tools: the table of known tools (`tools.json`), and the records of their discovery."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Literal, get_args

import msgspec

from clew.errors import InvalidInput

ToolCategory = Literal["linter", "formatter", "type_checker", "test_framework", "lsp"]
CATEGORIES: tuple[ToolCategory, ...] = get_args(ToolCategory)
Confidence = Literal["high", "medium", "low"]
"""High: a configuration was found. Medium: inferred from dependencies and scripts. Low: only the language is known."""
Source = Literal["config_file", "package_manifest", "academic_research", "user_choice"]
Tier = Literal[1, 2, 3]


def category_label(category: ToolCategory) -> str:
    """A category in words."""
    return {"lsp": "language server"}.get(category, category.replace("_", " "))


class ToolDiscoveryRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for the tools of one category. Without `languages` those of the files decide.

    Raises InvalidInput for an unknown category."""

    session_id: str
    requesting_agent: str
    tool_category: ToolCategory
    target_path: str = "."
    languages: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.tool_category not in CATEGORIES:
            raise InvalidInput(
                "tool_category",
                f"{self.tool_category!r} is not a category",
                hint=f"Categories are {', '.join(CATEGORIES)}",
            )


class DiscoveredTool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool. `run_command` is for the folder of the project; nothing here runs it. `version` is the installed one,
    or else the constraint of the manifest."""

    name: str
    category: ToolCategory
    language: str
    version: str = ""
    config_path: str = ""
    run_command: str = ""
    install_cmd: str = ""
    is_installed: bool = False
    source: Source = "config_file"
    rationale: str = ""


class ToolOption(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the user may choose, with arguments for and against it."""

    tool: DiscoveredTool
    pros: tuple[str, ...] = ()
    cons: tuple[str, ...] = ()
    recommended: bool = False


class ToolDiscoveryResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The tools of a request. While `requires_user` holds, `tools` are provisional."""

    tier: Tier
    confidence: Confidence
    tools: tuple[DiscoveredTool, ...] = ()
    requires_user: bool = False
    user_options: tuple[ToolOption, ...] = ()


class ToolDiscoveryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A cached discovery. It is valid for the same `user_overrides`, content of `files` and `checkout` (branch and
    commit)."""

    id: str
    category: Literal["tool_discovery"] = "tool_discovery"
    session_id: str
    project_path: str
    discovered_at: datetime
    tools: tuple[DiscoveredTool, ...]
    tier: Tier
    user_overrides: dict[str, str] = {}
    confidence: Confidence
    checkout: str
    files: dict[str, str]


class KnownTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool. By category: `run` is its command, `seen` is the pattern that finds it in a script, and `signs` are other
    evidence: `file`, `file#section` or `file#text`, `ecosystem:package`, and `editor:text` in settings of an editor.
    `run_in` are commands by the name of a build file. A tool without languages is never offered."""

    languages: tuple[str, ...] = ()
    run: dict[str, str] = {}
    run_in: dict[str, str] = {}
    install_cmd: str = ""
    binary: str = ""
    package: str = ""
    seen: dict[str, tuple[str, ...]] = {}
    signs: dict[str, tuple[str, ...]] = {}
    pros: tuple[str, ...] = ()
    cons: tuple[str, ...] = ()

    def serves(self, language: str) -> bool:
        return language in self.languages or "*" in self.languages


class _Tables(msgspec.Struct, frozen=True):
    """`toolsets` name the usual tool of each category for a language, and `installs` their install commands if these
    differ from those of the tool."""

    tools: dict[str, KnownTool]
    toolsets: dict[str, dict[str, str]]
    installs: dict[str, dict[str, str]]
    extensions: dict[str, str]
    aliases: dict[str, str]


@cache
def _tables() -> _Tables:
    from clew.knowledge.project.formats import load_table  # the parsers take 6 ms to import

    return load_table("tools.json", _Tables)


def known_tools() -> dict[str, KnownTool]:
    return _tables().tools


def default_toolsets() -> dict[str, dict[str, str]]:
    """The usual tools of each language by category, and its `package_manager`; an empty name if there is none."""
    return _tables().toolsets


def tools_for(category: ToolCategory, language: str) -> list[str]:
    """The names of the known tools of a category for a language."""
    return [name for name, known in known_tools().items() if category in known.run and language in known.languages]


def normal_language(name: str) -> str:
    """The normal name of a language: `py` and `Python` are python."""
    plain = name.strip().lower()
    return _tables().aliases.get(plain, plain)


def language_by_extension(name: str) -> str:
    """The language of a file by the end of its name, or empty."""
    return _tables().extensions.get(name.rpartition(".")[2].lower(), "") if "." in name else ""


def file_globs(tool: str) -> tuple[str, ...]:
    """Globs of the files that a tool is for, by the endings of its languages."""
    served = known_tools()[tool].languages
    return tuple(f"*.{ending}" for ending, language in _tables().extensions.items() if language in served) or ("*",)


def install_of(tool: str, language: str) -> str:
    """The command that installs a tool for a language; empty if there is nothing to install."""
    return _tables().installs.get(language, {}).get(tool) or known_tools().get(tool, KnownTool()).install_cmd
