"""Generated requests from the published document: no 5xx, no undocumented status, no answer off its schema."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from clew.adapters.rest.app import OPERATIONS
from clew.adapters.rest.openapi import build_document
from tests.servers import Served

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    unsupported_method,
]

STREAM = "/events/stream"
SOME = settings(
    max_examples=5,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
"""In addition to the cases that schemathesis derives from the limits of every schema."""


@cache
def operations() -> dict[str, APIOperation]:
    """Every operation of the document by its method and path."""
    document = schemathesis.openapi.from_dict(build_document(OPERATIONS, "0"))
    return {found.label: found for found in (each.ok() for each in document.get_all_operations())}


class Target:
    """A caller with every role on a trail with records, and the ids of these records."""

    def __init__(self, server: Served, session: requests.Session) -> None:
        self.session = session
        self.url = server.url
        self.credential = server.credential
        self.headers = server.headers("fuzz")
        with httpx.Client(base_url=server.url, headers=self.headers) as http:
            items = [{"title": f"n{number}", "context": {"n": number}, "tags": ["a"]} for number in range(200)]
            written = http.post("/breadcrumbs/batch", json={"items": items}).json()["items"]
        self.ids = [each["id"] for each in written]

    def aim(self, case: schemathesis.Case) -> None:
        """Let every second request use the id of a record that exists or was deleted."""
        given = (case.path_parameters or {}).get("id")
        if given is not None and len(str(given)) % 2:
            case.path_parameters["id"] = self.ids[len(str(given)) % len(self.ids)]


@pytest.fixture(scope="module")
def target(server: Served) -> Iterator[Target]:
    with requests.Session() as session:
        session.trust_env = False  # otherwise it looks for proxies before each request
        session.headers["Connection"] = "close"
        yield Target(server, session)


@SOME
def check(case: schemathesis.Case, target: Target) -> None:
    target.aim(case)
    headers = target.headers
    if case.operation.path == "/auth/token":
        headers = {"X-Clew-Credential": target.credential}
    case.call_and_validate(base_url=target.url, session=target.session, headers=headers, checks=CHECKS)


@pytest.mark.slow
@pytest.mark.parametrize("label", [f"{each.method} {each.path}" for each in OPERATIONS if each.path != STREAM])
def test_no_generated_request_gets_an_undocumented_answer(label: str, target: Target) -> None:
    # `schema.parametrize` derives all cases while tests are collected, which takes seconds in every worker.
    operation = operations()[label]
    config = operation.schema.config
    build_operation_test(
        config=config, operation=operation, test_func=check, given_kwargs={}, feedback=FeedbackSources()
    )(target=target)
