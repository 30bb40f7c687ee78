"""Discovery of development tools: which linter, formatter, type checker, test framework or language server a project
uses or should use. The project decides first, then research, then the user. Nothing that is found is run.

Discoveries are cached on the trail for all sessions of an owner."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.errors import ClewError, InvalidInput, SourceError
from clew.knowledge.git import run_git
from clew.knowledge.git_home import find_head
from clew.knowledge.history.keyed import find_keyed, keep_keyed, keyed_id
from clew.knowledge.history.preferences import UserPreferences
from clew.knowledge.project.tool_choice import Offer, ToolPreferences, check_choice, find_choice
from clew.knowledge.project.tool_data import normal_language
from clew.knowledge.project.tool_records import (
    DiscoveredTool,
    Recommendation,
    Research,
    ToolCategory,
    ToolChoice,
    ToolDiscoveryEntry,
    ToolDiscoveryRequest,
    ToolDiscoveryResponse,
)
from clew.knowledge.project.tool_scan import ProjectFiles, Scan, is_installed, scan_project
from clew.trail.breadcrumb import Draft
from clew.trail.store import Trail

SCHEMA = "system.devtools.v1"


class CacheKey(msgspec.Struct, frozen=True, kw_only=True):
    """The state that a discovery is valid for: branch and commit, content of the files, choices of the user."""

    checkout: str
    files: dict[str, str]
    user_overrides: dict[str, str]


class ToolDiscovery:
    """Discovers the tools of one project. `scans` counts searches of its files: a valid cache entry needs none. Calls
    raise what the trail raises, and InvalidInput; no file of the project makes them fail."""

    def __init__(
        self, code_root: Path, trail: Trail, clock: Clock, by: Principal, research: Research | None = None
    ) -> None:
        self._root = os.path.realpath(code_root)
        self._trail, self._clock, self._by, self._research = trail, clock, by, research
        self.scans = 0

    async def discover(self, request: ToolDiscoveryRequest, force_refresh: bool = False) -> ToolDiscoveryResponse:
        """Return the tools for a request, or options for the user, whose choice `prefer` stores.

        Raises InvalidInput for a target outside of the project.
        """
        request = self._check(request)
        preferences = UserPreferences(self._trail, self._by, self._clock, request.session_id)
        files = await asyncio.to_thread(ProjectFiles, self._root, request.target_path)
        state = CacheKey(
            checkout=await asyncio.to_thread(checkout_of, Path(self._root)),
            files=await asyncio.to_thread(files.fingerprint),
            user_overrides=await ToolPreferences(preferences, request.tool_category).read(),
        )
        cached = None if force_refresh else await self._find_cached(request, state)
        if cached is not None:
            return cached
        response = await self._discover(request, files, state.user_overrides)
        if not response.requires_user:
            await self._store(request, state, response)
        return response

    async def prefer(self, category: ToolCategory, choice: ToolChoice, language: str = "") -> str:
        """Store the choice of the user for all sessions and return its language: the given one, that of most files, or
        none. Raises InvalidInput for a choice that names no tool."""
        checked = check_choice(choice)
        files = await asyncio.to_thread(ProjectFiles, self._root, "")
        found = normal_language(language) or next(iter(await asyncio.to_thread(files.languages)), "")
        preferences = UserPreferences(self._trail, self._by, self._clock)
        await ToolPreferences(preferences, category).write(found, checked)
        return found

    async def _discover(
        self, request: ToolDiscoveryRequest, files: ProjectFiles, chosen: dict[str, str]
    ) -> ToolDiscoveryResponse:
        self.scans += 1
        scan = await asyncio.to_thread(scan_project, files, request.tool_category, request.languages)
        if scan.confidence == "high":
            return ToolDiscoveryResponse(tier=1, confidence="high", tools=scan.tools)
        settled = [tool for tool in scan.tools if tool.config_path]
        answers = [await self._settle(request, each, scan, chosen) for each in scan.open_languages or ("",)]
        return ToolDiscoveryResponse(
            tier=max(answer.tier for answer in answers),
            confidence=scan.confidence,
            tools=tuple(dict.fromkeys((*settled, *(tool for answer in answers for tool in answer.tools)))),
            requires_user=any(answer.requires_user for answer in answers),
            user_options=tuple(option for answer in answers for option in answer.user_options),
        )

    async def _settle(
        self, request: ToolDiscoveryRequest, language: str, scan: Scan, chosen: dict[str, str]
    ) -> ToolDiscoveryResponse:
        """The second and third tier for one language, which may be unknown."""
        offer = Offer(self._root, request.tool_category, language, request.target_path)
        inferred = scan.tools_for(language)
        response = ToolDiscoveryResponse(tier=3, confidence=scan.confidence)
        if (choice := find_choice(chosen, language)) is not None:
            return msgspec.structs.replace(response, tools=(offer.chosen(choice, inferred),))
        request = msgspec.structs.replace(request, languages=(language,) if language else ())
        advice = await self._recommend(request, offer, inferred)
        if advice.satisfactory and advice.tools:
            named = {tool.name for tool in advice.tools}
            agreed = tuple(tool for tool in inferred if tool.name in named)  # these name their place in the project
            return msgspec.structs.replace(response, tier=2, tools=agreed or advice.tools)
        usual = offer.default()
        tools = inferred or ((usual,) if usual is not None else ())
        options = offer.options(inferred, advice.tools)
        return msgspec.structs.replace(response, tools=tools, requires_user=True, user_options=options)

    async def _recommend(
        self, request: ToolDiscoveryRequest, offer: Offer, inferred: Sequence[DiscoveredTool]
    ) -> Recommendation:
        if self._research is None:
            return Recommendation()
        try:
            found = await self._research(request, inferred)
        except ClewError:
            return Recommendation()  # the user decides where research fails
        tools = tuple(offer.completed(tool) for tool in found.tools if tool.name.strip())
        return msgspec.structs.replace(found, tools=tools)

    def _check(self, request: ToolDiscoveryRequest) -> ToolDiscoveryRequest:
        try:
            real = Path(os.path.realpath(os.path.join(self._root, request.target_path)))
        except ValueError:
            raise InvalidInput("target_path", "is no path") from None
        if not real.is_relative_to(self._root):
            raise InvalidInput("target_path", "leads out of the project", hint="Give a path below its folder")
        target = real.relative_to(self._root).as_posix()
        languages = tuple(dict.fromkeys(filter(None, map(normal_language, request.languages))))
        return msgspec.structs.replace(request, target_path="" if target == "." else target, languages=languages)

    async def _find_cached(self, request: ToolDiscoveryRequest, state: CacheKey) -> ToolDiscoveryResponse | None:
        """The cached response, where it is valid; what is installed is looked up again."""
        found = await find_keyed(self._trail, self._key(request), by=self._by)
        try:
            is_entry = found is not None and found.schema_name == SCHEMA
            entry = msgspec.convert(found.context, ToolDiscoveryEntry) if found and is_entry else None
        except msgspec.ValidationError:
            return None  # somebody else wrote something there
        if entry is None or state != CacheKey(
            checkout=entry.checkout, files=entry.files, user_overrides=entry.user_overrides
        ):
            return None
        tools = await asyncio.to_thread(lambda: tuple(map(self._refresh, entry.tools)))
        return ToolDiscoveryResponse(tier=entry.tier, confidence=entry.confidence, tools=tools)

    def _refresh(self, tool: DiscoveredTool) -> DiscoveredTool:
        return msgspec.structs.replace(tool, is_installed=is_installed(self._root, tool.name, tool.run_command))

    async def _store(self, request: ToolDiscoveryRequest, state: CacheKey, response: ToolDiscoveryResponse) -> None:
        """Replace the cache entry of a request, if the caller may write at all."""
        key = self._key(request)
        entry = ToolDiscoveryEntry(
            id=keyed_id(self._by.owner_id, key),
            session_id=request.session_id,
            project_path=self._root,
            discovered_at=self._clock.now(),
            tools=response.tools,
            tier=response.tier,
            user_overrides=state.user_overrides,
            confidence=response.confidence,
            checkout=state.checkout,
            files=state.files,
        )
        draft = Draft(title=f"Tools: {request.tool_category}", context=msgspec.to_builtins(entry), schema_name=SCHEMA)
        await keep_keyed(self._trail, key, draft, by=self._by)

    def _key(self, request: ToolDiscoveryRequest) -> str:
        """The key of a cache entry; principals of other scopes have entries of their own."""
        asked = [self._root, request.tool_category, request.target_path, request.languages, sorted(self._by.scopes)]
        return f"devtools:{hashlib.sha256(msgspec.json.encode(asked)).hexdigest()}"


def checkout_of(root: Path) -> str:
    """The branch and commit that are checked out; empty where there is no git."""
    try:
        branch = run_git(root, ["symbolic-ref", "--quiet", "HEAD"]).decode(errors="replace").strip()
    except SourceError:
        branch = ""
    return f"{branch} {find_head(root) or ''}".strip()
