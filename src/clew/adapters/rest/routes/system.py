"""Routes about the server itself: is it up and ready, what does it offer, how is it doing."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version

import msgspec

from clew.adapters.rest.metrics import CONTENT_TYPE
from clew.adapters.rest.openapi import build_document
from clew.adapters.rest.operation import Answer, Call, Operation, Reply, reply
from clew.adapters.rest.reference import render_reference


class Welcome(msgspec.Struct, frozen=True, kw_only=True):
    """What answers here, and where it is explained."""

    name: str
    version: str
    docs: str
    openapi: str


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """The process is up."""

    status: str


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """The trail answers."""

    status: str


async def welcome(call: Call) -> Answer:
    return reply(Welcome(name="clew", version=clew_version(), docs="/docs", openapi="/openapi.json"))


async def health(call: Call) -> Answer:
    return reply(Health(status="up"))


async def ready(call: Call) -> Answer:
    await call.trail.log.head()
    return reply(Readiness(status="ready"))


async def metrics(call: Call) -> Answer:
    text = call.services.metrics.render()
    return Reply(text, media=CONTENT_TYPE.encode())


async def openapi(call: Call) -> Answer:
    return reply(build_document(call.services.operations, clew_version()))


async def docs(call: Call) -> Answer:
    page = render_reference(build_document(call.services.operations, clew_version()))
    policy = (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'")
    return Reply(page.encode(), media=b"text/html; charset=utf-8", headers=(policy,))


@cache
def clew_version() -> str:
    return version("clew")


OPERATIONS = (
    Operation(
        method="GET",
        path="/",
        handler=welcome,
        summary="What answers here",
        group="system",
        guard="open",
        answer=Welcome,
    ),
    Operation(
        method="GET",
        path="/health",
        handler=health,
        summary="Whether the process is up",
        group="system",
        guard="open",
        answer=Health,
    ),
    Operation(
        method="GET",
        path="/ready",
        handler=ready,
        summary="Whether the trail answers",
        group="system",
        guard="open",
        answer=Readiness,
    ),
    Operation(
        method="GET",
        path="/metrics",
        handler=metrics,
        summary="Metrics in the text format of Prometheus",
        group="system",
        guard="open",
        media="text/plain",
    ),
    Operation(
        method="GET",
        path="/openapi.json",
        handler=openapi,
        summary="This document",
        group="system",
        guard="open",
        answer=dict,
    ),
    Operation(
        method="GET",
        path="/docs",
        handler=docs,
        summary="The reference as a page",
        group="system",
        guard="open",
        media="text/html",
    ),
)
