"""The boundary of code that is not ours: whatever a tool does, it is the failure of its own entry alone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from clew.catalog.answers import Code, Failure
from clew.catalog.markdown import inline
from clew.catalog.secrecy import mask_secrets
from clew.errors import ClewError
from clew.tools import GuidedContent

log = logging.getLogger(__name__)


class Refused(Exception):
    """An entry that is answered with an error."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.failure = Failure(code=code, message=message)


async def attempt(route: str, work: Callable[[], Awaitable[GuidedContent]], seconds: float) -> GuidedContent:
    """What the work gives within its time. Raises Refused for all that it raises itself, also when it cancels itself or
    wants to end the process; the caller's own cancellation passes through."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await work()
    except ClewError as error:
        said = " ".join(str(error).split())
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        said = f"{route} was cancelled from within"
    except (Exception, SystemExit) as error:
        log.warning("%s failed with %s", route, type(error).__name__)
        said = f"{route} failed with {type(error).__name__}: {inline(str(error), 500)}"
        if limit.expired():
            said = f"{route} took longer than {seconds:g} seconds"
    raise Refused("EXECUTION_ERROR", mask_secrets(said)) from None


def cut(data: GuidedContent, limit: int) -> GuidedContent:
    """The content up to a number of characters, saying so where it has more."""
    size = len(data.content)
    if size <= limit:
        return data
    content = f"{data.content[:limit]}\n\n*Cut after {limit:,} of {size:,} characters.*"
    return GuidedContent(content=content, guidance=data.guidance)
