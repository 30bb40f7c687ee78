"""Opens the SDK's client for one server: chooses the transport and the capabilities that the server may use, and
overrides some defaults of the SDK."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio

import clew
from clew.catalog.servers.config import McpServerConfig
from clew.catalog.servers.connections.client_task import tidied
from clew.catalog.servers.connections.elicitation import Elicitations
from clew.catalog.servers.connections.hooks import LogLine, ServerHookChain
from clew.catalog.servers.connections.notifications import Watchers
from clew.catalog.servers.connections.request_timeouts import RequestTimeouts
from clew.catalog.servers.connections.sampling import ModelFor, Sampling
from clew.catalog.servers.connections.server_errors import Faults, flatten
from clew.catalog.servers.launch_values import Values
from clew.catalog.servers.login.request_auth import Access

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client._transport import TransportStreams


class ClientFactory:
    """Opens the client of one server, as often as needed."""

    def __init__(
        self,
        config: McpServerConfig,
        hooks: ServerHookChain,
        access: Access,
        patience: RequestTimeouts,
        watchers: Watchers,
        model_for: ModelFor | None,
    ) -> None:
        self._config = config
        self._hooks = hooks
        self._access = access
        self._patience = patience
        self._watchers = watchers
        self._sampling = (
            Sampling(model_for(config.id), patience) if model_for is not None and config.features.sampling else None
        )

    @asynccontextmanager
    async def open(self, values: Values, faults: Faults) -> AsyncIterator[Client]:
        from mcp import Client  # takes half a second, so it is imported only if a server is used
        from mcp_types import Implementation

        _keep_quiet()
        asking = Elicitations(self._config.id, self._hooks, self._patience, faults) if self._hooks.can_ask else None
        unopened = Client(
            tidied(await self._transport(values, faults), faults),
            cache=None,
            logging_callback=self._log,
            log_level="debug" if self._config.features.logging else None,
            sampling_callback=self._sampling,
            elicitation_callback=asking,
            message_handler=self._watchers.handle,
            client_info=Implementation(name="clew", version=clew.__version__),
        )
        async with unopened as client:
            # The SDK's own check compiles foreign schemas and patterns without a bound; `results` makes a bounded one.
            client.session.validate_tool_result = _accept  # type: ignore[method-assign]
            yield client

    async def _transport(self, values: Values, faults: Faults) -> AbstractAsyncContextManager[TransportStreams]:
        if self._config.transport == "stdio":
            from clew.catalog.servers.connections.stdio import open_stdio

            return open_stdio(values.command, values.env, self._config.cwd, faults)
        from clew.catalog.servers.connections.http import open_http  # loads the HTTP client

        auth = await self._access.build_auth(values, faults)
        return open_http(values.url, values.headers, auth, self._config.timeout_seconds, faults)

    async def _log(self, params: Any) -> None:
        line = LogLine(server=self._config.id, level=params.level, logger=params.logger or "", data=params.data)
        await self._hooks.log(line)


def _keep_quiet() -> None:
    """Silence the SDK's logging of server errors with tracebacks, since Clew reports them in one line. A program that
    configured logging still gets them."""
    for name in ("client", "mcp.client", "mcp.shared"):
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
    # The SDK logs errors of a login with the answer of the authorization server, which may hold tokens.
    logging.getLogger("mcp.client.auth").propagate = False


async def _accept(name: str, result: Any) -> None:
    return None


def foreign_errors() -> tuple[type[BaseException], ...]:
    """The exceptions that the SDK lets through when a server misbehaves."""
    from mcp.shared.exceptions import MCPError

    plain = (ValueError, RuntimeError, TypeError, LookupError, OSError, AssertionError, ExceptionGroup)
    return (MCPError, *plain, anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream)


def has_lost_session(error: BaseException) -> bool:
    """Whether the error means that the server lost our session, and so did not process the request."""
    return any(getattr(each, "message", "") == "Session terminated" for each in flatten(error))
