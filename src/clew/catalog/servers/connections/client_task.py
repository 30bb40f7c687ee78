"""One lifetime of a connection. The SDK's client must be opened and closed in the same task; this task does that and
waits in between, while other tasks use the client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from clew.catalog.servers.connections.server_errors import Faults, flatten
from clew.catalog.servers.entries.listing_cleanup import TidyStream
from clew.errors import ClewError, ServerError

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client._transport import TransportStreams

_LOST = 3
"""Requests in a row without an answer, after which a connection counts as dead."""


class ClientTask:
    """A client that is being opened, is open, or has ended. `ready` gives the client, or raises ServerError."""

    def __init__(self, server: str, faults: Faults) -> None:
        self.server = server
        self.faults = faults
        self.ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self.ready.add_done_callback(lambda done: done.cancelled() or done.exception())
        self.is_noted = False
        self._users = 0
        self._used_at = asyncio.get_running_loop().time()
        self._unanswered = 0
        self._task: asyncio.Task[None] | None = None

    @property
    def is_alive(self) -> bool:
        return self._task is not None and not self._task.done() and not self.faults.ended.is_set()

    def start(
        self,
        open_client: Callable[[], AbstractAsyncContextManager[Client]],
        *,
        within: float,
        idle: float,
        listen: Callable[[Client], Coroutine[Any, Any, None]],
    ) -> None:
        """Begin. The client must be open `within` seconds; it closes after `idle` seconds without use."""
        self._task = asyncio.create_task(self._live(open_client, within, idle, listen), name=f"mcp:{self.server}")

    @contextmanager
    def used(self) -> Iterator[None]:
        """Mark the client as in use while the block runs, so that it is not idle."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            self._used_at = asyncio.get_running_loop().time()

    def answered(self) -> None:
        self._unanswered = 0

    def unanswered(self) -> None:
        self._unanswered += 1
        if self._unanswered >= _LOST:
            self.faults.end(f"left {_LOST} requests in a row without an answer")

    async def close(self) -> None:
        """End it, and wait until the client is closed."""
        self.faults.end("was closed")
        if self._task is None:
            return
        if not self.ready.done():
            self._give_up("was closed")
        await asyncio.wait([self._task])

    async def wait_closed(self) -> None:
        if self._task is not None:
            await asyncio.wait([self._task])

    def _give_up(self, reason: str) -> None:
        """Cancel the task before its client has opened, with this reason."""
        self.faults.end(reason)
        self._refuse()
        if self._task is not None:
            self._task.cancel()

    def _refuse(self) -> None:
        if not self.ready.done():
            self.ready.set_exception(ServerError(self.server, self.explain()))

    def explain(self) -> str:
        """The reason why the task ended, in one sentence."""
        reason = self.faults.reason or "ended the connection"
        complaint = self.faults.last_complaint()
        return f'{reason}; its last words: "{complaint}"' if complaint else reason

    async def _live(
        self,
        open_client: Callable[[], AbstractAsyncContextManager[Client]],
        within: float,
        idle: float,
        listen: Callable[[Client], Coroutine[Any, Any, None]],
    ) -> None:
        late = asyncio.get_running_loop().call_later(within, self._give_up, f"did not answer within {within:g} seconds")
        try:
            async with open_client() as client:
                late.cancel()
                if not self.ready.done():
                    self.ready.set_result(client)
                await self._keep(client, idle, listen)
        except asyncio.CancelledError:
            if not self.faults.ended.is_set():
                self.faults.end("was cut off")
                raise
        except Exception as error:  # the boundary of this task: errors that a foreign server caused end here
            self.faults.end(describe(error, self.faults))
        finally:
            late.cancel()
            self.faults.end("ended the connection")
            self._refuse()

    async def _keep(self, client: Client, idle: float, listen: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
        """Keep the client open until the connection ends or has been idle for too long."""
        listening = asyncio.create_task(listen(client))
        try:
            while not self.faults.ended.is_set():
                await self._wait(idle)
        finally:
            listening.cancel()
            await asyncio.wait([listening])

    async def _wait(self, idle: float) -> None:
        now = asyncio.get_running_loop().time()
        rest = idle if self._users else self._used_at + idle - now
        if rest <= 0:
            return self.faults.end("was idle")
        try:
            async with asyncio.timeout(rest):
                await self.faults.ended.wait()
        except TimeoutError:
            return None


@asynccontextmanager
async def tidied(
    transport: AbstractAsyncContextManager[TransportStreams], faults: Faults
) -> AsyncIterator[TransportStreams]:
    """A transport whose listings are tidy."""
    async with transport as (read, write):
        yield TidyStream(read, faults), write


def describe(error: BaseException, faults: Faults) -> str:
    """Describe an error, which may be a nested exception group, in one sentence."""
    errors = list(flatten(error))
    first = next((each for each in errors if isinstance(each, (OSError, ClewError))), errors[0])
    kind = type(first).__name__
    if faults.reason:
        return faults.reason
    if faults.hint:
        return faults.note
    if isinstance(first, ClewError):
        return first.reason if isinstance(first, ServerError) else first.message
    if kind.startswith("OAuth"):  # the text after a colon is foreign, and may repeat our request
        return f"the login failed: {faults.plain(str(first).partition(': ')[0])}"
    if faults.status in (401, 403):
        return f"refused our token (HTTP {faults.status})"
    if faults.status:
        return f"answered with HTTP status {faults.status}"
    match first:
        case FileNotFoundError() | PermissionError() | NotADirectoryError():
            return f"its program cannot be started ({(first.strerror or kind).lower()})"
        case _ if "Timeout" in kind:
            return "did not answer in time"
        case _ if kind in ("ConnectError", "ReadError", "RemoteProtocolError", "WriteError"):
            return "cannot be reached"
        case _:
            return f"broke off: {faults.plain(str(first) or kind)}"
