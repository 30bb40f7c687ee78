"""Tasks that run beside other work: started for the body of a block, cancelled together, logged when they fail."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")
log = logging.getLogger(__name__)


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
    """Run `work` while the body runs. The end of the block waits for it and raises its error. If the body fails or is
    cancelled, `work` is cancelled too."""
    task = asyncio.create_task(work)
    try:
        yield task
        await task
    except BaseException:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise


async def cancel_all(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel tasks and wait until all have ended, because the caller closes their resources next. A cancellation of
    this call does not end the wait."""
    waited = list(tasks)
    for task in waited:
        task.cancel()
    ending = asyncio.gather(*waited, return_exceptions=True)
    is_interrupted = False
    while not ending.done():
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            is_interrupted = True
    if is_interrupted:
        raise asyncio.CancelledError


def log_failure(task: asyncio.Task[None]) -> None:
    """Log the error of a task that has ended."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a background task failed: %s", error)
