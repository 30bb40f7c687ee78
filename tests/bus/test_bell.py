"""Waiting that the bus interrupts. The attempts here read once, at their start, so that only the bell can wake them."""

from __future__ import annotations

import asyncio

import pytest

from clew.bus.bell import Bell
from clew.bus.notice import Notice

PATIENCE = 30.0
NEWS = Notice(id="1", owner_id="acme", schema_name="job.v1")


class Shelf:
    """Something to wait for. `looks` counts how often somebody began to look."""

    def __init__(self) -> None:
        self.things: list[str] = []
        self.looks = asyncio.Queue[int]()
        self.returned: list[str] = []

    async def take(self, seconds: float) -> list[str]:
        self.looks.put_nowait(1)
        if not self.things:
            await asyncio.sleep(seconds)
        found, self.things = self.things, []
        return found

    async def give_back(self, things: list[str]) -> None:
        self.returned += things


async def test_the_bell_makes_a_waiting_attempt_look_again() -> None:
    bell, shelf = Bell(), Shelf()
    async with asyncio.timeout(PATIENCE):
        waiting = asyncio.create_task(bell.attempt(shelf.take, 2 * PATIENCE, lambda notice: True))
        await shelf.looks.get()
        shelf.things.append("news")
        bell.ring(NEWS)
        assert await waiting == ["news"]


async def test_an_unrelated_notice_wakes_no_waiter_and_a_lost_one_wakes_all() -> None:
    bell, shelf = Bell(), Shelf()
    async with asyncio.timeout(PATIENCE):
        waiting = asyncio.create_task(bell.attempt(shelf.take, 2 * PATIENCE, lambda notice: notice.id == "2"))
        await shelf.looks.get()
        shelf.things.append("news")
        bell.ring(NEWS)
        for _ in range(10):
            await asyncio.sleep(0)
        assert shelf.looks.empty()
        bell.ring(None)
        assert await waiting == ["news"]


async def test_without_the_bell_an_attempt_ends_by_itself() -> None:
    assert await Bell().attempt(Shelf().take, 0.01, lambda notice: True) == []


async def test_claims_for_a_cancelled_waiter_are_released() -> None:
    bell, shelf = Bell(), Shelf()
    shelf.things.append("news")
    waiting = asyncio.create_task(bell.attempt(shelf.take, PATIENCE, lambda notice: True, shelf.give_back))
    await shelf.looks.get()  # the attempt is done, and its waiter has not heard of it yet
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert shelf.returned == ["news"]


async def test_a_flood_of_notices_does_not_starve_an_attempt() -> None:
    bell, shelf = Bell(), Shelf()

    async def take_slowly(seconds: float) -> list[str]:
        for _ in range(10):
            await asyncio.sleep(0)
        return await shelf.take(seconds)

    async def flood() -> None:
        while True:
            bell.ring(NEWS)
            await asyncio.sleep(0)

    async with asyncio.timeout(PATIENCE):
        flooding = asyncio.create_task(flood())
        shelf.things.append("news")
        assert await bell.attempt(take_slowly, 2 * PATIENCE, lambda notice: True) == ["news"]
        flooding.cancel()
