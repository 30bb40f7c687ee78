"""Which linter, formatter, type checker, test framework or language server a project uses, or should: first what the
project says, then what research recommends, then what the user chooses. Nothing that is found is run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.errors import ClewError, InvalidInput
from clew.knowledge.history.lessons import UserPreferences
from clew.knowledge.project.devtools_cache import DiscoveryCache, Grounds, checkout_of
from clew.knowledge.project.devtools_choice import (
    ToolPreferences,
    build_options,
    checked_choice,
    chosen_tool,
    default_tool,
    find_choice,
    quoted_path,
)
from clew.knowledge.project.devtools_data import command_of, install_of, normal_language
from clew.knowledge.project.devtools_files import ProjectFiles
from clew.knowledge.project.devtools_installed import is_installed
from clew.knowledge.project.devtools_records import (
    CATEGORIES,
    AskUser,
    DiscoveredTool,
    Recommendation,
    Research,
    ToolCategory,
    ToolChoice,
    ToolDiscoveryRequest,
    ToolDiscoveryResponse,
)
from clew.knowledge.project.devtools_scan import Scan, scan_project
from clew.trail.store import Trail

_NOTHING = Recommendation()


class ToolDiscovery:
    """Discovers the tools of one project. `scans` counts how often its files were searched: a discovery that is kept
    and still holds takes no scan. Calls raise what the trail, the user's door and a wrong request raise; no file of
    the project makes them fail."""

    def __init__(
        self,
        code_root: Path,
        trail: Trail,
        clock: Clock,
        by: Principal,
        ask_user: AskUser | None = None,
        research: Research | None = None,
    ) -> None:
        self._root = os.path.realpath(code_root)
        self._trail, self._clock, self._by = trail, clock, by
        self._ask_user, self._research = ask_user, research
        self._cache = DiscoveryCache(trail, clock, by, self._root)
        self._locks = {category: asyncio.Lock() for category in CATEGORIES}
        self.scans = 0

    async def discover(self, request: ToolDiscoveryRequest, force_refresh: bool = False) -> ToolDiscoveryResponse:
        """The tools for a request. What the user chose once is not asked again, with `force_refresh` neither.

        Raises InvalidInput for a target outside of the project, and for a choice that names no tool.
        """
        request = self._checked(request)
        async with self._locks[request.tool_category]:  # who asks at the same time waits for one answer of the user
            chosen = self._choices(request)
            files = await asyncio.to_thread(ProjectFiles, self._root, request.target_path)
            grounds = await self._grounds(files, chosen)
            known = None if force_refresh else await self._cache.recall(request, grounds)
            if known is not None:
                return await asyncio.to_thread(self._refreshed, known)
            response = await self._discover(request, files, chosen, grounds.user_overrides)
            after = msgspec.structs.replace(grounds, user_overrides=await chosen.read())
            await self._cache.keep(request, after, response)
            return response

    async def prefer(self, category: ToolCategory, choice: ToolChoice, language: str = "") -> str:
        """Remember what the user chose, for all sessions, and return for which language: without one it is that of most
        files, and empty where none is known. Raises InvalidInput for a choice that names no tool."""
        checked = checked_choice(choice)
        files = await asyncio.to_thread(ProjectFiles, self._root, "")
        found = normal_language(language) or next(iter(await asyncio.to_thread(files.languages)), "")
        preferences = UserPreferences(self._trail, self._by, self._clock)
        await ToolPreferences(preferences, category).write(found, checked)
        return found

    async def _discover(
        self, request: ToolDiscoveryRequest, files: ProjectFiles, chosen: ToolPreferences, before: dict[str, str]
    ) -> ToolDiscoveryResponse:
        self.scans += 1
        scan = await asyncio.to_thread(scan_project, files, request.tool_category, request.languages)
        if scan.confidence == "high":
            return ToolDiscoveryResponse(tier=1, confidence="high", tools=scan.tools)
        in_question = scan.open_languages or ("",)
        settled = [tool for tool in scan.tools if tool.config_path]
        answers = [await self._settle(request, language, scan, chosen, before) for language in in_question]
        return ToolDiscoveryResponse(
            tier=max(answer.tier for answer in answers),
            confidence=scan.confidence,
            tools=tuple(dict.fromkeys((*settled, *(tool for answer in answers for tool in answer.tools)))),
            requires_user=any(answer.requires_user for answer in answers),
            user_options=tuple(option for answer in answers for option in answer.user_options),
        )

    async def _settle(
        self, request: ToolDiscoveryRequest, language: str, scan: Scan, chosen: ToolPreferences, before: dict[str, str]
    ) -> ToolDiscoveryResponse:
        """The second and third tier for one language; empty is one that is not known."""
        category, path = request.tool_category, quoted_path(request.target_path)
        inferred = scan.tools_for(language)
        asked = msgspec.structs.replace(request, languages=(language,) if language else ())
        if (choice := find_choice(before, language)) is not None:
            tool = chosen_tool(self._root, category, language, choice, inferred, path)
            return ToolDiscoveryResponse(tier=3, confidence=scan.confidence, tools=(tool,))
        advice = await self._researched(asked, language, inferred)
        if advice.satisfactory and advice.tools:
            named = {tool.name for tool in advice.tools}
            agreed = tuple(tool for tool in inferred if tool.name in named)  # with the places that speak for it
            return ToolDiscoveryResponse(tier=2, confidence=scan.confidence, tools=agreed or advice.tools)
        options = build_options(self._root, category, language, inferred, advice, path)
        answer = await self._ask_user(asked, options) if self._ask_user is not None else None
        if answer is None:
            usual = default_tool(self._root, category, language, path)
            tools = inferred or ((usual,) if usual is not None else ())
            return ToolDiscoveryResponse(
                tier=3, confidence=scan.confidence, tools=tools, requires_user=True, user_options=options
            )
        choice = checked_choice(answer)
        await chosen.write(language, choice)
        tool = chosen_tool(self._root, category, language, choice, (each.tool for each in options), path)
        return ToolDiscoveryResponse(tier=3, confidence=scan.confidence, tools=(tool,))

    async def _researched(
        self, request: ToolDiscoveryRequest, language: str, inferred: Sequence[DiscoveredTool]
    ) -> Recommendation:
        if self._research is None:
            return _NOTHING
        try:
            found = await self._research(request, inferred)
        except ClewError:
            return _NOTHING  # what cannot be found out now is for the user to decide
        tools = tuple(self._completed(tool, request, language) for tool in found.tools if tool.name.strip())
        return msgspec.structs.replace(found, tools=tools)

    def _completed(self, tool: DiscoveredTool, request: ToolDiscoveryRequest, language: str) -> DiscoveredTool:
        category, path = request.tool_category, quoted_path(request.target_path)
        command = tool.run_command or command_of(tool.name, category, path)
        return msgspec.structs.replace(
            tool,
            category=category,
            language=tool.language or language,
            run_command=command,
            install_cmd=tool.install_cmd or install_of(tool.name, category, language),
            is_installed=is_installed(self._root, tool.name, command),
            source="academic_research",
        )

    async def _grounds(self, files: ProjectFiles, chosen: ToolPreferences) -> Grounds:
        content = await asyncio.to_thread(files.fingerprint)
        checkout = await asyncio.to_thread(checkout_of, Path(self._root))
        return Grounds(checkout=checkout, files=content, user_overrides=await chosen.read())

    def _choices(self, request: ToolDiscoveryRequest) -> ToolPreferences:
        preferences = UserPreferences(self._trail, self._by, self._clock, request.session_id)
        return ToolPreferences(preferences, request.tool_category)

    def _refreshed(self, known: ToolDiscoveryResponse) -> ToolDiscoveryResponse:
        """What is installed changes without any file of the project changing."""
        tools = (
            msgspec.structs.replace(tool, is_installed=is_installed(self._root, tool.name, tool.run_command))
            for tool in known.tools
        )
        return msgspec.structs.replace(known, tools=tuple(tools))

    def _checked(self, request: ToolDiscoveryRequest) -> ToolDiscoveryRequest:
        try:
            real = Path(os.path.realpath(os.path.join(self._root, request.target_path)))
        except ValueError:
            raise InvalidInput("target_path", "is no path") from None
        if not real.is_relative_to(self._root):
            raise InvalidInput("target_path", "leads out of the project", hint="Give a path below its folder")
        target = real.relative_to(self._root).as_posix()
        languages = tuple(dict.fromkeys(filter(None, map(normal_language, request.languages))))
        return msgspec.structs.replace(request, target_path="" if target == "." else target, languages=languages)
