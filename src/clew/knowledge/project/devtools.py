"""Discovery of development tools: which linter, formatter, type checker, test framework or language server a project
uses or should use. The project decides first, then the documents that recommend a tool, then the user. Nothing that is
found is run. Discoveries are cached on the trail for all sessions of an owner."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shlex
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import cache
from itertools import islice
from pathlib import Path

import msgspec

from clew.access import Principal
from clew.catalog.text import inline
from clew.clock import Clock
from clew.errors import ClewError, InvalidInput, SourceError
from clew.knowledge.evidence.provenance import citation_of
from clew.knowledge.git.run import find_head, run_git
from clew.knowledge.history.lessons import UserPreferences
from clew.knowledge.project.tool_records import (
    DiscoveredTool,
    Recommendation,
    Research,
    ToolCategory,
    ToolChoice,
    ToolDiscoveryEntry,
    ToolDiscoveryRequest,
    ToolDiscoveryResponse,
    ToolOption,
)
from clew.knowledge.project.tool_scan import ProjectFiles, Scan, is_installed, scan_project
from clew.knowledge.project.tool_signs import command_of, default_toolsets, install_of, known_tools, normal_language
from clew.knowledge.upsert import find_keyed, keep_keyed, keyed_id
from clew.secrecy import mask_keys
from clew.trail.breadcrumb import Draft
from clew.trail.nodes import Node, ScoredNode
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


# -- the second tier: documents ---------------------------------------------------------------------------------


def document_research(search: Callable[[str, int], Awaitable[list[ScoredNode]]]) -> Research:
    """Research in the documents that `search` finds for a question, up to a limit. A document recommends a tool where a
    line names it together with its purpose; a tool that several documents name, and twice as many as the next, is
    clearly recommended."""

    async def research(request: ToolDiscoveryRequest, inferred: Sequence[DiscoveredTool]) -> Recommendation:
        category, language = request.tool_category, next(iter(request.languages), "")
        question = f"recommended {category.replace('_', ' ')} for {language}"
        found = [each.node for each in await search(question, MAX_SEARCHED)]
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


# -- the third tier: the choice of the user ---------------------------------------------------------------------


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
