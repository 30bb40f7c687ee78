"""The sweeper: at intervals it removes expired records, and writes a report as a `system.hygiene.v1`."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.errors import ClewError
from clew.trail.model.breadcrumb import Draft, Ttl
from clew.trail.store import HygieneStats, Purged, Trail

REPORT_SCHEMA = "system.hygiene.v1"
REPORT_KEPT = timedelta(days=7)

_log = logging.getLogger(__name__)


class Hygiene:
    """Sweeps one trail. Statistics count from the start of the process; earlier runs are reported in breadcrumbs.
    `enabled` affects only the runs at intervals. A call of `run` always sweeps.
    """

    def __init__(
        self,
        trail: Trail,
        *,
        by: Principal,
        clock: Clock,
        every: float = 300.0,
        idle_after: timedelta = timedelta(days=7),
        enabled: bool = True,
    ) -> None:
        self._trail = trail
        self._by = by
        self._clock = clock
        self._every = every
        self._idle_after = idle_after
        self._one_at_a_time = asyncio.Lock()
        self._stats = HygieneStats(
            runs_completed=0, total_breadcrumbs_purged=0, last_run_duration_ms=0.0, hygiene_enabled=enabled
        )

    def stats(self) -> HygieneStats:
        return self._stats

    async def run(self, *, quiet: bool = False) -> Purged:
        """Sweep once, update the statistics, and write the report. With `quiet`, the report is written only if anything
        was removed. Concurrent calls run one after the other."""
        async with self._one_at_a_time:
            started = self._clock.now()
            purged = await self._trail.upkeep.purge(idle_after=self._idle_after)
            self._count(purged, self._clock.now() - started)
            if not quiet or purged.breadcrumbs or purged.agents or purged.subscriptions:
                await self._trail.records.create(self._report(purged), by=self._by)
            return purged

    async def run_forever(self) -> None:
        """Sweep now and then every `every` seconds until cancelled; returns at once when not enabled.

        If a run fails, the error is logged and the next run starts on schedule.
        """
        while self._stats.hygiene_enabled:
            try:
                await self.run(quiet=True)
            except ClewError as error:
                _log.warning("hygiene: %s", error)
            await asyncio.sleep(self._every)

    def _count(self, purged: Purged, took: timedelta) -> None:
        before = self._stats
        self._stats = msgspec.structs.replace(
            before,
            runs_completed=before.runs_completed + 1,
            total_breadcrumbs_purged=before.total_breadcrumbs_purged + purged.breadcrumbs,
            last_run_duration_ms=took / timedelta(milliseconds=1),
        )

    def _report(self, purged: Purged) -> Draft:
        return Draft(
            title="Hygiene run",
            schema_name=REPORT_SCHEMA,
            tags=("system:stats", "system:hygiene"),
            context={
                **msgspec.to_builtins(self._stats),
                "purged": msgspec.to_builtins(purged),
                "config": {"every_seconds": self._every, "idle_seconds": self._idle_after.total_seconds()},
            },
            ttl=Ttl(kind="datetime", expires_at=self._clock.now() + REPORT_KEPT),
            embed="never",
        )
