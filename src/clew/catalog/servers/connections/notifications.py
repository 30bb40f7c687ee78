"""Change notifications of a server about its lists and resources. The older protocol sends notifications; the newer one
delivers them in response to a long-lived request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from clew.catalog.servers.connections.server_errors import Faults
from clew.errors import ServerError

if TYPE_CHECKING:
    from mcp import Client

MAX_WAITING = 100
MAX_LISTENS = 5
_PAUSE = 1.0


class Watchers:
    """The subscribers to changes of one server."""

    def __init__(self, server: str, on_change: Callable[[], None]) -> None:
        self._server = server
        self._on_change = on_change
        self._queues: dict[str, set[asyncio.Queue[str]]] = {}

    async def handle(self, message: Any) -> None:
        """A notification of the older era."""
        from mcp_types import ResourceUpdatedNotification

        if isinstance(message, ResourceUpdatedNotification):
            for queue in self._queues.get(str(message.params.uri), ()):
                with suppress(asyncio.QueueFull):
                    queue.put_nowait(str(message.params.uri))
        elif getattr(message, "method", "").endswith("/list_changed"):
            self._on_change()

    async def ask_for_logs(self, client: Client) -> None:
        """Ask a server of the older protocol to send logs. In the newer protocol each request asks for its own logs."""
        from mcp.shared.exceptions import MCPError
        from mcp_types import EmptyResult, SetLevelRequest, SetLevelRequestParams

        if client.server_capabilities.logging is not None and not _is_new(client):
            with suppress(MCPError, ValueError):
                request = SetLevelRequest(params=SetLevelRequestParams(level="debug"))
                await client.session.send_request(request, EmptyResult)

    async def follow_lists(self, client: Client) -> None:
        """Report every changed list on the newer protocol, until the connection ends."""
        from mcp.client.subscriptions import SubscriptionLost
        from mcp.shared.exceptions import MCPError

        has = client.server_capabilities
        tools, prompts = bool(has.tools and has.tools.list_changed), bool(has.prompts and has.prompts.list_changed)
        resources = bool(has.resources and has.resources.list_changed)
        if not _is_new(client) or not (tools or prompts or resources):
            return
        for attempt in range(MAX_LISTENS):
            with suppress(SubscriptionLost, MCPError, TimeoutError, ValueError):
                async with client.listen(
                    tools_list_changed=tools, prompts_list_changed=prompts, resources_list_changed=resources
                ) as changes:
                    if attempt:
                        self._on_change()  # changes between two streams are not announced
                    async for _ in changes:
                        self._on_change()
            await asyncio.sleep(_PAUSE * 2**attempt)

    @asynccontextmanager
    async def watch(self, client: Client, uri: str, faults: Faults) -> AsyncIterator[AsyncIterator[str]]:
        """The addresses of changed resources below one address."""
        if _is_new(client):
            async with client.listen(resource_subscriptions=[uri]) as changes:
                yield (getattr(event, "uri", uri) async for event in changes)
            return
        from mcp_types import (
            EmptyResult,
            SubscribeRequest,
            SubscribeRequestParams,
            UnsubscribeRequest,
            UnsubscribeRequestParams,
        )

        queue: asyncio.Queue[str] = asyncio.Queue(MAX_WAITING)
        self._queues.setdefault(uri, set()).add(queue)
        try:
            await client.session.send_request(SubscribeRequest(params=SubscribeRequestParams(uri=uri)), EmptyResult)
            yield self._changes(queue, faults)
        finally:
            self._queues[uri].discard(queue)
            if not self._queues[uri] and not faults.ended.is_set():
                ending = UnsubscribeRequest(params=UnsubscribeRequestParams(uri=uri))
                await client.session.send_request(ending, EmptyResult)

    async def _changes(self, queue: asyncio.Queue[str], faults: Faults) -> AsyncIterator[str]:
        ended = asyncio.ensure_future(faults.ended.wait())
        try:
            while True:
                change = asyncio.ensure_future(queue.get())
                await asyncio.wait((change, ended), return_when=asyncio.FIRST_COMPLETED)
                if not change.done():
                    change.cancel()
                    raise ServerError(self._server, faults.reason or "ended the connection")
                yield change.result()
        finally:
            ended.cancel()


def _is_new(client: Client) -> bool:
    """Whether the server speaks the newer era."""
    return client.session.discover_result is not None
