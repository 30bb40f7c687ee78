"""The thread that owns the search index of a trail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from clew.errors import StorageError

T = TypeVar("T")


class SearchThread:
    """One thread that works in the order of the calls. After `close` each call raises StorageError."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="clew-search")
        self._is_closed = False

    def submit(self, work: Callable[[], T]) -> Future[T]:
        try:
            return self._pool.submit(work)
        except RuntimeError:
            if not self._is_closed:
                raise
            raise StorageError("the trail is closed") from None

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.wrap_future(self.submit(work))

    def close(self) -> None:
        """Finish what was submitted."""
        self._is_closed = True
        self._pool.shutdown(wait=True)
