"""Look up a resource: on the trail with all its parts, or through the domain that defines it or reads its file."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from urllib.parse import unquote

import msgspec

from clew.access import Principal
from clew.catalog.formats.prose import clean_text
from clew.catalog.indexing.document_nodes import DOCUMENT, MAX_CONTENT, MAX_DESCRIPTION, MAX_NAME, storable_text
from clew.catalog.indexing.resource_queries import find_resource, select_resources
from clew.catalog.indexing.source_ledger import find_document
from clew.catalog.operations.discovery import is_sound
from clew.catalog.registry import DomainRegistry
from clew.catalog.route import CatalogRoute, parse_route
from clew.errors import NotFound
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.query import SearchRequest
from clew.trail.store import Trail

MAX_WHOLE = 60_000
"""The maximum number of characters of a resource and its parts in one result."""

SUGGESTED = 3
LOOKED_AT = 200
"""The maximum number of routes suggested for a missing one, and of neighbours compared to find them."""


class FullResource(msgspec.Struct, frozen=True, kw_only=True):
    """A resource with the content of all its parts, and the scopes required to see it. `rest` are the parts that did
    not fit, in order."""

    name: str
    description: str
    content: str
    scopes: frozenset[str]
    rest: Sequence[str] = ()


def _whole(found: Breadcrumb) -> FullResource:
    about, content = (str(found.context.get(field, "")) for field in ("description", "content"))
    return FullResource(name=found.title, description=about, content=content, scopes=frozenset(found.scopes))


class Lookup:
    """Finds resources by their route."""

    def __init__(self, trail: Trail, registry: DomainRegistry) -> None:
        self._trail = trail
        self._registry = registry

    async def read(self, route: CatalogRoute, *, by: Principal) -> FullResource:
        """Read a resource with its parts. Raises NotFound if it does not exist or is not visible. Exceptions of a
        domain's code pass through."""
        defined = self._registry.find_resource(route)
        if defined is None:
            return await self._find_file(route, by) or await self._with_parts(route, by)
        if not defined.scopes <= by.scopes:
            raise NotFound("resource", str(route))
        name, about = defined.resource.name, defined.resource.description
        content = await defined.resource.fetch(defined.domain.client)
        return FullResource(name=name, description=about, content=content, scopes=defined.scopes)

    async def read_indexed(self, route: CatalogRoute, *, by: Principal) -> FullResource:
        """A resource as it was last indexed, without its parts. Raises NotFound if it does not exist or the caller may
        not see its domain."""
        return _whole(await self._get(route, by))

    async def _find_file(self, route: CatalogRoute, by: Principal) -> FullResource | None:
        """A resource that its domain reads on demand and does not index. Raises NotFound if the caller may not see the
        domain."""
        domain = self._registry.visible_domain(route.domain, by)
        found = await domain.find_file(unquote(route.path)) if domain.find_file is not None else None
        if found is None:
            return None
        return FullResource(
            name=storable_text(found.name, MAX_NAME),
            description=storable_text(found.description, MAX_DESCRIPTION),
            content=storable_text(clean_text(found.content), MAX_CONTENT),
            scopes=domain.scopes,
        )

    async def _get(self, route: CatalogRoute, by: Principal) -> Breadcrumb:
        self._registry.visible_domain(route.domain, by)
        found = await find_resource(self._trail, str(route), by=by)
        if found is None:
            raise NotFound("resource", str(route))
        return found

    async def _with_parts(self, route: CatalogRoute, by: Principal) -> FullResource:
        """A resource, then the resources below it in its document, in the order of the document."""
        found = await self._get(route, by)
        whole, tag = _whole(found), next((tag for tag in found.tags if tag.startswith(DOCUMENT)), None)
        document = await find_document(self._trail, tag, by=by) if tag is not None else None
        below = [uri for uri in document.order if uri.startswith(f"{route}/")] if document is not None else []
        contents, room, rest = [whole.content], MAX_WHOLE - len(whole.content), below
        for at, uri in enumerate(below):
            part = await find_resource(self._trail, uri, by=by)
            text = _whole(part).content if part is not None else ""  # removed meanwhile, or not for the caller
            room -= len(text)
            if room < 0:
                break
            contents.append(text)
            rest = below[at + 1 :]
        content = "\n\n".join(filter(None, contents))
        return msgspec.structs.replace(whole, content=content, rest=rest)

    async def can_see(self, route: CatalogRoute, *, by: Principal) -> bool:
        """Whether the resource exists and the caller may see it. The domain may check for a file, but none of its tools
        runs."""
        defined = self._registry.find_resource(route)
        if defined is not None:
            return defined.scopes <= by.scopes
        try:
            return await self._find_file(route, by) is not None or bool(await self._get(route, by))
        except NotFound:
            return False

    async def suggest(self, route: CatalogRoute, *, by: Principal) -> list[str]:
        """The visible resources of the route's domain with the most similar spelling; none if the caller may not see
        the domain."""
        domain = self._registry.find_domain(route.domain)
        if domain is None or not domain.scopes <= by.scopes:
            return []
        defined = [each.route for each in self._registry.resources_of(domain, by)]
        records = (*await self._neighbours(route, by), *await self._alike(route, by))
        indexed = [parse_route(record.context["uri"]) for record in records if is_sound(record)]
        near = {unquote(each.path): str(each) for each in (*defined, *indexed)}
        return [near[path] for path in difflib.get_close_matches(unquote(route.path), near, SUGGESTED, 0.7)]

    async def _neighbours(self, route: CatalogRoute, by: Principal) -> Sequence[Breadcrumb]:
        """Some resources whose path begins with the same part."""
        selector = select_resources(domain=route.domain, segment=route.path.partition("/")[0])
        return (await self._trail.records.list(selector, by=by, limit=LOOKED_AT)).items

    async def _alike(self, route: CatalogRoute, by: Principal) -> Sequence[Breadcrumb]:
        """The search hits for the words of the route."""
        words = " ".join(re.findall(r"\w+", unquote(route.path)))
        if not words:
            return ()
        request = SearchRequest(text=words, selector=select_resources(domain=route.domain), limit=20)
        return [hit.breadcrumb for hit in (await self._trail.index.search(request, by=by)).hits]
