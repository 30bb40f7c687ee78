"""Marks of calls that have begun and may not be repeated: where one is there and no response, the process ended in
between."""

from __future__ import annotations

from clew.access import Principal
from clew.agents.runs.requests import ToolRequest
from clew.tools.tool import Effects
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.flow import Flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import REQUEST_TAG, inherited_tags


class BegunCalls:
    """The marks of one owner's calls, on the trail."""

    def __init__(self, trail: Trail, flow: Flow, *, by: Principal) -> None:
        self._records = trail.records
        self._flow = flow
        self._by = by

    async def has_begun(self, request: ToolRequest) -> bool:
        """Whether there is the mark of a call."""
        selector = Selector(schema_name=self._flow.started, all_tags=(REQUEST_TAG + request.request_id,))
        return bool((await self._records.list(selector, by=self._by, limit=1)).items)

    async def was_interrupted(self, effects: Effects, request: ToolRequest, record: Breadcrumb) -> bool:
        """Whether a call that must not be repeated had begun. Where it had not, it is marked as begun."""
        if effects.reads_only or effects.repeats_safely or effects.keyed:
            return False
        if await self.has_begun(request):
            return True
        await self._records.create(self._mark(request, record), by=self._by)
        return False

    def _mark(self, request: ToolRequest, record: Breadcrumb) -> Draft:
        return Draft(
            title=f"{request.tool} begins"[:200],
            schema_name=self._flow.started,
            tags=(REQUEST_TAG + request.request_id, *inherited_tags(record)),
            context={"request_id": request.request_id, "tool": request.tool},
            scopes=record.scopes,
            embed="never",
        )
