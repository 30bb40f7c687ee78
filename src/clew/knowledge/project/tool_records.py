"""Records of tool discovery: a request, a response, its tools and options, and the cache entry."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Literal, get_args

import msgspec

from clew.errors import InvalidInput

ToolCategory = Literal["linter", "formatter", "type_checker", "test_framework", "lsp"]
CATEGORIES: tuple[ToolCategory, ...] = get_args(ToolCategory)
Confidence = Literal["high", "medium", "low"]
"""High: a configuration was found. Medium: inferred from dependencies and scripts. Low: only the language is known."""
Source = Literal["config_file", "package_manifest", "academic_research", "user_choice"]
Tier = Literal[1, 2, 3]


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
                "tool_category", f"{self.tool_category!r} is not one", hint=f"Categories are {', '.join(CATEGORIES)}"
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


class Recommendation(msgspec.Struct, frozen=True, kw_only=True):
    """The result of research, `satisfactory` where one tool is clearly recommended."""

    tools: tuple[DiscoveredTool, ...] = ()
    satisfactory: bool = False


class ToolChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The user's answer: the name of an option, or of a tool of their own with the command that runs it."""

    name: str
    run_command: str = ""


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


Research = Callable[[ToolDiscoveryRequest, Sequence[DiscoveredTool]], Awaitable[Recommendation]]
"""Finds recommended tools, given the inferred ones. The request names its languages."""
