"""The second and third tier of discovery: the tools that documents recommend, and the choice of the user."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice

import msgspec

from clew.access import Principal
from clew.catalog.text import inline
from clew.errors import InvalidInput
from clew.knowledge.evidence.naming import citation_of
from clew.knowledge.history.preferences import UserPreferences
from clew.knowledge.project.tool_data import command_of, default_toolsets, install_of, known_tools
from clew.knowledge.project.tool_records import (
    DiscoveredTool,
    Recommendation,
    Research,
    ToolCategory,
    ToolChoice,
    ToolDiscoveryRequest,
    ToolOption,
)
from clew.knowledge.project.tool_scan import is_installed
from clew.knowledge.shelves import Shelf
from clew.secrecy import mask_keys
from clew.trail.nodes import Node

CUSTOM = "custom"
MAX_OPTIONS = 6
MAX_NAME, MAX_COMMAND = 100, 500
MAX_SEARCHED = 20
ENOUGH = 2
"""Documents that make a recommendation."""
_COMMON = ("python", "typescript", "go", "rust")
_UNKNOWN = "any"
_PURPOSE: dict[ToolCategory, str] = {
    "linter": r"lint",
    "formatter": r"format",
    "type_checker": r"typ(?:e|es|ing)[ -]?check|static typ",
    "test_framework": r"\btest",
    "lsp": r"language server|\blsp\b",
}


def shelf_research(shelf: Shelf, by: Principal) -> Research:
    """Research in the documents that a principal sees. A document recommends a tool where a line names it together
    with its purpose; a tool that several documents name, and twice as many as the next, is clearly recommended."""

    async def research(request: ToolDiscoveryRequest, inferred: Sequence[DiscoveredTool]) -> Recommendation:
        category, language = request.tool_category, next(iter(request.languages), "")
        await shelf.catch_up()
        question = f"recommended {category.replace('_', ' ')} for {language}"
        found = [each.node for each in await shelf.search(question, by=by, limit=MAX_SEARCHED)]
        named = {name: _naming(found, name, category) for name in _known_for(category, language)}
        ranked = sorted((name for name in named if named[name]), key=lambda name: -len(named[name]))
        counts = [len(named[name]) for name in ranked]
        is_clear = bool(counts) and counts[0] >= ENOUGH and (len(counts) == 1 or counts[0] >= 2 * counts[1])
        tools = [
            DiscoveredTool(name=name, category=category, language=language, rationale=_cited(name, named[name]))
            for name in ranked
        ]
        return Recommendation(tools=tuple(tools[:1] if is_clear else tools), satisfactory=is_clear)

    return research


def _known_for(category: ToolCategory, language: str) -> list[str]:
    return [name for name, known in known_tools().items() if category in known.run and language in known.languages]


def _naming(nodes: Sequence[Node], name: str, category: ToolCategory) -> list[Node]:
    """The nodes, one a document, that name a tool together with its purpose."""
    tool, purpose = _word(name), re.compile(_PURPOSE[category], re.IGNORECASE)
    found: dict[str, Node] = {}
    for node in nodes:
        if any(tool.search(line) and purpose.search(line) for line in node.content.splitlines()):
            found.setdefault(node.path or node.url or node.id, node)
    return list(found.values())


def _cited(name: str, nodes: Sequence[Node]) -> str:
    return inline(f"{name} is recommended in {', '.join(citation_of(node) for node in nodes[:ENOUGH])}")


@cache
def _word(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])", re.IGNORECASE)


class ToolPreferences:
    """The choices of the user for one category, by language; `any` where the language is not known."""

    def __init__(self, preferences: UserPreferences, category: ToolCategory) -> None:
        self._preferences, self._prefix = preferences, f"devtools/{category}/"

    async def read(self) -> dict[str, str]:
        """Choices as stored: the name of a tool, and its command after a colon."""
        known = await self._preferences.get_preferences()
        names = {*known.explicit, *known.implicit, *known.session_overrides}
        chosen = {name: known.effective(name) for name in sorted(names) if name.startswith(self._prefix)}
        return {name.removeprefix(self._prefix): value for name, value in chosen.items() if value}

    async def write(self, language: str, choice: ToolChoice) -> None:
        said = f"{choice.name}: {choice.run_command}" if choice.run_command else choice.name
        await self._preferences.set_preference(f"{self._prefix}{language or _UNKNOWN}", said)


def find_choice(chosen: dict[str, str], language: str) -> ToolChoice | None:
    """The stored choice for a language."""
    name, _, command = chosen.get(language or _UNKNOWN, "").partition(": ")
    return ToolChoice(name=name, run_command=command) if name else None


def check_choice(choice: ToolChoice) -> ToolChoice:
    """The choice on one line and without keys. Raises InvalidInput for one that names no tool."""
    name = inline(mask_keys(choice.name), MAX_NAME).partition(": ")[0].strip()
    if not name or name == CUSTOM:
        raise InvalidInput("choice", "names no tool", hint="Name one of the options, or a tool of your own")
    command = " ".join(mask_keys(choice.run_command).split())
    if len(command) > MAX_COMMAND:
        raise InvalidInput("run_command", f"is over {MAX_COMMAND} characters")
    return ToolChoice(name=name, run_command=command)


class Offer:
    """The tools that can be offered for one category and language in a project."""

    def __init__(self, root: str, category: ToolCategory, language: str, target: str) -> None:
        self._root, self._category, self._language = root, category, language
        self._path = shlex.quote(target or ".")
        self._worded = {"lsp": "language server"}.get(category, category.replace("_", " "))

    def default(self, language: str = "") -> DiscoveredTool | None:
        """The usual tool of a language, if it has one."""
        language = language or self._language
        toolset = default_toolsets().get(language)
        name = toolset.default(self._category).name if toolset else ""
        return self._known(name, language, f"The usual {self._worded} for {language}") if name else None

    def options(
        self, inferred: Sequence[DiscoveredTool], recommended: Sequence[DiscoveredTool]
    ) -> tuple[ToolOption, ...]:
        """Each tool once: inferred ones, recommended ones, the usual one, others, and last a tool of the user's own.
        The first is recommended."""
        language = self._language
        usual = filter(None, map(self.default, [language] if language else _COMMON))
        others = (
            self._known(name, language, f"Another {self._worded} for {language}")
            for name in _known_for(self._category, language)
        )
        found = dict[str, DiscoveredTool]()
        for tool in (*inferred, *recommended, *usual, *others):
            found.setdefault(tool.name, tool)
        listed = [_option(tool, recommended=at == 0) for at, tool in enumerate(islice(found.values(), MAX_OPTIONS))]
        own = DiscoveredTool(name=CUSTOM, category=self._category, language=language, source="user_choice")
        return (*listed, ToolOption(tool=own, pros=("Whatever fits",), cons=("Its command has to be given",)))

    def chosen(self, choice: ToolChoice, known: Iterable[DiscoveredTool]) -> DiscoveredTool:
        """The tool that a choice means: a known one, or one of the user's own."""
        usual = self._known(choice.name, self._language, "")
        tool = next((each for each in known if each.name == choice.name), usual)
        command = choice.run_command or tool.run_command
        return msgspec.structs.replace(
            tool,
            run_command=command,
            is_installed=is_installed(self._root, tool.name, command),
            source="user_choice",
            rationale="The user chose it",
        )

    def completed(self, tool: DiscoveredTool) -> DiscoveredTool:
        """A recommended tool with all that is known of it."""
        known = self._known(tool.name, self._language, tool.rationale)
        command = tool.run_command or known.run_command
        return msgspec.structs.replace(
            known,
            language=tool.language or self._language,
            version=tool.version,
            run_command=command,
            install_cmd=tool.install_cmd or known.install_cmd,
            is_installed=is_installed(self._root, tool.name, command),
        )

    def _known(self, name: str, language: str, rationale: str) -> DiscoveredTool:
        command = command_of(name, self._category, self._path)
        known = known_tools().get(name)
        return DiscoveredTool(
            name=name,
            category=self._category,
            language=language or (known.languages[0] if known else ""),
            run_command=command,
            install_cmd=install_of(name, self._category, language),
            is_installed=is_installed(self._root, name, command),
            source="academic_research",
            rationale=rationale,
        )


def _option(tool: DiscoveredTool, *, recommended: bool) -> ToolOption:
    known = known_tools().get(tool.name)
    pros = [*known.pros] if known else []
    cons = [*known.cons] if known else []
    if tool.source in ("package_manifest", "config_file"):
        pros.insert(0, tool.rationale)
    if tool.is_installed:
        pros.append("Installed here")
    cons.append("Not configured here yet" if tool.is_installed else "Not installed here")
    return ToolOption(tool=tool, pros=tuple(pros) or (tool.rationale,), cons=tuple(cons), recommended=recommended)
