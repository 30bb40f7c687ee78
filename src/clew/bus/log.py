"""The `Log` of a trail with a bus: commits of other processes wake its readers."""

from __future__ import annotations

from collections.abc import AsyncIterator

from clew.access import Principal
from clew.bus.bell import Bell
from clew.bus.notice import Notice
from clew.trail.model.event import Event
from clew.trail.model.selector import EVERYTHING, Selector, matches_envelope
from clew.trail.store import Log

FOLLOW_SECONDS = 60.0


class WokenLog:
    """See `clew.trail.store.Log`."""

    def __init__(self, log: Log, bell: Bell) -> None:
        self._log = log
        self._bell = bell

    async def read(
        self, after: int, *, by: Principal, selector: Selector = EVERYTHING, limit: int = 500
    ) -> tuple[list[Event], int]:
        return await self._log.read(after, by=by, selector=selector, limit=limit)

    async def head(self) -> int:
        return await self._log.head()

    async def creation_of(self, breadcrumb_id: str, *, by: Principal) -> int:
        return await self._log.creation_of(breadcrumb_id, by=by)

    async def wait(self, after: int, timeout: float, *, selector: Selector = EVERYTHING) -> bool:
        return await self._bell.attempt(
            lambda seconds: self._log.wait(after, seconds, selector=selector),
            timeout,
            lambda notice: may_mean(selector, notice),
        )

    async def follow(self, after: int, *, by: Principal, selector: Selector = EVERYTHING) -> AsyncIterator[Event]:
        while True:
            events, after = await self.read(after, by=by, selector=selector)
            for event in events:
                yield event
            if not events:
                await self.wait(after, FOLLOW_SECONDS, selector=selector)


def may_mean(selector: Selector, notice: Notice) -> bool:
    """Whether a selector may match the change of a notice. A notice without schema and tags may be about any record."""
    is_bare = notice.schema_name is None and not notice.tags
    return is_bare or matches_envelope(selector, notice.schema_name, notice.tags)
