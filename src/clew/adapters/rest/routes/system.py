"""Routes about the server itself: health, readiness, version, metrics."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

import msgspec

from clew.adapters.rest.errors import ErrorBody, RestProblem
from clew.adapters.rest.openapi import build_document
from clew.adapters.rest.operation import RestAnswer, RestCall, RestOperation, RestReply, reply
from clew.adapters.rest.reference import render_home, render_reference
from clew.telemetry.metrics import CONTENT_TYPE


class Welcome(msgspec.Struct, frozen=True, kw_only=True):
    """The name of this server, and links to its documentation."""

    name: str
    version: str
    docs: str
    openapi: str


class HealthStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The process is up."""

    status: str


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """The trail answers."""

    status: str


_DRAINING = RestProblem(
    code="draining",
    message="this process is about to end and takes no new work",
    hint="Ask another one",
)


async def welcome(call: RestCall) -> RestAnswer:
    """A page for browsers, and JSON for everybody else."""
    if b"text/html" in call.headers.get(b"accept", b""):
        host = call.headers.get(b"host", b"127.0.0.1").decode("latin-1")
        return _page(render_home("Clew", clew_version(), host))
    return reply(Welcome(name="clew", version=clew_version(), docs="/docs", openapi="/openapi.json"))


async def health(call: RestCall) -> RestAnswer:
    return reply(HealthStatus(status="up"))


async def ready(call: RestCall) -> RestAnswer:
    if call.services.is_draining():
        return reply(ErrorBody(error=_DRAINING), status=503)
    await call.trail.log.head()
    return reply(Readiness(status="ready"))


async def metrics(call: RestCall) -> RestAnswer:
    text = call.services.metrics.render()
    return RestReply(text, media=CONTENT_TYPE.encode())


async def openapi(call: RestCall) -> RestAnswer:
    return reply(build_document(call.services.operations, clew_version()))


async def docs(call: RestCall) -> RestAnswer:
    return _page(render_reference(build_document(call.services.operations, clew_version())))


def _page(page: tuple[bytes, bytes]) -> RestReply:
    content, policy = page
    headers = ((b"content-security-policy", policy), (b"vary", b"accept"))
    return RestReply(content, media=b"text/html; charset=utf-8", headers=headers)


@cache
def clew_version() -> str:
    return version("clew")


OPERATIONS: tuple[RestOperation, ...] = (
    RestOperation(
        method="GET",
        path="/",
        handler=welcome,
        summary="What answers here",
        group="system",
        guard="open",
        answer=Welcome,
    ),
    RestOperation(
        method="GET",
        path="/health",
        handler=health,
        summary="Whether the process is up",
        group="system",
        guard="open",
        answer=HealthStatus,
    ),
    RestOperation(
        method="GET",
        path="/ready",
        handler=ready,
        summary="Whether the trail answers and this process takes work; 503 while it drains",
        group="system",
        guard="open",
        answer=Readiness,
    ),
    RestOperation(
        method="GET",
        path="/metrics",
        handler=metrics,
        summary="Metrics in the text format of Prometheus",
        group="system",
        guard="open",
        media="text/plain",
    ),
    RestOperation(
        method="GET",
        path="/openapi.json",
        handler=openapi,
        summary="This document",
        group="system",
        guard="open",
        answer=dict,
    ),
    RestOperation(
        method="GET",
        path="/docs",
        handler=docs,
        summary="The reference as a page",
        group="system",
        guard="open",
        media="text/html",
    ),
)

PROBES = tuple(each for each in OPERATIONS if each.path in ("/health", "/ready", "/metrics"))
"""The routes of a worker without the role `server`."""
