"""The domains of a catalog and their routes, in memory. The trail holds the searchable records."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from typing import TypeVar

import msgspec

from clew.access import Principal
from clew.catalog.domain import Domain
from clew.catalog.operations.answers import CatalogEntry, Section
from clew.catalog.operations.markdown import describe_params, render_entry
from clew.catalog.operations.text import inline
from clew.catalog.resource import Resource
from clew.catalog.route import CatalogRoute, parse_route
from clew.errors import AlreadyExists, NotFound
from clew.llm.tokens import estimate_tokens
from clew.tools import Tool

MOST_KNOWN = 10_000
"""The maximum number of cached lists of entry points, one for each domain and set of scopes."""


class RoutedTool(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A tool at its route, with all scopes that a caller must hold. `text` is the route as text. Its discovery entry is
    built when first shown and then cached, since few of thousands of tools are ever shown."""

    route: CatalogRoute
    text: str
    domain: Domain
    tool: Tool
    scopes: frozenset[str]

    @cached_property
    def about(self) -> str:
        return inline(self.tool.description)

    @cached_property
    def params(self) -> str:
        return describe_params(self.tool.schema)

    @cached_property
    def size(self) -> int:
        """The tokens that its entry takes."""
        entry = render_entry(CatalogEntry(route=self.text, description=self.about, params=self.params))
        return estimate_tokens("\n".join((*entry, "")))

    @cached_property
    def name_size(self) -> int:
        """The tokens that its name takes among others."""
        return estimate_tokens(f", `{self.text}`")


class RoutedResource(msgspec.Struct, frozen=True, kw_only=True):
    """A resource that a domain defines in code, at its route."""

    route: CatalogRoute
    domain: Domain
    resource: Resource
    scopes: frozenset[str]


class EntryPoints(dict[str, RoutedTool]):
    """The entry points of a domain for some scopes, by route. `folded` caches the domain's one-line form, which is the
    same for every question that hits none of its entry points."""

    def __init__(self, domain: Domain, tools: Iterable[RoutedTool]) -> None:
        super().__init__((each.text, each) for each in tools)
        self.domain = domain
        self.folded: dict[tuple[int, int], tuple[Section, int]] = {}


Routed = TypeVar("Routed", RoutedTool, RoutedResource)


class DomainRegistry:
    """Domains by name and routes by their text. `generation` changes with every addition and removal;
    `pending_domains` names the domains that wait for the user's consent."""

    def __init__(self, pending_domains: Callable[[], Collection[str]] = tuple) -> None:
        self._pending_domains = pending_domains
        self._domains: dict[str, Domain] = {}
        self._tools: dict[str, dict[str, RoutedTool]] = {}
        self._resources: dict[str, dict[str, RoutedResource]] = {}
        self._entries: dict[tuple[str, frozenset[str]], EntryPoints] = {}
        self.generation = 0

    def tell_waiting(self, name: str) -> str:
        """A clause for a domain that waits for consent; empty for any other."""
        is_left_out = name not in self._domains and name in self._pending_domains()
        return f"{name} waits for the user's consent" if is_left_out else ""

    def add(self, domain: Domain) -> None:
        """Register a domain with all its routes, or nothing. Raises AlreadyExists for a domain or route."""
        if domain.name in self._domains:
            raise AlreadyExists("domain", domain.name)
        tools: dict[str, RoutedTool] = {}
        for tool in domain.tools:
            route = domain.route_of(tool)
            scopes = domain.scopes | tool.scopes
            _add(tools, RoutedTool(route=route, text=str(route), domain=domain, tool=tool, scopes=scopes))
        resources: dict[str, RoutedResource] = {}
        for each in domain.resources:
            route = parse_route(f"{domain.name}://resources/{each.path}")
            scopes = domain.scopes | each.scopes
            _add(resources, RoutedResource(route=route, domain=domain, resource=each, scopes=scopes))
        self._domains[domain.name], self._tools[domain.name], self._resources[domain.name] = domain, tools, resources
        self._entries.clear()
        self.generation += 1

    def remove(self, name: str) -> Domain:
        """Raises NotFound."""
        domain = self.get_domain(name)
        del self._domains[name], self._tools[name], self._resources[name]
        self._entries.clear()
        self.generation += 1
        return domain

    def find_domain(self, name: str) -> Domain | None:
        return self._domains.get(name)

    def get_domain(self, name: str) -> Domain:
        """Raises NotFound with the nearest name."""
        found = self.find_domain(name)
        if found is None:
            raise _unknown_domain(name, self._domains)
        return found

    def all_domains(self) -> list[Domain]:
        """All domains, without a check of scopes, in order of registration."""
        return list(self._domains.values())

    def domains(self, by: Principal) -> list[Domain]:
        """The domains that the caller may see, in order of registration."""
        return [domain for domain in self._domains.values() if domain.scopes <= by.scopes]

    def visible_domain(self, name: str, by: Principal) -> Domain:
        """Raises NotFound if it does not exist or the caller may not see it."""
        visible = {domain.name: domain for domain in self.domains(by)}
        if name not in visible:
            raise _unknown_domain(name, visible)
        return visible[name]

    def find_tool(self, route: CatalogRoute) -> RoutedTool | None:
        return self._tools.get(route.domain, {}).get(route.path)

    def find_resource(self, route: CatalogRoute) -> RoutedResource | None:
        return self._resources.get(route.domain, {}).get(route.path)

    def entry_points(self, domain: Domain, by: Principal) -> EntryPoints:
        """The searchable tools of a domain that the caller may use, by their route, in order of registration."""
        key = (domain.name, by.scopes)
        if key not in self._entries:
            if len(self._entries) > MOST_KNOWN:
                self._entries.clear()
            tools = self._tools[domain.name].values()
            mine = (each for each in tools if each.tool.searchable and each.scopes <= by.scopes)
            self._entries[key] = EntryPoints(domain, mine)
        return self._entries[key]

    def tools(self) -> Iterable[RoutedTool]:
        for tools in self._tools.values():
            yield from tools.values()

    def resources_of(self, domain: Domain, by: Principal) -> list[RoutedResource]:
        """The resources that a domain defines in code and that the caller may read."""
        return [each for each in self._resources[domain.name].values() if each.scopes <= by.scopes]

    def resources(self) -> Iterable[RoutedResource]:
        for resources in self._resources.values():
            yield from resources.values()

    def count_routes(self, by: Principal | None = None) -> int:
        """All routes, or those that a caller may use."""
        if by is not None:
            mine = [domain.name for domain in self.domains(by)]
            tools = (each.scopes for name in mine for each in self._tools[name].values())
            resources = (each.scopes for name in mine for each in self._resources[name].values())
            return sum(scopes <= by.scopes for scopes in (*tools, *resources))
        return sum(map(len, self._tools.values())) + sum(map(len, self._resources.values()))

    def suggest(self, route: CatalogRoute, by: Principal) -> str:
        """The entry point that a wrong route probably means: the one with the most similar name in the route's domain,
        or in the domain with the most similar name. Empty if none is similar."""
        visible = {domain.name: domain for domain in self.domains(by)}
        near = [route.domain] if route.domain in visible else difflib.get_close_matches(route.domain, visible, 1)
        if not near:
            return ""
        entries = {_bare_name(each.route): each.text for each in self.entry_points(visible[near[0]], by).values()}
        return next((entries[close] for close in difflib.get_close_matches(_bare_name(route), entries, 1)), "")


def _bare_name(route: CatalogRoute) -> str:
    """The last segment of a path, normalized for case and word separators."""
    return route.path.rpartition("/")[2].lower().replace("_", "-")


def _add(routes: dict[str, Routed], each: Routed) -> None:
    if each.route.path in routes:
        raise AlreadyExists("route", str(each.route))
    routes[each.route.path] = each


def _unknown_domain(name: str, known: Iterable[str] | Sequence[str]) -> NotFound:
    error = NotFound("domain", name[:100])
    names = list(known)
    close = difflib.get_close_matches(name, names, 1)
    shown = ", ".join(sorted(names)[:20])
    error.hint = f"Did you mean {close[0]}?" if close else f"Domains are {shown}" if names else "There are none yet"
    return error
