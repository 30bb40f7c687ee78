"""`get`: run entries concurrently. Results keep the order of the entries; a failure affects its own entry only."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from clew.access import Principal
from clew.catalog.indexing.document_nodes import MAX_CONTENT
from clew.catalog.operations.answers import MAX_ITEMS, GetSummary, Item, MalformedItem, Result, Results
from clew.catalog.operations.dead_ends import find_leading
from clew.catalog.operations.lookup import Lookup
from clew.catalog.operations.markdown import render_results
from clew.catalog.operations.text import fence, inline
from clew.catalog.operations.tool_execution import Refused, attempt, cut, text_of
from clew.catalog.registry import DomainRegistry, RoutedTool
from clew.catalog.route import CatalogRoute, parse_route
from clew.catalog.workspace.skill_routes import FindSkillRoutes, no_skill_routes
from clew.clock import Clock
from clew.errors import ClewError, InvalidInput, TooLarge
from clew.lazy_pattern import lazy_pattern
from clew.llm.tokens import estimate_tokens
from clew.secrecy import mask_secrets
from clew.skills.exposure import Exposed, Exposure, Exposures
from clew.tools import Guidance, GuidedContent, Tool, ToolContext, ToolLimits
from clew.tools.content import as_content

Report = Callable[[float, float | None, str], Awaitable[None]]
log = logging.getLogger(__name__)

MAX_GUIDANCE = 50
MAX_PARTS = 20
MAX_LEADING = 4
_LIKE_A_ROUTE = lazy_pattern(r"([a-z][a-z0-9-]{0,62})(?::/{0,2}|/)([!-~]{1,200})")
"""Matches a malformed route that starts with the name of a domain."""


class GetOperation:
    """Runs entries. With `strict`, only routes in the caller's exposure set, or opened by its loaded skills, are
    allowed."""

    def __init__(
        self,
        registry: DomainRegistry,
        exposures: Exposures,
        lookup: Lookup,
        clock: Clock,
        *,
        strict: bool,
        skill_routes: FindSkillRoutes = no_skill_routes,
    ) -> None:
        self._registry = registry
        self._exposures = exposures
        self._lookup = lookup
        self._clock = clock
        self._strict = strict
        self._find_skill_routes = skill_routes
        self._slots: dict[str, asyncio.Semaphore] = {}

    async def get(
        self,
        items: Sequence[Item | MalformedItem],
        *,
        by: Principal,
        reader: Principal,
        handle: str | None = None,
        report: Report | None = None,
    ) -> Results:
        """Run all entries at once. Raises InvalidInput, TooLarge (too many entries), HandleRefused."""
        if not items:
            raise InvalidInput("routes", "is empty", hint="Give at least one route, as `ask` shows them")
        if len(items) > MAX_ITEMS:
            raise TooLarge("routes", len(items), MAX_ITEMS, "entries")
        exposure = await self._exposures.open(handle, by=by)
        if self._strict and exposure.version and any(exposure.find(item.route) is None for item in items):
            exposure = await self._exposures.reload(exposure.handle, by=by)
        done = _Progress(report, len(items))
        turns = [_Turn(item=item, exposure=exposure, by=by, reader=reader, tell=done.part(item)) for item in items]
        results = await asyncio.gather(*(done.count(self._result(turn)) for turn in turns))
        try:
            exposure = await self._exposures.reveal(exposure, self._guided(results), by=by)
        except ClewError as error:  # the results count even if their guidance cannot be recorded
            log.warning("the guidance of %d routes was not recorded: %s", len(items), error.message)
        succeeded = sum(result.success for result in results)
        summary = GetSummary(total=len(results), success=succeeded, failed=len(results) - succeeded)
        answer = Results(results=results, summary=summary, handle=exposure.handle)
        return msgspec.structs.replace(answer, markdown=render_results(answer))

    async def _result(self, turn: _Turn) -> Result:
        if isinstance(turn.item, MalformedItem):
            return Result(route=turn.item.route, success=False, error=turn.item.failure)
        try:
            data = await self._run(turn)
        except Refused as refusal:
            return Result(route=turn.item.route, success=False, error=refusal.failure)
        return Result(route=turn.item.route, success=True, data=data)

    async def _run(self, turn: _Turn) -> GuidedContent:
        """Run one entry: parse the route, look it up, check scopes, exposure and arguments, then execute. Raises
        Refused."""
        try:
            route = parse_route(turn.item.route)
        except InvalidInput as error:
            raise Refused("INVALID_ROUTE", self._with_guess(error, turn)) from None
        if route.kind == "resources":
            return await self._read(route, turn)
        routed = self._registry.find_tool(route)
        if routed is None:
            raise Refused("NOT_FOUND", self._not_found(route, turn.by))
        self._require_scopes(route, routed.scopes, turn.by)
        if routed.tool.effects.destroys and not turn.by.may("delete"):
            raise Refused("ACCESS_DENIED", f"{route} can destroy data, so it needs the role curator")
        self._require_revealed(route, turn)
        data = await self._execute(routed, _checked(routed.tool, turn.params), turn)
        guidance = await self._allowed(data.guidance, routed.text, turn)
        return GuidedContent(content=data.content, guidance=guidance)

    def _not_found(self, route: CatalogRoute, by: Principal) -> str:
        if waiting := self._registry.tell_waiting(route.domain):
            return f"there is no {route} yet: {waiting}"
        return f"there is no {route}. {self._suggest(route, by) or self._offer(route, by)}"

    def _suggest(self, route: CatalogRoute, by: Principal) -> str:
        """A sentence with the route that was probably meant, or nothing."""
        close = self._registry.suggest(route, by)
        return f"Did you mean {close}?" if close else ""

    def _offer(self, route: CatalogRoute, by: Principal) -> str:
        """The first entry points of the domain, or how to find routes."""
        domain = next((each for each in self._registry.domains(by) if each.name == route.domain), None)
        entries = list(self._registry.entry_points(domain, by)) if domain is not None else []
        return f"Start with {' or '.join(entries[:MAX_LEADING])}" if entries else "`ask` shows the routes that exist"

    def _with_guess(self, error: InvalidInput, turn: _Turn) -> str:
        """The error message for a malformed route, with a suggestion if it starts with the name of a visible domain."""
        found = _LIKE_A_ROUTE.fullmatch(turn.item.route)
        if found is None or all(each.name != found[1] for each in self._registry.domains(turn.by)):
            return str(error)
        route = CatalogRoute(found[1], "tools", found[2])
        return f"{error.message}. {self._suggest(route, turn.by) or self._offer(route, turn.by)}"

    def _require_scopes(self, route: CatalogRoute, scopes: frozenset[str], by: Principal) -> None:
        if lacking := sorted(scopes - by.scopes):
            raise Refused("ACCESS_DENIED", f"{route} needs the scopes {', '.join(lacking)}, which you do not hold")

    def _require_revealed(self, route: CatalogRoute, turn: _Turn) -> None:
        if not self._strict or turn.exposure.find(str(route)) is not None:
            return
        brought = self._find_skill_routes(turn.exposure)
        if str(route) in brought.routes:
            return
        if waiting := brought.tell_waiting(str(route)):
            raise Refused("NOT_REVEALED", f"{route} {waiting}; until then it cannot be used")
        raise Refused("NOT_REVEALED", f"{route} was not shown to you yet. {self._how_to_reveal(route, turn.by)}")

    def _how_to_reveal(self, route: CatalogRoute, by: Principal) -> str:
        """A sentence with the calls that reveal a route. `ask` reveals a route named in the question; a hidden tool is
        revealed only by guidance."""
        if not route.is_hidden:
            return f'Call ask(query="{route}", domain="{route.domain}"), and pass the handle on'
        leading = find_leading(self._registry, route, by)
        if not leading:
            return "It is hidden, and no entry point of its domain is open to you: another domain may lead to it"
        return (
            f'It is hidden: call ask(query="{leading[0]}", domain="{route.domain}"), then get '
            f"{' or '.join(leading[:MAX_LEADING])} and follow its guidance; pass the handle on"
        )

    async def _read(self, route: CatalogRoute, turn: _Turn) -> GuidedContent:
        if not await self._lookup.can_see(route, by=turn.reader):
            if waiting := self._registry.tell_waiting(route.domain):
                raise Refused("NOT_FOUND", f"{route} is not available yet: {waiting}")
            close = await self._lookup.suggest(route, by=turn.reader)
            further = f"Did you mean {' or '.join(close)}?" if close else "`ask` shows what exists"
            raise Refused("NOT_FOUND", f"{route} does not exist, or you may not see it. {further}")
        self._require_revealed(route, turn)
        if turn.params:
            given = inline(", ".join(map(str, turn.params)), 200)
            raise Refused("INVALID_PARAMS", f"a resource takes no parameters, but got {given}")

        async def read() -> GuidedContent:
            found = await self._lookup.read(route, by=turn.reader)
            content = cut(as_content(found.content), MAX_CONTENT).content
            steps = [Guidance(route=uri, prose="goes on here") for uri in found.rest[:MAX_PARTS]]
            about = f"Content of `{route}`, {inline(found.name, 120)}."
            if found.rest:
                about += f" It goes on in {len(found.rest)} further parts."
            return GuidedContent(content=fence(content, about), guidance=steps)

        return await attempt(str(route), read, ToolLimits().seconds)

    async def _execute(self, routed: RoutedTool, arguments: dict[str, Any], turn: _Turn) -> GuidedContent:
        route, tool = routed.text, routed.tool
        slot = self._slots.setdefault(route, asyncio.Semaphore(tool.limits.at_once))
        context = ToolContext(
            by=turn.by, client=routed.domain.client, route=route, handle=turn.exposure.handle, report=turn.tell
        )

        async def call() -> GuidedContent:
            return cut(as_content(await tool.call(arguments, context)), tool.limits.characters)

        async with slot:
            return await attempt(route, call, tool.limits.seconds)

    async def _allowed(self, guidance: Sequence[Guidance], by_tool: str, turn: _Turn) -> list[Guidance]:
        """The guidance without routes that do not exist or that the caller may not use."""
        return [each for each in guidance[:MAX_GUIDANCE] if await self._may_follow(each, by_tool, turn)]

    async def _may_follow(self, each: Guidance, by_tool: str, turn: _Turn) -> bool:
        try:
            route = parse_route(each.route)
        except InvalidInput:
            log.warning("%s leads to %s, which is not a route", by_tool, inline(each.route, 100))
            return False
        if route.kind == "resources":
            return await self._lookup.can_see(route, by=turn.reader)
        routed = self._registry.find_tool(route)
        if routed is None and self._registry.find_domain(route.domain) is not None:
            log.warning("%s leads to %s, which does not exist", by_tool, route)
        return routed is not None and routed.scopes <= turn.by.scopes

    def _guided(self, results: Sequence[Result]) -> list[Exposed]:
        """The routes in the guidance of the results."""
        now = self._clock.now()
        return [
            Exposed(
                item=step.route,
                via="guidance",
                why=f"{result.route}: {step.prose[:200]}",
                since=now,
                tokens=estimate_tokens(step.route + step.prose),
            )
            for result in results
            if result.data is not None
            for step in result.data.guidance
        ]


def _checked(tool: Tool, params: dict[str, Any]) -> dict[str, Any]:
    try:
        return tool.check(params)
    except InvalidInput as error:
        raise Refused("INVALID_PARAMS", str(error)) from None
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise
    except BaseException as error:  # the boundary of foreign code, which may raise SystemExit
        raise Refused("INVALID_PARAMS", inline(mask_secrets(text_of(error)), 500) or type(error).__name__) from None


class _Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One entry and the caller that it runs for."""

    item: Item | MalformedItem
    exposure: Exposure
    by: Principal
    reader: Principal
    tell: Report | None

    @property
    def params(self) -> dict[str, Any]:
        return (self.item.params if isinstance(self.item, Item) else None) or {}


class _Progress:
    """Reports how many entries are done, including the progress that tools report themselves."""

    def __init__(self, report: Report | None, total: int) -> None:
        self._report = report
        self._total = total
        self._done = 0

    def part(self, item: Item | MalformedItem) -> Report | None:
        """A progress callback for one tool. It moves the total by less than one entry, and never backwards."""
        report = self._report
        if report is None:
            return None
        most = 0.0

        async def tell(amount: float, total: float | None, what: str) -> None:
            nonlocal most
            most = max(most, min(amount / total, 0.99) if total else 0.0)
            await report(self._done + most, self._total, f"{item.route}: {inline(what)}")

        return tell

    async def count(self, work: Awaitable[Result]) -> Result:
        result = await work
        self._done += 1
        if self._report is not None:
            await self._report(self._done, self._total, result.route)
        return result
