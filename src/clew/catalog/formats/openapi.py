"""OpenAPI documents (2.0, 3.0 and 3.1, JSON or YAML): a node for the API, and one for each operation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from clew.catalog.formats.json_body import decode_body
from clew.catalog.formats.openapi_operation import ApiOperation, as_list, as_mapping, as_text, resolve, show_operation
from clew.catalog.formats.prose import describe, join_blocks
from clew.catalog.formats.tree import Branch, build_tree, check_size
from clew.catalog.formats.types import OPENAPI, media_type
from clew.catalog.formats.yaml_text import load_yaml
from clew.catalog.resource import RawContent, ResourceNode
from clew.catalog.route import join_path
from clew.errors import FormatError
from clew.trail.model.tags import path_part

MAX_OPERATIONS = 2_500
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_VERSIONS = ("2.", "3.0", "3.1", "3.2")
_EXPECTED = "an OpenAPI document"


class OpenApi:
    """The path of an operation is `PATH/METHOD` below its document, that of a webhook `webhooks/NAME/METHOD`."""

    name = "openapi"

    def can_handle(self, content_type: str) -> bool:
        return media_type(content_type) in (OPENAPI, f"{OPENAPI}+json", f"{OPENAPI}+yaml")

    def parse(self, content: RawContent, base_path: str) -> Sequence[ResourceNode]:
        document = _decode(content)
        version = as_text(document.get("openapi", document.get("swagger")))
        if not version.startswith(_VERSIONS):
            raise FormatError(content.id, "is not OpenAPI 2.0, 3.0 or 3.1: `openapi` or `swagger` must say the version")
        found = chain(_read(content, document, "paths"), _read(content, document, "webhooks"))
        operations = list(islice(found, MAX_OPERATIONS + 1))
        if len(operations) > MAX_OPERATIONS:
            raise FormatError(content.id, f"has more than {MAX_OPERATIONS:,} operations")
        return build_tree(content, base_path, _grow(document, version, operations, content.name))


def _decode(content: RawContent) -> Mapping[str, Any]:
    check_size(content)
    text = content.text
    if text.lstrip().startswith("{"):
        return decode_body(content, dict[str, Any], _EXPECTED)
    document = load_yaml(content.id, text)
    if not isinstance(document, dict):
        raise FormatError(content.id, f"is not {_EXPECTED}: an object at the top was expected")
    return document


def _read(content: RawContent, document: Mapping[str, Any], part: str) -> Iterator[ApiOperation]:
    """The operations in the order of the document. Raises FormatError if the content has an unexpected structure."""
    items = _object(content, document.get(part) or {}, part)
    for path, written in items.items():
        item = _object(content, resolve(document, written), f"{part}.{path}")
        shared = item.get("parameters")
        for method in METHODS:
            if method in item:
                fields = _object(content, item[method], f"{part}.{path}.{method}")
                yield ApiOperation(part=part, path=str(path), method=method, fields=fields, shared=shared)


def _object(content: RawContent, value: Any, place: str) -> Mapping[str, Any]:
    if isinstance(value, dict):
        return value
    raise FormatError(content.id, f"is not {_EXPECTED}: {place[:200]} must be an object")


def _grow(document: Mapping[str, Any], version: str, operations: Sequence[ApiOperation], fallback: str) -> Branch:
    info = as_mapping(document.get("info"))
    title = as_text(info.get("title")) or fallback
    about = as_text(info.get("description"))
    servers = [as_text(as_mapping(server).get("url")) for server in as_list(document.get("servers"))]
    place = f"{as_text(document.get('host'))}{as_text(document.get('basePath'))}"
    return Branch(
        name=title,
        text=join_blocks(f"{title} {as_text(info.get('version'))}", about, "\n".join([*servers, place])),
        description=describe(about) or f"{title}, {len(operations)} operations",
        type="api",
        metadata={"openapi": version, "operations": len(operations)},
        children=[_grow_operation(document, operation) for operation in operations],
    )


def _grow_operation(document: Mapping[str, Any], operation: ApiOperation) -> Branch:
    pieces = [path_part(piece) for piece in operation.path.split("/") if piece.strip()]
    place = "webhooks" if operation.part == "webhooks" else ""
    about = operation.summary or describe(operation.description)
    return Branch(
        name=operation.id or operation.title,
        path=join_path(place, *pieces, operation.method),
        text=show_operation(document, operation),
        description=f"{operation.title}: {about}" if about else operation.title,
        type="operation",
        metadata={"method": operation.method, "path": operation.path, "tags": operation.tags},
    )
