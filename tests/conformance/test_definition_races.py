"""A definition that changes while breadcrumbs are checked: written records fit the definitions at the time of the
write."""

from __future__ import annotations

import asyncio

import pytest

from clew.access import Principal
from clew.errors import InvalidInput
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.store import Trail

NEEDS_NAME = {"type": "object", "required": ["name"]}


@pytest.mark.req("RCR-13")
async def test_no_write_bypasses_a_concurrent_definition(trail: Trail, me: Principal) -> None:
    """All writes begin at once. Those before the definition are accepted, those after it are refused."""
    await trail.records.create(Draft(title="Known before", context={}, schema_name="tool.v1"), by=me)
    free = [
        asyncio.ensure_future(trail.records.create(Draft(title="Free", context={}, schema_name="tool.v1"), by=me))
        for _ in range(5)
    ]
    context = {"schema_name": "tool.v1", "json_schema": NEEDS_NAME}
    rule = asyncio.ensure_future(
        trail.records.create(Draft(title="Rule", context=context, schema_name="schema.def.v1"), by=me)
    )
    late = [
        asyncio.ensure_future(trail.records.create(Draft(title="Late", context={}, schema_name="tool.v1"), by=me))
        for _ in range(5)
    ]
    assert all(isinstance(each, Breadcrumb) for each in await asyncio.gather(*free))
    assert (await rule).schema_name == "schema.def.v1"
    assert [type(each).__mro__[1] for each in await asyncio.gather(*late, return_exceptions=True)] == [InvalidInput] * 5
    fitting = Draft(title="Fits", context={"name": "x"}, schema_name="tool.v1")
    assert (await trail.records.create(fitting, by=me)).title == "Fits"


@pytest.mark.req("RCR-13")
async def test_no_update_bypasses_a_concurrent_definition(trail: Trail, me: Principal) -> None:
    made = await trail.records.create(Draft(title="Early", context={}, schema_name="tool.v1"), by=me)
    context = {"schema_name": "tool.v1", "json_schema": NEEDS_NAME}
    rule = trail.records.create(Draft(title="Rule", context=context, schema_name="schema.def.v1"), by=me)
    update = trail.records.update(made.id, Change(context={"late": 1}), expect=1, by=me)
    _, late = await asyncio.gather(rule, update, return_exceptions=True)
    assert isinstance(late, InvalidInput)
    assert (await trail.records.get(made.id, by=me)).version == 1
