"""A trail that was closed answers every call with the same error."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from clew.access import Principal
from clew.errors import StorageError
from clew.trail.model.event import Consumer
from clew.trail.model.query import SearchRequest
from clew.trail.store import Trail
from tests.conformance.records import draft, look_for, make

CALLS: dict[str, Callable[[Trail, Principal], Awaitable[object]]] = {
    "search": lambda trail, by: trail.index.search(SearchRequest(text="thread"), by=by),
    "warm": lambda trail, by: trail.index.warm(),
    "list": lambda trail, by: trail.records.list(by=by),
    "create": lambda trail, by: trail.records.create(draft("late"), by=by),
    "read the log": lambda trail, by: trail.log.read(0, by=by),
    "head": lambda trail, by: trail.log.head(),
    "register": lambda trail, by: trail.deliveries.register(Consumer(name="c"), by=by),
    "claim": lambda trail, by: trail.deliveries.claim("c", by=by, worker="w"),
    "stats": lambda trail, by: trail.upkeep.stats(by=by),
    "check": lambda trail, by: trail.upkeep.check(),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("is_searched", [False, True])
async def test_a_closed_trail_says_so(trail: Trail, me: Principal, call: str, is_searched: bool) -> None:
    await make(trail, me, "thread")
    if is_searched:
        await look_for(trail, me, "thread")
    await trail.close()
    with pytest.raises(StorageError, match="the trail is closed"):
        await CALLS[call](trail, me)
