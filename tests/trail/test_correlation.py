from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.store import Trail
from clew.trail.work.correlation import find_request, find_request_id, find_requester, reply_tags

ANN = Principal(owner_id="ann")
BOB = Principal(owner_id="bob")


@pytest.fixture
async def trail(tmp_path: Path) -> AsyncIterator[Trail]:
    trail = await open_trail(f"sqlite://{tmp_path}/trail.db", ManualClock())
    yield trail
    await trail.close()


async def written(trail: Trail, schema_name: str, context: dict[str, Any], *tags: str) -> Breadcrumb:
    return await trail.records.create(Draft(title="Any", schema_name=schema_name, context=context, tags=tags), by=ANN)


@pytest.mark.req("RCR-29")
@pytest.mark.parametrize(
    ("context", "tags", "expected"),
    [
        ({"request_id": "r1"}, (), "r1"),
        ({"requestId": "r1"}, (), "r1"),
        ({"request_id": "r1", "requestId": "r2"}, ("request:r3",), "r1"),
        ({}, ("session:s", "request:r1"), "r1"),
        ({"request_id": 7}, ("request:r1",), "r1"),
        ({"request_id": ""}, (), None),
        ({}, (), None),
    ],
)
async def test_the_request_id_is_read_in_either_spelling_or_from_the_tag(
    trail: Trail, context: dict[str, Any], tags: tuple[str, ...], expected: str | None
) -> None:
    assert find_request_id(await written(trail, "tool.response.v1", context, *tags)) == expected


@pytest.mark.req("RCR-29")
async def test_a_reply_is_tagged_for_its_session_request_and_requester(trail: Trail) -> None:
    context = {"requestId": "llm-123", "requestedBy": "assistant"}
    request = await written(trail, "tool.request.v1", context, "session:s1", "workspace:tools")

    assert reply_tags(request) == ("session:s1", "request:llm-123", "consumer:assistant")
    assert find_requester(request) == "assistant"
    assert reply_tags(await written(trail, "tool.request.v1", {"tool": "x"})) == ()


@pytest.mark.req("RCR-29")
@pytest.mark.parametrize("spelling", ["request_id", "requestId", "tag"])
async def test_a_response_that_arrives_after_a_restart_finds_its_request(tmp_path: Path, spelling: str) -> None:
    url, clock = f"sqlite://{tmp_path}/restart.db", ManualClock()
    trail = await open_trail(url, clock)
    context, tags = ({}, ("request:r-9",)) if spelling == "tag" else ({spelling: "r-9"}, ())
    await written(trail, "tool.request.v1", {"tool": "other", "request_id": "r-8"})
    request = await written(trail, "tool.request.v1", {"tool": "x", **context}, *tags)
    await trail.close()

    trail = await open_trail(url, clock)
    try:
        response = await written(trail, "tool.response.v1", {"request_id": "r-9"}, "request:r-9")
        request_id = find_request_id(response)
        assert request_id is not None
        found = await find_request(trail, request_id, by=ANN)

        assert found is not None
        assert found.id == request.id
    finally:
        await trail.close()


@pytest.mark.req("RCR-29")
async def test_a_request_of_another_owner_or_id_is_not_found(trail: Trail) -> None:
    await written(trail, "tool.request.v1", {"tool": "x", "request_id": "r-1"}, "request:r-1")

    assert await find_request(trail, "r-1", by=BOB) is None
    assert await find_request(trail, "r-2", by=ANN) is None
    assert await find_request(trail, "r-1", by=ANN, schema_name="context.request.v1") is None
