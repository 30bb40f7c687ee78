"""The executed code is the code that the permission check saw, even if its record changes in between."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from clew.access import Principal
from clew.clock import ManualClock
from clew.tools.permissions.policy import DEFAULT
from clew.tools.tool import Tool, tool
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.agents.runtimes import Running, running

REACHING = {"name": "weather", "code": "1", "permissions": {"net": ["example.org"]}}
SHUT_IN = {"name": "weather", "code": "2", "permissions": {}}


class Workshop:
    """Makes tools of records. Changes the record while the first call is prepared."""

    def __init__(self, trail: Trail, me: Principal, change: dict[str, Any]) -> None:
        self._trail, self._me = trail, me
        self._change: dict[str, Any] | None = change
        self.ran: list[int] = []

    async def make(self, record: Breadcrumb, config: Mapping[str, Any]) -> Tool:
        if self._change is not None:
            change, self._change = Change(context=self._change), None
            await self._trail.records.update(record.id, change, expect=record.version, by=self._me)

        @tool
        async def weather() -> str:
            """Tell the weather."""
            self.ran.append(record.version)
            return "fair"

        return msgspec.structs.replace(weather, name=str(record.context["name"]))


async def ask_for_weather(run: Running) -> Breadcrumb:
    draft = Draft(title="r", schema_name=run.flow.request, tags=("workspace:tools",), context={"tool": "weather"})
    return await run.trail.records.create(draft, by=run.me)


async def test_code_that_reaches_out_needs_permission_although_its_record_changed(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    workshop = Workshop(trail, me, SHUT_IN)
    async with running(trail, clock, me, [], policy=DEFAULT, from_record=workshop.make) as run:
        await run.define(run.flow.tool, **REACHING)
        await ask_for_weather(run)
        either = Selector(schema_names=(run.flow.permission_request, run.flow.response))
        (told,) = await run.until(either)
        assert told.schema_name == run.flow.permission_request
        assert "example.org" in told.context["pattern"], "the user is shown what would run"
    assert workshop.ran == []


async def test_isolated_code_runs_although_its_record_now_reaches_out(
    trail: Trail, clock: ManualClock, me: Principal
) -> None:
    workshop = Workshop(trail, me, REACHING)
    async with running(trail, clock, me, [], policy=DEFAULT, from_record=workshop.make) as run:
        await run.define(run.flow.tool, **SHUT_IN)
        await ask_for_weather(run)
        await run.until(Selector(schema_name=run.flow.response))
        assert workshop.ran == [1]
        await ask_for_weather(run)
        await run.until(Selector(schema_name=run.flow.permission_request))
    assert workshop.ran == [1], "the next call is judged by what it would run"
