"""The third tier: what a user may choose from, and what becomes of the choice."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

import msgspec

from clew.catalog.text import inline
from clew.errors import InvalidInput
from clew.knowledge.history.lessons import UserPreferences
from clew.knowledge.project.devtools_data import command_of, default_toolsets, install_of, known_tools
from clew.knowledge.project.devtools_installed import is_installed
from clew.knowledge.project.devtools_records import (
    DiscoveredTool,
    Recommendation,
    ToolCategory,
    ToolChoice,
    ToolOption,
)
from clew.secrecy import mask_keys

CUSTOM = "custom"
MAX_OPTIONS = 6
MAX_NAME, MAX_COMMAND = 100, 500
_COMMON = ("python", "typescript", "go", "rust")
_UNKNOWN = "any"


def default_tool(root: str, category: ToolCategory, language: str, path: str = ".") -> DiscoveredTool | None:
    """The usual tool of a language, as far as it has one."""
    toolset = default_toolsets().get(language)
    if toolset is None or not toolset.default(category).name:
        return None
    name = toolset.default(category).name
    return _known_tool(root, name, category, language, path, f"The usual {_worded(category)} for {language}")


def build_options(
    root: str,
    category: ToolCategory,
    language: str,
    inferred: Sequence[DiscoveredTool],
    recommendation: Recommendation,
    path: str = ".",
) -> tuple[ToolOption, ...]:
    """What to choose from, each tool once: what the project hints at, what research names, what is usual, what else
    there is, and last a tool of the user's own. The first is recommended."""
    researched = sorted(recommendation.options, key=lambda option: not option.recommended)
    offered = {option.tool.name: option for option in researched}
    usual = [default_tool(root, category, each, path) for each in ([language] if language else _COMMON)]
    tools = [*inferred, *(option.tool for option in researched), *recommendation.tools]
    tools += [*filter(None, usual), *_others(root, category, language, path)]
    found = dict[str, ToolOption]()
    for tool in tools:
        if tool.name not in found and len(found) < MAX_OPTIONS:
            found[tool.name] = offered.get(tool.name) or _option(tool)
    listed = [msgspec.structs.replace(option, recommended=number == 0) for number, option in enumerate(found.values())]
    return (*listed, _custom(category, language))


def chosen_tool(
    root: str,
    category: ToolCategory,
    language: str,
    choice: ToolChoice,
    known: Iterable[DiscoveredTool],
    path: str = ".",
) -> DiscoveredTool:
    """The tool that a choice means: one of those that are known here or everywhere, or one of the user's own."""
    usual = _known_tool(root, choice.name, category, language, path, "")
    tool = next((each for each in known if each.name == choice.name), usual)
    command = choice.run_command or tool.run_command
    return msgspec.structs.replace(
        tool,
        run_command=command,
        is_installed=is_installed(root, tool.name, command),
        source="user_choice",
        rationale="The user chose it",
    )


def checked_choice(choice: ToolChoice) -> ToolChoice:
    """The choice on one line and without keys. Raises InvalidInput for one that names no tool."""
    name = inline(mask_keys(choice.name), MAX_NAME).partition(": ")[0].strip()
    if not name or name == CUSTOM:
        raise InvalidInput("choice", "names no tool", hint="Name one of the options, or a tool of your own")
    command = " ".join(mask_keys(choice.run_command).split())
    if len(command) > MAX_COMMAND:
        raise InvalidInput("run_command", f"is over {MAX_COMMAND} characters")
    return ToolChoice(name=name, run_command=command)


class ToolPreferences:
    """What the user chose before, for one category, by language; `any` where the language was not known."""

    def __init__(self, preferences: UserPreferences, category: ToolCategory) -> None:
        self._preferences, self._prefix = preferences, f"devtools/{category}/"

    async def read(self) -> dict[str, str]:
        """Choices as they are kept: the name of a tool, and its command after a colon."""
        all_of_them = await self._preferences.get_preferences()
        names = {*all_of_them.explicit, *all_of_them.implicit, *all_of_them.session_overrides}
        chosen = {name: all_of_them.effective(name) for name in sorted(names) if name.startswith(self._prefix)}
        return {name.removeprefix(self._prefix): value for name, value in chosen.items() if value}

    async def write(self, language: str, choice: ToolChoice) -> None:
        said = f"{choice.name}: {choice.run_command}" if choice.run_command else choice.name
        await self._preferences.set_preference(f"{self._prefix}{language or _UNKNOWN}", said)


def find_choice(chosen: dict[str, str], language: str) -> ToolChoice | None:
    """What was chosen for a language."""
    name, _, command = chosen.get(language or _UNKNOWN, "").partition(": ")
    return ToolChoice(name=name, run_command=command) if name else None


def quoted_path(target: str) -> str:
    return shlex.quote(target or ".")


def _known_tool(
    root: str, name: str, category: ToolCategory, language: str, path: str, rationale: str
) -> DiscoveredTool:
    command = command_of(name, category, path)
    known = known_tools().get(name)
    return DiscoveredTool(
        name=name,
        category=category,
        language=language or (known.languages[0] if known else ""),
        run_command=command,
        install_cmd=install_of(name, category, language),
        is_installed=is_installed(root, name, command),
        source="academic_research",
        rationale=rationale,
    )


def _others(root: str, category: ToolCategory, language: str, path: str) -> list[DiscoveredTool]:
    return [
        _known_tool(root, name, category, language, path, f"Another {_worded(category)} for {language}")
        for name, known in known_tools().items()
        if language in known.languages and category in known.run
    ]


def _option(tool: DiscoveredTool) -> ToolOption:
    known = known_tools().get(tool.name)
    pros = [*known.pros] if known else []
    cons = [*known.cons] if known else []
    if tool.source in ("package_manifest", "config_file"):
        pros.insert(0, tool.rationale)
    if tool.is_installed:
        pros.append("Installed here")
    cons.append("Not configured here yet" if tool.is_installed else "Not installed here")
    return ToolOption(tool=tool, pros=tuple(pros) or (tool.rationale,), cons=tuple(cons))


def _custom(category: ToolCategory, language: str) -> ToolOption:
    tool = DiscoveredTool(
        name=CUSTOM, category=category, language=language, source="user_choice", rationale="A tool of your own"
    )
    return ToolOption(tool=tool, pros=("Whatever fits",), cons=("Its command has to be given",))


def _worded(category: ToolCategory) -> str:
    return {"lsp": "language server"}.get(category, category.replace("_", " "))
