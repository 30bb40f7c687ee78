"""Converts the tree of a document to drafts, one for each node: flattened, addressed, cleaned and cut to the limits. No
I/O."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID, uuid5

import msgspec

from clew.catalog.domain import Domain
from clew.catalog.resource import Pipeline, ResourceNode, Skipped
from clew.catalog.route import parse_route
from clew.errors import InvalidInput
from clew.lazy_pattern import lazy_pattern
from clew.secrecy import mask_keys
from clew.trail.model.breadcrumb import NEVER, Breadcrumb, Draft, encode_canonical
from clew.trail.model.tags import digest, path_part, tag_of

SCHEMA = "resource.v1"
MAX_NODES = 3_000
MAX_CONTENT = 200_000
MAX_NAME = 300
MAX_DESCRIPTION = 2_000
MAX_TYPE = 100
MAX_REASONS = 100
DOCUMENT = "document:"
_LONGEST_KEY = 8_192
_NAMESPACE = UUID("0b8f4b0c-6a0e-5f0d-8f57-93a7c1f3c1d2")
_PLAIN_PART = lazy_pattern(r"[A-Za-z0-9._~%@+-]+")
_UNCOMPARED = ("indexed_at", "scopes", "is_unrestricted")


class SourcePlace(msgspec.Struct, frozen=True, kw_only=True):
    """The address prefix and the scopes of the nodes of one pipeline."""

    owner_id: str
    domain: str
    source_id: str
    base_path: str = ""
    scopes: tuple[str, ...] = ()


class IndexedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The drafts of one document by their uri, in the order of the tree, and notes about omitted nodes."""

    drafts: dict[str, Draft]
    skipped: Sequence[Skipped] = ()


def place_of(domain: Domain, pipeline: Pipeline, owner_id: str) -> SourcePlace:
    return SourcePlace(
        owner_id=owner_id,
        domain=domain.name,
        source_id=pipeline.source.id,
        base_path=pipeline.base_path,
        scopes=effective_scopes(domain, pipeline),
    )


def effective_scopes(domain: Domain, pipeline: Pipeline) -> tuple[str, ...]:
    """The scopes that a caller needs to see a resource of this pipeline, sorted; empty means public."""
    return tuple(sorted(domain.scopes | pipeline.scopes))


def resource_uri(domain: str, base_path: str, path: str) -> str:
    """The route of a resource. The route is below the base path, whether or not `path` already begins with it.
    Characters that are invalid in a route are encoded. Raises InvalidInput if the path is empty or too long."""
    base, parts = _parts(base_path), _parts(path)
    if parts[: len(base)] != base:
        parts = base + parts
    return str(parse_route(f"{domain}://resources/{'/'.join(parts)}"))


def resource_id(owner_id: str, uri: str) -> str:
    """The id of the breadcrumb that holds a resource, so that it is found without a search."""
    return str(uuid5(_NAMESPACE, f"{owner_id}\n{uri}"))


def source_tag(source_id: str) -> str:
    return f"source:{digest(source_id)}"


def document_tag(place: SourcePlace, document: str) -> str:
    """The tag that the resources of a document share with its entry in the ledger."""
    return f"{DOCUMENT}{digest(f'{place.domain} {place.source_id} {document}')}"


def node_digest(record: Draft | Breadcrumb) -> str:
    """The digest of a resource, without its scopes and the time of indexing."""
    context = {key: value for key, value in record.context.items() if key not in _UNCOMPARED}
    packed = encode_canonical([record.title, list(record.tags), context], "context")
    return hashlib.blake2b(packed, digest_size=12).hexdigest()


def build_drafts(roots: Iterable[ResourceNode], place: SourcePlace, *, document: str, now_ms: int) -> IndexedDocument:
    """One draft for each node of a document. If two nodes have the same path, the first wins. Nodes that contain
    themselves, have no usable path, or exceed MAX_NODES are left out. Long texts are cut. The result reports the first
    MAX_REASONS of these problems."""
    drafts: dict[str, Draft] = {}
    reasons: list[str] = []
    for seen, (node, is_repeated) in enumerate(_walk(roots)):
        if seen == MAX_NODES:
            reasons.insert(0, f"it has over {MAX_NODES:,} nodes; the rest is left out")
            break
        try:
            uri = resource_uri(place.domain, place.base_path, node.path)
        except InvalidInput as error:
            reasons.append(f"a node is left out: {error.message}")
            continue
        if is_repeated or uri in drafts:
            reasons.append(f"{uri} comes a second time; the first counts")
            continue
        if len(node.content) > MAX_CONTENT:
            reasons.append(f"{uri} is cut to {MAX_CONTENT:,} of {len(node.content):,} characters")
        drafts[uri] = _draft(node, uri, place, document, now_ms)
    told = [Skipped(document=document, reason=reason) for reason in reasons[:MAX_REASONS]]
    return IndexedDocument(drafts=drafts, skipped=told)


def scope_fields(scopes: Sequence[str]) -> dict[str, Any]:
    """The part of a resource's context that says who may see it."""
    return {"scopes": list(scopes), "is_unrestricted": not scopes}


def _draft(node: ResourceNode, uri: str, place: SourcePlace, document: str, now_ms: int) -> Draft:
    path = parse_route(uri).path
    segment = path.partition("/")[0]
    name = _one_line(node.name)[:MAX_NAME].strip() or path.rpartition("/")[2][:MAX_NAME]
    kind = _one_line(node.type)[:MAX_TYPE].strip() or "document"
    context = {
        "id": b64encode(uri.encode()).decode(),
        "uri": uri,
        "domain": place.domain,
        "path": path,
        "source_id": place.source_id,
        "name": name,
        "content": storable_text(node.content, MAX_CONTENT),
        "description": storable_text(node.description, MAX_DESCRIPTION),
        **scope_fields(place.scopes),
        "resource_type": kind,
        "path_segment": segment,
        "quality_score": min(max(node.quality, 0), 100),
        "indexed_at": now_ms,
    }
    return Draft(
        id=resource_id(place.owner_id, uri),
        schema_name=SCHEMA,
        title=name,
        context=context,
        tags=(*resource_tags(context), document_tag(place, document)),
        scopes=place.scopes,
        ttl=NEVER,
    )


def resource_tags(context: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        f"domain:{context['domain']}",
        source_tag(context["source_id"]),
        tag_of("type", context["resource_type"]),
        tag_of("segment", context["path_segment"]),
    )


def _walk(roots: Iterable[ResourceNode]) -> Iterator[tuple[ResourceNode, bool]]:
    """Yield every node before its children, and whether it was visited before. The children of a visited node are not
    walked again, so cycles end. Works without recursion."""
    stack, met = [iter(roots)], set[int]()
    while stack:
        node = next(stack[-1], None)
        if node is None:
            stack.pop()
            continue
        yield node, id(node) in met
        if node.children and id(node) not in met:
            stack.append(iter(node.children))
        met.add(id(node))


def _parts(path: str) -> list[str]:
    parts = (part for part in path.split("/") if part.strip())
    return [part if _PLAIN_PART.fullmatch(part) and part.strip(".") else path_part(part) for part in parts]


def storable_text(text: str, limit: int) -> str:
    """Text that can be stored: cut, without keys, and without halves of surrogate pairs."""
    cut = mask_keys(text[: limit + _LONGEST_KEY])[
        :limit
    ]  # mask first: the cut could split a key, which then could not be recognized
    return cut if cut.isascii() else cut.encode("utf-8", "replace").decode()


def _one_line(text: str) -> str:
    plain = storable_text(text, 4 * MAX_NAME)
    return " ".join("".join(each if each.isprintable() else " " for each in plain).split())
