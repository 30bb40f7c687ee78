"""Discovered tools in words: where each is known from, what is not known, and which questions ask for them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from clew.catalog.text import inline
from clew.knowledge.project.devtools_choice import CUSTOM
from clew.knowledge.project.devtools_records import (
    DiscoveredTool,
    ToolCategory,
    ToolDiscoveryResponse,
    ToolOption,
)

KNOWN_BY = ("config_file", "package_manifest", "user_choice")
"""Sources that tell what is used here; the others tell what could be."""

DISCOVER, PREFER = "code://tools/discover_tools", "code://tools/hidden/prefer_tool"
NOT_KNOWN = "- Not known:"

MAX_SHORT = 60
_ASKS = re.compile(r"^\W*(?:which|what|how)\b", re.IGNORECASE)
_HERE = re.compile(
    r"\b(?:use[sd]?|using|run|runs|running|here|configured|project|repo|repository|we|our|i)\b", re.IGNORECASE
)
_SHORT = re.compile(r"\W*(?:(?:which|what|the|our|what is the|what's the) )?(?:\w+[ -])?\w+\W*", re.IGNORECASE)
"""A question of little more than the name of a kind of tools."""
_KIND = re.compile(
    r"(?:linter|formatter|type[ -]?checker|test(?:ing)? (?:runner|framework|tool)|language server|lsp)s?\W*\Z",
    re.IGNORECASE,
)
_NAMED: dict[ToolCategory, re.Pattern[str]] = {
    "linter": re.compile(r"\blint(?:er|ers|ing)?\b", re.IGNORECASE),
    "formatter": re.compile(r"\bformatters?\b|\bformat (?:the |our )?code\b", re.IGNORECASE),
    "type_checker": re.compile(r"\btyp(?:e|es|ing)[ -]?check(?:er|ers|ing)?\b", re.IGNORECASE),
    "test_framework": re.compile(
        r"\btest(?:ing)? (?:runner|framework|tool|library)s?\b|\brun (?:\w+ )?tests\b", re.IGNORECASE
    ),
    "lsp": re.compile(r"\blanguage servers?\b|\blsp\b", re.IGNORECASE),
}


def categories_in(question: str) -> list[ToolCategory]:
    """The kinds of tools that a question wants to know of this project; none for any other question."""
    is_short = len(question) <= MAX_SHORT and _SHORT.fullmatch(question) and _KIND.search(question)
    if not is_short and (not _ASKS.search(question) or not _HERE.search(question)):
        return []
    return [category for category, pattern in _NAMED.items() if pattern.search(question)]


def tool_line(tool: DiscoveredTool) -> str:
    """One tool on a line: what it is, where that is from, and how it is run."""
    version = f" {tool.version}" if tool.version else ""
    kind = f"{worded(tool.category)}{f' for {tool.language}' if tool.language else ''}"
    installed = "installed" if tool.is_installed else f"not installed here{_install(tool)}"
    run = f"run: {inline(tool.run_command)}; " if tool.run_command else ""
    return f"{inline(tool.name, 100)}{version}, {kind}: {inline(tool.rationale)}; {run}{installed}"


def used_lines(category: ToolCategory, response: ToolDiscoveryResponse) -> list[str]:
    """The tools that are used, a line each, or that none is known, and what leads on."""
    used = [f"- {tool_line(each)}" for each in response.tools if each.source in KNOWN_BY]
    return used or [
        f"{NOT_KNOWN} which {worded(category)} is used; nothing here configures one, and the user has not said."
        f" `{DISCOVER}` has suggestions, and leads to `{PREFER}`, which remembers a choice."
    ]


def told(category: ToolCategory, response: ToolDiscoveryResponse) -> list[str]:
    """What was discovered: tools that are used first, then what is not known, and what there is to choose from."""
    used = [each for each in response.tools if each.source in KNOWN_BY]
    lines = [f"- {tool_line(each)} (confidence {response.confidence})" for each in used]
    if response.requires_user or not response.tools:
        what = "whether that is the one" if used else f"which {worded(category)} is used"
        lines.append(f"{NOT_KNOWN} {what}; nothing here configures one, and the user has not said.")
    lines += [f"- Suggested: {tool_line(each)}" for each in response.tools if each not in used]
    return [*lines, *map(_option_line, _choices(response.user_options))]


def worded(category: ToolCategory) -> str:
    return {"lsp": "language server"}.get(category, category.replace("_", " "))


def _choices(options: Sequence[ToolOption]) -> list[ToolOption]:
    return [option for option in options if option.tool.name != CUSTOM]


def _option_line(option: ToolOption) -> str:
    against = f"; against it: {', '.join(option.cons)}" if option.cons else ""
    return (
        f"- To choose from: {inline(option.tool.name, 100)}, for it: {inline(', '.join(option.pros))}{inline(against)}"
    )


def _install(tool: DiscoveredTool) -> str:
    return f" ({inline(tool.install_cmd)})" if tool.install_cmd else ""
