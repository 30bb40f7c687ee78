"""Indexes resources that a domain defines in code, through the same pipeline as all others."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from clew.catalog.domain import Domain
from clew.catalog.resource import DocumentListing, Pipeline, RawContent, RawDocument, Resource, ResourceNode
from clew.errors import NotFound

CONTENT_TYPE = "application/vnd.clew.defined"


class DefinedSource:
    """See `ContentSource`. Reading it again calls the functions again."""

    name = "defined"
    is_local = True

    def __init__(self, domain: Domain, resources: Sequence[Resource], scopes: frozenset[str]) -> None:
        self._client = domain.client
        self._resources = {each.path: each for each in resources}
        self.id = f"defined:{domain.name}:{','.join(sorted(scopes))}"

    async def list_documents(self) -> DocumentListing:
        known = [
            RawDocument(id=each.path, name=each.name, content_type=CONTENT_TYPE) for each in self._resources.values()
        ]
        return DocumentListing(documents=known)

    async def fetch_content(self, id: str) -> RawContent:
        found = self._resources.get(id)
        if found is None:
            raise NotFound("resource", id)
        body = (await found.fetch(self._client)).encode("utf-8", "replace")
        about = {"description": found.description}
        return RawContent(id=id, name=found.name, content_type=CONTENT_TYPE, body=body, metadata=about)

    async def close(self) -> None:
        """Does nothing: there are no connections."""


class DefinedFormat:
    """See `ContentFormat`: one node a resource."""

    name = "defined"

    def can_handle(self, content_type: str) -> bool:
        return content_type == CONTENT_TYPE

    def parse(self, content: RawContent, base_path: str) -> Sequence[ResourceNode]:
        about = str(content.metadata["description"])
        node = ResourceNode(id=content.id, name=content.name, path=content.id, content=content.text, description=about)
        return (node,)


def with_defined(domain: Domain) -> Domain:
    """The domain with pipelines for its code-defined resources, one for each set of scopes."""
    by_scopes: dict[frozenset[str], list[Resource]] = {}
    for resource in domain.resources:
        by_scopes.setdefault(resource.scopes, []).append(resource)
    pipelines = [
        Pipeline(source=DefinedSource(domain, group, scopes), formats=(DefinedFormat(),), scopes=scopes)
        for scopes, group in by_scopes.items()
    ]
    return msgspec.structs.replace(domain, extractors=(*domain.extractors, *pipelines)) if pipelines else domain
