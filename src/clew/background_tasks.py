"""Two things at the same time, where one of them is the point."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
    """Work that goes on while the body does something else. It is waited for when the body is done, and raises then;
    when the body fails or is cancelled, it is cancelled too."""
    task = asyncio.create_task(work)
    try:
        yield task
        await task
    except BaseException:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise
