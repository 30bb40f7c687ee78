"""The boundary around foreign code: if a tool misbehaves, only its own entry fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from clew.catalog.operations.answers import Code, EntryFailure
from clew.catalog.operations.text import inline, open_bar
from clew.errors import ClewError
from clew.secrecy import mask_secrets
from clew.tools import GuidedContent

log = logging.getLogger(__name__)

GRACE_SECONDS = 1.0
"""Seconds that cancelled work may take to end before it is abandoned."""

_running: set[asyncio.Task[GuidedContent | BaseException]] = set()  # the event loop alone would forget them


class Refused(Exception):
    """An entry that is answered with an error."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.failure = EntryFailure(code=code, message=message)


async def attempt(route: str, work: Callable[[], Awaitable[GuidedContent]], seconds: float) -> GuidedContent:
    """The result of the work within its time limit.

    Raises Refused if the work raises any exception, including SystemExit, cancels itself, or exceeds the time limit,
    even if it ignores cancellation. Cancelling the caller cancels the work. KeyboardInterrupt passes through.
    """
    task = asyncio.create_task(_outcome(work))
    _running.add(task)
    task.add_done_callback(_running.discard)
    try:
        await asyncio.wait({task}, timeout=seconds)
        is_late = not task.done()
    finally:
        await _end(task)
    if is_late:
        raise Refused("EXECUTION_ERROR", f"{route} took longer than {seconds:g} seconds")
    outcome = asyncio.CancelledError() if task.cancelled() else task.result()
    if isinstance(outcome, BaseException):
        raise Refused("EXECUTION_ERROR", mask_secrets(_explain(route, outcome)))
    return outcome


async def _outcome(work: Callable[[], Awaitable[GuidedContent]]) -> GuidedContent | BaseException:
    """The result or the exception of the work, as a value: a task that raises SystemExit would end the event loop."""
    try:
        return await work()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the boundary of code that is not ours
        return error


async def _end(task: asyncio.Task[GuidedContent | BaseException]) -> None:
    """Cancel the task if it is still running. A task that does not end soon is abandoned and its outcome ignored."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=GRACE_SECONDS)
    if not task.done():
        log.warning("a call that did not end when it was cancelled was abandoned")


def _explain(route: str, error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError):
        return f"{route} was cancelled from within"
    text = text_of(error)
    if isinstance(error, ClewError):
        return " ".join(text.split())
    log.warning("%s failed with %s", route, type(error).__name__)
    return f"{route} failed with {type(error).__name__}: {inline(text, 500)}"


def text_of(error: BaseException) -> str:
    """The message of an error; empty if `str` fails."""
    try:
        return str(error)
    except Exception:  # the error class is foreign code, too
        return ""


def cut(data: GuidedContent, limit: int) -> GuidedContent:
    """The content up to a number of characters, with a note if it has more. A fence that the cut leaves open is
    closed, so that nothing which follows can end it."""
    size = len(data.content)
    if size <= limit:
        return data
    kept = data.content[:limit]
    bar = open_bar(kept)
    closed = f"{kept}\n{bar}" if bar else kept
    content = f"{closed}\n\n*Cut after {limit:,} of {size:,} characters.*"
    return GuidedContent(content=content, guidance=data.guidance)
