"""Discovery of development tools: which linter, formatter, type checker, test framework or language server a project
uses or should use. The project decides first, then the documents that recommend a tool, then the user. Nothing that is
found is run. Discoveries are cached on the trail for all sessions of an owner."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from clew.access import Principal
from clew.catalog.operations.text import inline
from clew.clock import Clock
from clew.errors import ClewError, InvalidInput, SourceError
from clew.knowledge.evidence.trust import citation_of
from clew.knowledge.git.run import find_head, run_git
from clew.knowledge.history.lessons import UserPreferences
from clew.knowledge.nodes.node_store import Node, ScoredNode
from clew.knowledge.project.tool_scan import ProjectFiles, describe_tool, is_installed, scan_project
from clew.knowledge.project.tools import (
    DiscoveredTool,
    KnownTool,
    ToolCategory,
    ToolDiscoveryEntry,
    ToolDiscoveryRequest,
    ToolDiscoveryResponse,
    ToolOption,
    category_label,
    default_toolsets,
    known_tools,
    normal_language,
    tools_for,
)
from clew.knowledge.upsert import find_keyed, keep_keyed, keyed_id
from clew.secrecy import mask_keys
from clew.trail.model.breadcrumb import Draft
from clew.trail.store import Trail

SCHEMA = "system.devtools.v1"
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

Research = Callable[[ToolCategory, str], Awaitable[tuple[str, str] | None]]
"""Finds the tool that is clearly recommended for a category and a language, and the reason."""
State = dict[str, Any]
"""The state that a discovery is valid for: `checkout` (branch and commit), content of `files`, and `user_overrides`."""


class ToolDiscovery:
    """Discovers the tools of one project. `scans` counts searches of its files: a valid cache entry needs none. Calls
    raise the errors of the trail, and InvalidInput; no file of the project makes them fail."""

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
        files = await asyncio.to_thread(ProjectFiles, self._root, request.target_path)
        state: State = {
            "checkout": await asyncio.to_thread(checkout_of, Path(self._root)),
            "files": await asyncio.to_thread(files.fingerprint),
            "user_overrides": await self._read_choices(request),
        }
        cached = None if force_refresh else await self._find_cached(request, state)
        if cached is not None:
            return cached
        response = await self._discover(request, files, state["user_overrides"])
        if not response.requires_user:
            await self._store(request, state, response)
        return response

    async def prefer(self, category: ToolCategory, name: str, run_command: str = "", language: str = "") -> str:
        """Store the tool that the user chose, for all sessions, and return its language: the given one, that of most
        files, or none. Raises InvalidInput for an empty name and for a long command."""
        name = inline(mask_keys(name), MAX_NAME).partition(": ")[0].strip()
        if not name or name == CUSTOM:
            raise InvalidInput("name", "names no tool", hint="Name one of the options, or a tool of your own")
        command = " ".join(mask_keys(run_command).split())
        if len(command) > MAX_COMMAND:
            raise InvalidInput("run_command", f"is over {MAX_COMMAND} characters")
        files = await asyncio.to_thread(ProjectFiles, self._root, "")
        found = normal_language(language) or next(iter(await asyncio.to_thread(files.languages)), "")
        preferences = UserPreferences(self._trail, self._by, self._clock)
        said = f"{name}: {command}" if command else name
        await preferences.set_preference(f"devtools/{category}/{found or _UNKNOWN}", said)
        return found

    async def _read_choices(self, request: ToolDiscoveryRequest) -> dict[str, str]:
        """The choices of the user by language: the name of a tool, and its command after a colon."""
        preferences = UserPreferences(self._trail, self._by, self._clock, request.session_id)
        known, prefix = await preferences.get_preferences(), f"devtools/{request.tool_category}/"
        names = {*known.explicit, *known.implicit, *known.session_overrides}
        chosen = {name: known.effective(name) for name in sorted(names) if name.startswith(prefix)}
        return {name.removeprefix(prefix): value for name, value in chosen.items() if value}

    async def _discover(
        self, request: ToolDiscoveryRequest, files: ProjectFiles, chosen: dict[str, str]
    ) -> ToolDiscoveryResponse:
        """Settings of the project decide first, then the choice of the user, then research, then options."""
        self.scans += 1
        category = request.tool_category
        scan = await asyncio.to_thread(scan_project, files, category, request.languages)
        response = ToolDiscoveryResponse(tier=1, confidence=scan.confidence, tools=scan.tools)
        if scan.confidence == "high":
            return response
        language = scan.open_language
        inferred = [tool for tool in scan.tools if not language or known_tools()[tool.name].serves(language)]
        name, _, command = chosen.get(language or _UNKNOWN, "").partition(": ")
        if name:
            tool = _as_chosen(self._suggest(request, inferred, language, name), self._root, command)
            return msgspec.structs.replace(response, tier=3, tools=(tool,))
        advice = await self._recommend(category, language)
        if advice is not None:
            return msgspec.structs.replace(
                response, tier=2, tools=(self._suggest(request, inferred, language, *advice),)
            )
        usual = [default_toolsets().get(each, {}).get(category, "") for each in ([language] if language else _COMMON)]
        names = dict.fromkeys([*(tool.name for tool in inferred), *filter(None, usual), *tools_for(category, language)])
        offered = [self._suggest(request, inferred, language, each) for each in names]
        return msgspec.structs.replace(
            response,
            tier=3,
            tools=tuple(inferred or (offered[:1] if language and usual[0] else ())),
            requires_user=True,
            user_options=build_options(offered, category, language),
        )

    def _suggest(
        self,
        request: ToolDiscoveryRequest,
        inferred: Sequence[DiscoveredTool],
        language: str,
        name: str,
        rationale: str = "",
    ) -> DiscoveredTool:
        """A tool by its name: the tool found in the project, which names its place there, or the tool of the table."""
        tool = describe_tool(self._root, name, request.tool_category, language, request.target_path)
        why = rationale or f"A common {category_label(request.tool_category)}{f' for {language}' if language else ''}"
        same = [each for each in inferred if each.name == name]
        return same[0] if same else msgspec.structs.replace(tool, source="academic_research", rationale=why)

    async def _recommend(self, category: ToolCategory, language: str) -> tuple[str, str] | None:
        try:
            return await self._research(category, language) if self._research else None
        except ClewError:
            return None  # the user decides if research fails

    def _check(self, request: ToolDiscoveryRequest) -> ToolDiscoveryRequest:
        try:
            real = Path(os.path.realpath(os.path.join(self._root, request.target_path)))
        except ValueError:
            raise InvalidInput("target_path", "is not a path") from None
        if not real.is_relative_to(self._root):
            raise InvalidInput("target_path", "leads out of the project", hint="Give a path below its folder")
        target = real.relative_to(self._root).as_posix()
        languages = tuple(dict.fromkeys(filter(None, map(normal_language, request.languages))))
        return msgspec.structs.replace(request, target_path="" if target == "." else target, languages=languages)

    async def _find_cached(self, request: ToolDiscoveryRequest, state: State) -> ToolDiscoveryResponse | None:
        """The cached response if it is valid; installed programs are looked up again."""
        found = await find_keyed(self._trail, self._key(request), by=self._by)
        if found is None or found.schema_name != SCHEMA:
            return None
        try:
            entry = msgspec.convert(found.context, ToolDiscoveryEntry)
        except msgspec.ValidationError:
            return None  # somebody else wrote something there
        if any(getattr(entry, name) != value for name, value in state.items()):
            return None
        tools = await asyncio.to_thread(lambda: tuple(map(self._refresh, entry.tools)))
        return ToolDiscoveryResponse(tier=entry.tier, confidence=entry.confidence, tools=tools)

    def _refresh(self, tool: DiscoveredTool) -> DiscoveredTool:
        return msgspec.structs.replace(tool, is_installed=is_installed(self._root, tool.name, tool.run_command))

    async def _store(self, request: ToolDiscoveryRequest, state: State, response: ToolDiscoveryResponse) -> None:
        """Replace the cache entry of a request, if the caller may write at all."""
        key = self._key(request)
        entry = ToolDiscoveryEntry(
            id=keyed_id(self._by.owner_id, key),
            session_id=request.session_id,
            project_path=self._root,
            discovered_at=self._clock.now(),
            tools=response.tools,
            tier=response.tier,
            confidence=response.confidence,
            **state,
        )
        draft = Draft(title=f"Tools: {request.tool_category}", context=msgspec.to_builtins(entry), schema_name=SCHEMA)
        await keep_keyed(self._trail, key, draft, by=self._by)

    def _key(self, request: ToolDiscoveryRequest) -> str:
        """The key of a cache entry; principals of other scopes have entries of their own."""
        asked = [self._root, request.tool_category, request.target_path, request.languages, sorted(self._by.scopes)]
        return f"devtools:{hashlib.sha256(msgspec.json.encode(asked)).hexdigest()}"


def checkout_of(root: Path) -> str:
    """The branch and commit that are checked out; empty if there is no git."""
    try:
        branch = run_git(root, ["symbolic-ref", "--quiet", "HEAD"]).decode(errors="replace").strip()
    except SourceError:
        branch = ""
    return f"{branch} {find_head(root) or ''}".strip()


def document_research(search: Callable[[str, int], Awaitable[list[ScoredNode]]]) -> Research:
    """Research in the documents that `search` finds for a question, up to a limit. A document recommends a tool if a
    line names it together with its purpose; a tool that several documents name, and twice as many as the next, is
    clearly recommended."""

    async def research(category: ToolCategory, language: str) -> tuple[str, str] | None:
        question = f"recommended {category.replace('_', ' ')} for {language}"
        found = [each.node for each in await search(question, MAX_SEARCHED)]
        named = {name: _naming(found, name, category) for name in tools_for(category, language)}
        ranked = sorted((name for name in named if named[name]), key=lambda name: -len(named[name]))
        counts = [*(len(named[name]) for name in ranked), 0, 0]
        if counts[0] < ENOUGH or counts[0] < 2 * counts[1]:
            return None
        cited = ", ".join(citation_of(node) for node in named[ranked[0]][:ENOUGH])
        return ranked[0], inline(f"{ranked[0]} is recommended in {cited}")

    return research


def _naming(nodes: Sequence[Node], name: str, category: ToolCategory) -> list[Node]:
    """The nodes, one a document, that name a tool together with its purpose."""
    tool = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])", re.IGNORECASE)
    purpose = re.compile(_PURPOSE[category], re.IGNORECASE)
    found: dict[str, Node] = {}
    for node in nodes:
        if any(tool.search(line) and purpose.search(line) for line in node.content.splitlines()):
            found.setdefault(node.path or node.url or node.id, node)
    return list(found.values())


def _as_chosen(tool: DiscoveredTool, root: str, command: str) -> DiscoveredTool:
    """A tool that the user chose, with the command that the user gave."""
    run = command or tool.run_command
    installed = is_installed(root, tool.name, run)
    return msgspec.structs.replace(
        tool, run_command=run, is_installed=installed, source="user_choice", rationale="The user chose it"
    )


def build_options(tools: Sequence[DiscoveredTool], category: ToolCategory, language: str) -> tuple[ToolOption, ...]:
    """The options of the user: these tools, the recommended one first, and last another tool that the user names."""
    listed = [_option(tool, is_first=at == 0) for at, tool in enumerate(tools[:MAX_OPTIONS])]
    own = DiscoveredTool(name=CUSTOM, category=category, language=language, source="user_choice")
    return (*listed, ToolOption(tool=own, pros=("Whatever fits",), cons=("Its command has to be given",)))


def _option(tool: DiscoveredTool, is_first: bool) -> ToolOption:
    known = known_tools().get(tool.name, KnownTool())
    first = [tool.rationale] if tool.source == "package_manifest" or not known.pros else []
    pros = (*first, *known.pros, *(["Installed here"] if tool.is_installed else []))
    against = "Not configured here yet" if tool.is_installed else "Not installed here"
    return ToolOption(tool=tool, pros=pros, cons=(*known.cons, against), recommended=is_first)
