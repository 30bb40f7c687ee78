"""Looking up one resource whole: on the trail, or by the code of the domain that defines it."""

from __future__ import annotations

import msgspec

from clew.access import Principal
from clew.catalog.indexing import resource_id
from clew.catalog.registry import Registry
from clew.catalog.route import Route
from clew.errors import NotFound
from clew.trail.store import Trail


class Whole(msgspec.Struct, frozen=True, kw_only=True):
    """A resource with its content, and the scopes that it takes to see it."""

    name: str
    description: str
    content: str
    scopes: frozenset[str]


class Lookup:
    """Finds resources by their route."""

    def __init__(self, trail: Trail, registry: Registry) -> None:
        self._trail = trail
        self._registry = registry

    async def read(self, route: Route, *, by: Principal) -> Whole:
        """Raises NotFound for what is not there or not visible; what a domain's code raises passes through."""
        defined = self._registry.find_resource(route)
        if defined is None:
            return await self.read_indexed(route, by=by)
        if not defined.scopes <= by.scopes:
            raise NotFound("resource", str(route))
        name, about = defined.resource.name, defined.resource.description
        content = await defined.resource.fetch(defined.domain.client)
        return Whole(name=name, description=about, content=content, scopes=defined.scopes)

    async def read_indexed(self, route: Route, *, by: Principal) -> Whole:
        """A resource as it was last indexed. Raises NotFound, also where its domain is not there for the caller."""
        self._registry.visible_domain(route.domain, by)
        found = await self._trail.records.get(resource_id(by.owner_id, str(route)), by=by)
        about, content = (str(found.context.get(field, "")) for field in ("description", "content"))
        return Whole(name=found.title, description=about, content=content, scopes=frozenset(found.scopes))

    async def can_see(self, route: Route, *, by: Principal) -> bool:
        """Whether there is such a resource for the caller. No code of a domain runs."""
        defined = self._registry.find_resource(route)
        if defined is not None:
            return defined.scopes <= by.scopes
        try:
            await self.read_indexed(route, by=by)
        except NotFound:
            return False
        return True
