"""Timeouts of requests. The clock stops while a person answers a question of the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager


class RequestTimeouts:
    """The limit of all requests of one connection."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._limits: set[asyncio.Timeout] = set()
        self._asking = 0

    @asynccontextmanager
    async def limit(self) -> AsyncIterator[None]:
        """Raises TimeoutError when the block takes too long."""
        async with asyncio.timeout(None if self._asking else self._seconds) as limit:
            self._limits.add(limit)
            try:
                yield
            finally:
                self._limits.discard(limit)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Suspend all timeouts while a person answers a question. The request behind the question is not known, so all
        requests are suspended and afterwards get their full time again."""
        self._asking += 1
        self._move(None)
        try:
            yield
        finally:
            self._asking -= 1
            if not self._asking:
                self._move(asyncio.get_running_loop().time() + self._seconds)

    def _move(self, when: float | None) -> None:
        for limit in self._limits:
            if not limit.expired():
                limit.reschedule(when)
