"""Generated requests from the published document: no 5xx, no undocumented status, no answer off its schema."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from clew.adapters.rest.app import OPERATIONS
from clew.adapters.rest.openapi import build_document
from tests.serving import Served

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    unsupported_method,
]

schema = schemathesis.openapi.from_dict(build_document(OPERATIONS, "0")).exclude(path="/events/stream")


@pytest.fixture(scope="module")
def existing(server: Served) -> Iterator[dict[str, str]]:
    """Headers of a caller with every role, on a trail that is not empty."""
    headers = server.headers("fuzz")
    with httpx.Client(base_url=server.url, headers=headers) as http:
        items = [{"title": f"n{number}", "context": {"n": number}, "tags": ["a"]} for number in range(20)]
        assert http.post("/breadcrumbs/batch", json={"items": items}).status_code == 201
    yield headers | {"X-Clew-Credential": server.credential}


@pytest.mark.slow
@schema.parametrize()
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
def test_no_generated_request_gets_an_undocumented_answer(
    case: schemathesis.Case, server: Served, existing: dict[str, str]
) -> None:
    headers = existing
    if case.operation.path == "/auth/token":
        headers = {"X-Clew-Credential": existing["X-Clew-Credential"]}
    case.call_and_validate(base_url=server.url, headers=headers, checks=CHECKS)
