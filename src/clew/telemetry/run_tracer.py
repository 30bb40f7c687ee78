"""Makes the spans of runs in this process: one for each claim that wrote something or failed, and one for each run that
ended with such a claim."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

from clew.access import Principal
from clew.background_tasks import log_failure
from clew.clock import Clock
from clew.errors import NotFound
from clew.skills.lru_cache import LruCache
from clew.telemetry.settings import TelemetrySettings
from clew.telemetry.spans import FinishedSpan, SettledClaim, claim_span, run_end, run_span, trace_id_of
from clew.trail.bootstrap import read_pieces
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.event import Claim
from clew.trail.model.flow import Flow, read_flow, shipped_flow
from clew.trail.store import Trail
from clew.trail.work.trace_context import find_trace

FAILED, ABANDONED = "failed", "abandoned"
"""The `error` of the span of a failed attempt, and of the span of an abandoned run."""
MAX_OWNERS = 1_000


class RunTracer:
    """Records when claims begin, and exports their spans when they are settled. Callers do not wait for the export."""

    def __init__(
        self, trail: Trail, clock: Clock, settings: TelemetrySettings, export: Callable[[FinishedSpan], None]
    ) -> None:
        self._trail = trail
        self._clock = clock
        self._settings = settings
        self._export = export
        self._began: dict[tuple[str, int], datetime] = {}
        self._flows: LruCache[str, Flow] = LruCache(MAX_OWNERS, lambda flow: 1)
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, claims: Sequence[Claim]) -> None:
        """Note that work on these claims begins now."""
        now = self._clock.now()
        for claim in claims:
            self._began[_key(claim)] = max(now, claim.event.at)  # never before the record that it is about

    def forget(self, claim: Claim) -> datetime | None:
        """Forget a claim that is no longer held. Returns the time at which it began."""
        return self._began.pop(_key(claim), None)

    def finish(self, claim: Claim, outputs: Sequence[Draft], by: Principal) -> None:
        """Make the span of a claim that was finished. A claim without outputs gets no span."""
        began = self.forget(claim)
        if outputs:
            self._settle(claim, outputs, began, by, error="", is_dead=False)

    def fail(self, claim: Claim, by: Principal, *, is_dead: bool) -> None:
        """Make the span of a failed attempt. `is_dead` says that it was the last one."""
        self._settle(claim, (), self.forget(claim), by, error=FAILED, is_dead=is_dead)

    async def close(self) -> None:
        """Wait for the spans of all settled claims."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _settle(
        self,
        claim: Claim,
        outputs: Sequence[Draft],
        began: datetime | None,
        by: Principal,
        *,
        error: str,
        is_dead: bool,
    ) -> None:
        record = claim.event.breadcrumb
        if record is None or not self._settings.is_sampled(trace_id_of(record), find_trace(record)):
            return
        start = began or claim.event.at
        end = max(start, self._clock.now())
        settled = SettledClaim(claim=claim, record=record, outputs=outputs, start=start, end=end, error=error)
        task = asyncio.create_task(self._make(settled, by, is_dead=is_dead))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(log_failure)

    async def _make(self, settled: SettledClaim, by: Principal, *, is_dead: bool) -> None:
        flow = await self._flow(by)
        self._export(claim_span(flow, settled))
        ended = ABANDONED if is_dead and settled.actor else run_end(flow, settled)
        if ended is not None:
            self._export(run_span(settled, await self._trigger(settled, by), ended))

    async def _trigger(self, settled: SettledClaim, by: Principal) -> Breadcrumb:
        """The record that started a run, or the record of the claim if the first is gone."""
        if settled.run == settled.record.id:
            return settled.record
        try:
            return await self._trail.records.get(settled.run, by=by)
        except NotFound:
            return settled.record

    async def _flow(self, by: Principal) -> Flow:
        found = self._flows.find(by.owner_id)
        if found is None:
            try:
                found = await read_flow(self._trail, by=by)
            except NotFound:
                found = shipped_flow(read_pieces())
            self._flows.keep(by.owner_id, found)
        return found


def _key(claim: Claim) -> tuple[str, int]:
    return claim.consumer, claim.event.seq
