"""Wake-ups of callers that wait for commits of other processes."""

from __future__ import annotations

import asyncio

from clew.trail.postgres.wakeups import Wakeups

PATIENCE = 30.0


async def test_a_look_of_one_wakes_all_who_wait() -> None:
    async def read_head() -> int:
        return 5

    wakeups, woken = Wakeups(read_head), asyncio.Event()
    with wakeups.watching(woken.set):
        await wakeups.look()  # of another one, before the next poll
        async with asyncio.timeout(PATIENCE):
            await woken.wait()
    assert wakeups.head == 5
