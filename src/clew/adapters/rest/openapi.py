"""The OpenAPI 3.1 document, made from the route table and the types that it names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from clew.adapters.rest.errors import ErrorBody, status_of
from clew.adapters.rest.operation import RequestHeader, RestOperation
from clew.errors import (
    AccessDenied,
    Busy,
    ClewError,
    InvalidInput,
    NotAuthenticated,
    NotFound,
    StorageError,
    StorageFull,
    TooLarge,
)

_REF = "#/components/schemas/{name}"
_PATH_NAMES = re.compile(r"\{(\w+)\}")
_PATH_PARAMETERS = {
    "id": "The id of a breadcrumb or dead letter",
    "item": "The id of a breadcrumb, or the beginning of it",
    "kind": "skill, toolset or tool",
    "n": "A version number, from 1",
    "name": "The name that it was given",
    "request_id": "The id of the request that waits for permission",
    "session": "The id of a session",
    "entry": "The id of a journal entry",
    "task": "The id of a task, of its pipeline, or its number in the plan",
}
_ETAG = {"ETag": {"description": "The version, in quotes", "schema": {"type": "string"}}}
_REQUEST_ID = {
    "X-Request-Id": {
        "description": "The id that the request brought, or a new one",
        "schema": {"type": "string"},
    }
}


def build_document(operations: Sequence[RestOperation], version: str) -> dict[str, Any]:
    """The whole document. The same table gives the same document."""
    kinds = _types(operations)
    references, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    schemas = dict(zip(map(repr, kinds), references, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        described = _describe(operation, schemas, components)
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    queries = {each.query.__name__ for each in operations if each.query}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Clew",
            "version": version,
            "summary": "One durable, searchable, observable trail of breadcrumbs",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": {name: schema for name, schema in components.items() if name not in queries},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
                "streamToken": {"type": "apiKey", "in": "query", "name": "token"},
                "credential": {"type": "apiKey", "in": "header", "name": "X-Clew-Credential"},
            },
        },
    }


def statuses_of(operation: RestOperation) -> list[int]:
    """All error statuses (400 and above) of an operation."""
    has_input = bool(operation.query or operation.headers or operation.body is not None)
    brought: tuple[tuple[bool, tuple[type[ClewError], ...]], ...] = (
        (True, (InvalidInput, StorageError, Busy, *operation.raises)),
        (operation.guard != "open", (NotAuthenticated,)),
        (bool(operation.verb), (AccessDenied,)),
        ("{" in operation.path, (NotFound,)),
        (has_input, (TooLarge,)),
        (operation.writes, (StorageFull,)),
    )
    found = {status_of(error)[0] for applies, errors in brought if applies for error in errors}
    found |= {400} if has_input else set()
    found |= {415} if operation.body is not None else set()
    return sorted(found | set(operation.refuses))


def _types(operations: Sequence[RestOperation]) -> list[Any]:
    """All named types, each once, in a fixed order."""
    kinds: dict[str, Any] = {repr(ErrorBody): ErrorBody}
    for each in operations:
        for kind in (each.body, each.answer, each.query):
            if kind is not None:
                kinds.setdefault(repr(kind), kind)
    return list(kinds.values())


def _describe(operation: RestOperation, schemas: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.handler.__name__,
        "summary": operation.summary,
        "tags": [operation.group],
        "responses": _responses(operation, schemas),
    }
    if parameters := _parameters(operation, components):
        described["parameters"] = parameters
    if operation.body is not None:
        content = {"application/json": {"schema": schemas[repr(operation.body)]}}
        described["requestBody"] = {"required": operation.is_body_needed, "content": content}
    if operation.verb:
        described["description"] = f"Needs a role that may {operation.verb}."
    if security := _SECURITY[operation.guard]:
        described["security"] = security
    return described


_SECURITY: dict[str, list[dict[str, list[str]]]] = {
    "open": [],
    "credential": [{"credential": []}],
    "token": [{"token": []}],
    "stream": [{"token": []}, {"streamToken": []}],
}


def _parameters(operation: RestOperation, components: dict[str, Any]) -> list[dict[str, Any]]:
    in_path = [
        {"name": name, "in": "path", "required": True, "description": about, "schema": {"type": "string"}}
        for name in _PATH_NAMES.findall(operation.path)
        for about in (_PATH_PARAMETERS[name],)
    ]
    secured = {"token"} if operation.guard == "stream" else set()
    in_query = []
    if operation.query is not None:
        schema = components[operation.query.__name__]
        in_query = [
            _query_parameter(name, each, name in schema.get("required", ()))
            for name, each in schema["properties"].items()
            if name not in secured
        ]
    return [*in_path, *in_query, *map(_header_parameter, operation.headers)]


def _query_parameter(name: str, schema: dict[str, Any], required: bool) -> dict[str, Any]:
    """The schema of a parameter. The null type and the empty default are removed, because only the decoder needs
    them."""
    kept = {key: value for key, value in schema.items() if key not in ("description", "anyOf")}
    if kept.get("default") in (None, []):
        kept.pop("default", None)
    for choice in schema.get("anyOf", ()):
        if choice.get("type") != "null":
            kept |= choice
    about = kept.pop("description", schema.get("description", ""))
    return {"name": name, "in": "query", "required": required, "description": about, "schema": kept}


def _header_parameter(header: RequestHeader) -> dict[str, Any]:
    schema = {"type": "string"} | ({"pattern": header.pattern} if header.pattern else {})
    return {
        "name": header.name,
        "in": "header",
        "required": header.required,
        "description": header.description,
        "schema": schema,
    }


def _responses(operation: RestOperation, schemas: dict[str, Any]) -> dict[str, Any]:
    success: dict[str, Any] = {
        "description": HTTPStatus(operation.status).phrase,
        "headers": dict(_REQUEST_ID),
    }
    if operation.answer is not None:
        success["content"] = {operation.media: {"schema": schemas[repr(operation.answer)]}}
    elif operation.media != "application/json":
        success["content"] = {operation.media: {"schema": {"type": "string"}}}
    if operation.streams:
        success["content"] |= {"text/event-stream": {"schema": {"type": "string"}}}
    if getattr(operation.answer, "__name__", "") in ("Breadcrumb", "View"):
        success["headers"] |= _ETAG
    error = {"application/json": {"schema": schemas[repr(ErrorBody)]}}
    failures = {
        str(status): {
            "description": HTTPStatus(status).phrase,
            "headers": dict(_REQUEST_ID),
            "content": error,
        }
        for status in statuses_of(operation)
    }
    return {str(operation.status): success, **failures}
