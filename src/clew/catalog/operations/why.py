"""Explains why a caller can or cannot use a route; the same for the command, the API and the page."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from clew.access import Principal
from clew.catalog.operations.lookup import Lookup
from clew.catalog.registry import DomainRegistry, RoutedTool
from clew.catalog.route import CatalogRoute, parse_route
from clew.catalog.workspace.skill_routes import FindSkillRoutes, no_skill_routes
from clew.errors import NotFound
from clew.llm.tokens import estimate_tokens
from clew.skills.exposure import Exposed, Exposure, Exposures


class RouteExplanation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The explanation of a route, or of `skill:NAME` and the like. `reasons` say it in sentences, the decisive one
    first."""

    route: str
    is_visible: bool
    reasons: Sequence[str]
    kind: str = ""
    source: str = ""
    is_searchable: bool = False
    needs: Sequence[str] = ()
    lacking: Sequence[str] = ()
    tokens: int = 0
    exposed: Exposed | None = None


class WhyOperation:
    """Answers `why` from the registry, the trail and an exposure set."""

    def __init__(
        self,
        registry: DomainRegistry,
        lookup: Lookup,
        exposures: Exposures,
        *,
        strict: bool,
        skill_routes: FindSkillRoutes = no_skill_routes,
    ) -> None:
        self._registry = registry
        self._exposures = exposures
        self._lookup = lookup
        self._strict = strict
        self._find_skill_routes = skill_routes

    async def explain(self, text: str, handle: str | None, *, by: Principal, reader: Principal) -> RouteExplanation:
        """Explain why the caller can or cannot use a route. Raises InvalidInput if the text is not a route,
        HandleRefused."""
        route = parse_route(text)
        exposure = await self.exposure(handle, by=by)
        if route.kind == "resources":
            return await self._explain_resource(route, exposure, reader)
        routed = self._registry.find_tool(route)
        if routed is None:
            if waiting := self._registry.tell_waiting(route.domain):
                return RouteExplanation(route=text, is_visible=False, reasons=[f"The domain {waiting}."])
            close = self._registry.suggest(route, by)
            hint = f" {close} is spelled alike." if close else ""
            return RouteExplanation(route=text, is_visible=False, reasons=[f"No domain registers this route.{hint}"])
        return self._explain_tool(routed, exposure, by)

    async def exposure(self, handle: str | None, *, by: Principal) -> Exposure:
        """The exposure set of the handle or of the caller's session; an empty set if there is neither. Raises
        HandleRefused."""
        is_known = handle is not None or by.session is not None
        return await self._exposures.open(handle, by=by) if is_known else Exposure(handle="")

    def _explain_tool(self, routed: RoutedTool, exposure: Exposure, by: Principal) -> RouteExplanation:
        tool, route = routed.tool, routed.text
        lacking, exposed = sorted(routed.scopes - by.scopes), exposure.find(route)
        found = self._find_skill_routes(exposure)
        brought, waiting = found.routes.get(route, ()), found.tell_waiting(route)
        reasons, is_visible = [], not lacking
        if lacking:
            reasons.append(f"It needs the scopes {', '.join(lacking)}, which you do not hold.")
        elif exposed is not None:
            reasons.append(_exposure_sentence(exposed))
        elif brought:
            reasons.append(f"It came with {', '.join(brought)}, and is there until that is unloaded.")
        elif waiting and not tool.searchable:
            is_visible = False
            reasons.append(f"It {waiting}.")
        elif tool.searchable:
            reasons.append("It is an entry point: every `ask` shows it.")
        else:
            is_visible = False
            reasons.append(
                "It is hidden: only the guidance of another route shows it, and under this handle none has yet."
            )
        if self._strict and exposed is None and not lacking and not brought:
            reasons.append("This catalog is strict: `get` refuses it until `ask` or guidance has shown it.")
        about = f"{route}{tool.description}{routed.params}"
        return RouteExplanation(
            route=route,
            is_visible=is_visible,
            reasons=reasons,
            kind="tool",
            source=tool.source,
            is_searchable=tool.searchable,
            needs=sorted(routed.scopes),
            lacking=lacking,
            tokens=estimate_tokens(about),
            exposed=exposed,
        )

    async def _explain_resource(self, route: CatalogRoute, exposure: Exposure, reader: Principal) -> RouteExplanation:
        exposed = exposure.find(str(route))
        try:
            found = await self._lookup.read_indexed(route, by=reader)
        except NotFound:
            if await self._lookup.can_see(route, by=reader):
                reasons = ["Its domain reads it, and it is not indexed: `get` reads it, `ask` does not list it."]
                return RouteExplanation(
                    route=str(route), is_visible=True, reasons=reasons, kind="resource", exposed=exposed
                )
            reasons = ["There is no such resource, or it needs a scope that you do not hold."]
            return RouteExplanation(
                route=str(route), is_visible=False, reasons=reasons, kind="resource", exposed=exposed
            )
        reasons = ["It is on the trail: `ask` shows it when a question is close to it."]
        if exposed is not None:
            reasons.insert(0, _exposure_sentence(exposed))
        return RouteExplanation(
            route=str(route),
            is_visible=True,
            reasons=reasons,
            kind="resource",
            is_searchable=True,
            needs=sorted(found.scopes),
            tokens=estimate_tokens(found.content),
            exposed=exposed,
        )


def _exposure_sentence(exposed: Exposed) -> str:
    return f"It was shown at {exposed.since:%Y-%m-%d %H:%M} UTC by {exposed.via}: {exposed.why}."
