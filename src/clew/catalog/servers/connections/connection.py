"""The single connection to a server: started on first use, restarted after a failure, closed when idle. A caller always
gets an answer or a one-sentence ServerError within the time limit.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from clew.catalog.servers.config import McpServerConfig
from clew.catalog.servers.connections.client_factory import ClientFactory, foreign_errors, has_lost_session
from clew.catalog.servers.connections.client_task import ClientTask, describe
from clew.catalog.servers.connections.hooks import Response, ServerHookChain, ServerRequest, ServerToken
from clew.catalog.servers.connections.notifications import Watchers
from clew.catalog.servers.connections.request_timeouts import RequestTimeouts
from clew.catalog.servers.connections.sampling import ModelFor
from clew.catalog.servers.connections.server_errors import Faults, LostSession, Paused, Refusal, flatten
from clew.catalog.servers.entries.entries import MAX_KEPT, ServerAbout, kept_text
from clew.catalog.servers.entries.listing import ListKind, ServerListing, offers, read_listing, read_page
from clew.catalog.servers.launch_values import resolve_token, resolve_values
from clew.catalog.servers.login.browser import Browser
from clew.catalog.servers.login.request_auth import Access
from clew.catalog.servers.login.tokens import Tokens
from clew.catalog.servers.login.vault import MemoryVault, Vault
from clew.clock import Clock, SystemClock
from clew.errors import ConfigError, ServerError

if TYPE_CHECKING:
    from mcp import Client
    from mcp.shared.dispatcher import ProgressFnT
    from mcp_types import CallToolResult, CompleteResult, GetPromptResult, ReadResourceResult

MAX_DELAY = 60.0
LISTING_TIMES = 4
"""The time limit of a complete listing, as a multiple of the limit of one request."""

R = TypeVar("R")
Act = Callable[["Client", dict[str, Any]], Awaitable[R]]
OnEnd = Callable[[ServerError | ConfigError | None], Awaitable[None]]


class ServerConnection:
    """Many tasks may use the connection concurrently; `close` ends it permanently. `on_start` is called at each start,
    and `on_change` when the server announces a changed list. Neither may block. `on_end` is awaited after each request
    with the server's failure, or with None if the server answered or refused. With a `browser`, the user logs in if the
    server requires it. Without one, the login stored in the `vault` is used. All calls raise ServerError, and
    ConfigError if a variable or secret is not set.
    """

    def __init__(
        self,
        config: McpServerConfig,
        *,
        hooks: ServerHookChain | None = None,
        clock: Clock | None = None,
        chance: random.Random | None = None,
        environ: Mapping[str, str] | None = None,
        vault: Vault | None = None,
        on_start: Callable[[], None] = lambda: None,
        on_change: Callable[[], None] = lambda: None,
        on_end: OnEnd | None = None,
        model_for: ModelFor | None = None,
        browser: Browser | None = None,
    ) -> None:
        self.config = config
        self.starts = 0
        self._hooks = hooks or ServerHookChain()
        self._clock = clock or SystemClock()
        self._chance = chance or random.Random()
        self._environ = os.environ if environ is None else environ
        self._vault = vault or MemoryVault()
        self._on_start = on_start
        self._on_end = on_end
        self._watchers = Watchers(config.id, on_change)
        self._patience = RequestTimeouts(config.timeout_seconds)
        asking = self._hooks if config.auth.type != "none" else ServerHookChain()
        tokens = Tokens(config.id, asking, self._configured_token)
        self._access = Access(config, tokens, self._vault, self._clock, browser)
        self._opener = ClientFactory(config, self._hooks, self._access, self._patience, self._watchers, model_for)
        self._link: ClientTask | None = None
        self._starting = asyncio.Lock()
        self._failures = 0
        self._retry_at: datetime | None = None
        self._is_closed = False

    @property
    def is_open(self) -> bool:
        return self._link is not None and self._link.is_alive

    async def about(self) -> ServerAbout:
        """The server's description of itself."""

        async def look(client: Client, params: dict[str, Any]) -> ServerAbout:
            info, has = client.server_info, client.server_capabilities
            return ServerAbout(
                name=kept_text(info.name)[:200] if info else "",
                version=kept_text(info.version)[:100] if info else "",
                instructions=kept_text(client.instructions or "")[:MAX_KEPT],
                protocol=client.protocol_version,
                offers_subscriptions=bool(has.resources and has.resources.subscribe),
            )

        return await self._send("server/discover", {}, look)

    async def list_all(self, kind: ListKind) -> ServerListing:
        """List all entries of one kind, within the limits; empty if the server has no such list."""

        async def read(client: Client, params: dict[str, Any]) -> tuple[list[Any], str | None]:
            return await read_page(client, kind, params.get("cursor")) if offers(client, kind) else ([], None)

        async def page(cursor: str | None) -> tuple[list[Any], str | None]:
            method = "resources/templates/list" if kind == "resource_templates" else f"{kind}/list"
            return await self._send(method, {"cursor": cursor} if cursor else {}, read)

        async def goes_on(cursor: str) -> bool:
            return await self._hooks.goes_on(self.config.id, cursor)

        try:
            async with asyncio.timeout(LISTING_TIMES * self.config.timeout_seconds):
                listing = await read_listing(page, goes_on, kind)
        except TimeoutError:
            raise ServerError(self.config.id, f"took too long to list its {kind}") from None
        dropped = self._link.faults.take_dropped() if self._link is not None else []
        return ServerListing(entries=listing.entries, left_out=[*dropped, *listing.left_out])

    async def call_tool(
        self, name: str, arguments: dict[str, Any], report: ProgressFnT | None = None
    ) -> CallToolResult:
        async def call(client: Client, params: dict[str, Any]) -> CallToolResult:
            return await client.call_tool(params["name"], params["arguments"], progress_callback=report)

        return await self._send("tools/call", {"name": name, "arguments": arguments}, call)

    async def read_resource(self, uri: str) -> ReadResourceResult:
        async def read(client: Client, params: dict[str, Any]) -> ReadResourceResult:
            return await client.read_resource(params["uri"])

        return await self._send("resources/read", {"uri": uri}, read)

    async def get_prompt(self, name: str, arguments: dict[str, str]) -> GetPromptResult:
        async def get(client: Client, params: dict[str, Any]) -> GetPromptResult:
            return await client.get_prompt(params["name"], params["arguments"])

        return await self._send("prompts/get", {"name": name, "arguments": arguments}, get)

    async def complete(self, prompt: str, argument: str, value: str) -> CompleteResult:
        """The server's completions for an argument of a prompt, if completions are on."""
        from mcp_types import PromptReference  # loaded with the SDK

        if not self.config.features.completions:
            raise ServerError(self.config.id, "completions are switched off", hint="Set features.completions to true")

        async def complete(client: Client, params: dict[str, Any]) -> CompleteResult:
            return await client.complete(PromptReference(name=params["name"]), params["argument"])

        params = {"name": prompt, "argument": {"name": argument, "value": value}}
        return await self._send("completion/complete", params, complete)

    @asynccontextmanager
    async def subscribe(self, uri: str) -> AsyncIterator[AsyncIterator[str]]:
        """An iterator over the addresses of changed resources. It raises ServerError when the connection ends."""
        async with self._opened() as (link, client):
            try:
                async with self._watchers.watch(client, uri, link.faults) as changes:
                    yield changes
            except foreign_errors() as error:
                raise self._refusal(link, "resources/subscribe", error) from None

    async def close(self) -> None:
        """End it, and wait until that is done. Calling it twice is harmless."""
        self._is_closed = True
        if self._link is not None:
            await self._link.close()

    async def wait_closed(self) -> None:
        """Wait until the present connection has ended."""
        if self._link is not None:
            await self._link.wait_closed()

    async def _send(self, method: str, params: dict[str, Any], act: Act[R]) -> R:
        """Send a request within its time limit, with the request hooks before and the response hooks after it."""
        request = await self._hooks.request(ServerRequest(server=self.config.id, method=method, params=params))
        try:
            result = await self._attempt_twice(method, request.params, act)
        except (ServerError, ConfigError) as error:
            if not isinstance(error, Paused):
                await self._end(None if isinstance(error, Refusal) else error)
            raise
        await self._end(None)
        response = await self._hooks.response(Response(server=self.config.id, method=method, result=result))
        found: R = response.result
        return found

    async def _end(self, error: ServerError | ConfigError | None) -> None:
        if self._on_end is not None and not self._is_closed:  # a connection that we closed has not failed
            await self._on_end(error)

    async def _attempt_twice(self, method: str, params: dict[str, Any], act: Act[R]) -> R:
        try:
            return await self._attempt(method, params, act)
        except LostSession:
            return await self._attempt(method, params, act)

    async def _attempt(self, method: str, params: dict[str, Any], act: Act[R]) -> R:
        async with self._opened() as (link, client):
            try:
                async with self._patience.limit():
                    result = await act(client, params)
            except TimeoutError:
                link.unanswered()
                limit = f"{self.config.timeout_seconds:g} seconds"
                raise ServerError(self.config.id, f"did not answer {method} within {limit}") from None
            except foreign_errors() as error:
                raise self._refusal(link, method, error) from None
        link.answered()
        link.faults.take_note()  # earlier faults are over, and must not explain a later failure
        self._failures, self._retry_at = 0, None
        return result

    def _refusal(self, link: ClientTask, method: str, error: BaseException) -> ServerError:
        """The sentence for a request that failed. A connection that is dead is marked so."""
        from mcp.shared.exceptions import MCPError
        from mcp_types import CONNECTION_CLOSED

        first = next(flatten(error))
        if has_lost_session(first):
            link.faults.end("ended the session")
            return LostSession(self.config.id, "does not keep its session")
        (note, hint), is_over = link.faults.take_note(), getattr(first, "code", 0) == CONNECTION_CLOSED
        if is_over:
            link.faults.end(note)
            self._note_failure(link)
        if note:
            return ServerError(self.config.id, note, hint=hint)
        if is_over:
            return ServerError(self.config.id, f"{link.explain()}, before it answered {method}")
        if not isinstance(first, MCPError):
            return ServerError(self.config.id, f"gave an answer to {method} that the protocol does not allow")
        if first.message == "Server returned an error response":
            return ServerError(self.config.id, describe(first, link.faults), hint=self._token_hint(link))
        return Refusal(self.config.id, f'refused {method}: "{link.faults.plain(first.message)}"')

    def _token_hint(self, link: ClientTask) -> str:
        if link.faults.hint:
            return link.faults.hint
        if link.faults.status not in (401, 403):
            return ""
        return self._access.hint

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[tuple[ClientTask, Client]]:
        """Yield the live link, or a new one, and its client. The link counts as in use, not idle, while the block
        runs."""
        async with self._starting:
            if self._is_closed:
                raise ServerError(self.config.id, "was closed")
            if self._link is None or not self._link.is_alive:
                self._check_turn()
                self._link = await self._start()
            link = self._link
        with link.used():
            yield link, await self._client_of(link)

    async def _client_of(self, link: ClientTask) -> Client:
        try:
            return await asyncio.shield(link.ready)
        except ServerError as error:
            self._note_failure(link)
            raise ServerError(self.config.id, error.reason, hint=self._token_hint(link)) from None

    async def _start(self) -> ClientTask:
        if self._link is not None:
            await self._link.wait_closed()
        values = await resolve_values(self.config, self._environ, self._vault.reveal)
        await self._access.check_login(values)
        link = ClientTask(self.config.id, Faults(values.secrets))
        self.starts += 1
        limit, idle = self.config.timeout_seconds, self.config.idle_seconds
        link.start(lambda: self._opener.open(values, link.faults), within=limit, idle=idle, listen=self._listen)
        return link

    def _check_turn(self) -> None:
        """Raise Paused, a ServerError, if the delay before the next restart has not passed."""
        rest = (self._retry_at - self._clock.now()).total_seconds() if self._retry_at is not None else 0.0
        is_possible = rest <= 1.5 * MAX_DELAY  # otherwise the clock was set back
        if rest > 0 and is_possible and self._link is not None:
            hint = f"It is started again in {rest:.0f} seconds at the earliest"
            raise Paused(self.config.id, self._link.explain(), hint=hint)

    def _note_failure(self, link: ClientTask) -> None:
        """Record a failed start and set the earliest time of the next one: at once after the first failure, then with
        exponential backoff and jitter."""
        if link.is_noted:
            return
        link.is_noted = True
        self._failures += 1
        delay = 0.0 if self._failures < 2 else min(MAX_DELAY, 2.0 ** min(self._failures - 2, 10))
        self._retry_at = self._clock.now() + timedelta(seconds=delay * (0.5 + self._chance.random()))

    async def _listen(self, client: Client) -> None:
        """Follow the server's notifications about its lists, on either version of the protocol."""
        self._on_start()
        if self.config.features.logging:
            await self._watchers.ask_for_logs(client)
        await self._watchers.follow_lists(client)

    async def _configured_token(self) -> ServerToken | None:
        return await resolve_token(self.config, self._environ, self._vault.reveal)
