"""One server object for both protocol eras: two tools, and the catalog's resources.

The listing never changes. The low-level server checks no arguments, so the calls here do.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import Any

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from clew import __version__
from clew.access import Principal
from clew.adapters.mcp import resources, skills
from clew.adapters.mcp.calls import (
    GetArguments,
    ask_result,
    error_result,
    get_result,
    increasing,
    read_arguments,
    read_question,
)
from clew.adapters.mcp.catalog_interface import CatalogInterface
from clew.adapters.mcp.late_catalog import ClientFolderCatalog, OpenedCatalog
from clew.adapters.mcp.listing import ASK, GET, INPUT_SCHEMAS, LISTING, TEMPLATES, TOOLS
from clew.catalog.operations.answers import read_items
from clew.errors import ClewError

Context = ServerRequestContext[Any, Any]
PrincipalOf = Callable[[Context], Principal]
"""Returns the principal of a request: fixed on stdio, that of the token over HTTP."""

HOUR_MS = 3_600_000
_CONNECTING = frozenset({"initialize", "server/discover"})
_WITHOUT_FOLDER = _CONNECTING | {"ping", "logging/setLevel", "resources/templates/list"}
"""Requests that need no catalog, and may come before the folder of the client is known."""
_log = logging.getLogger("clew.mcp")


def build_server(catalog: CatalogInterface | ClientFolderCatalog, principal_of: PrincipalOf) -> Server[Any]:
    """Build a server over a catalog. It has no state, so any number of connections may share it."""
    door = _McpHandlers(catalog, principal_of)
    server: Server[Any] = Server(
        "clew",
        version=__version__,
        title="Clew",
        cache_hints={
            "tools/list": CacheHint(ttl_ms=HOUR_MS, scope="public"),
            "resources/templates/list": CacheHint(ttl_ms=HOUR_MS, scope="public"),
        },
        get_tool_input_schema=INPUT_SCHEMAS.get,
        on_list_tools=door.list_tools,
        on_call_tool=door.call_tool,
        on_list_resources=door.list_resources,
        on_list_resource_templates=door.list_templates,
        on_read_resource=door.read_resource,
    )

    server.add_request_handler(skills.LIST, types.PaginatedRequestParams, door.list_skills)
    server.add_request_handler(skills.GET, skills.GetSkillParams, door.get_skill)
    server.extensions[skills.EXTENSION] = {}

    async def meet(ctx: Context, call_next: CallNext) -> HandlerResult:
        if isinstance(catalog, ClientFolderCatalog):
            if ctx.method == "tools/list":
                catalog.meet_soon(ctx)  # a client lists the tools right after the handshake
            elif ctx.method not in _WITHOUT_FOLDER and not ctx.method.startswith("notifications/"):
                await catalog.meet(ctx, is_connecting=False)
        return await call_next(ctx)

    async def complete(ctx: Context, call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method in _CONNECTING and isinstance(catalog, ClientFolderCatalog):
            await catalog.meet(ctx, is_connecting=True)
        if ctx.method == "tools/list" and isinstance(result, dict):
            return {**result, "tools": TOOLS}
        if ctx.method in _CONNECTING and isinstance(result, dict):
            return {**result, "instructions": await catalog.instructions(by=principal_of(ctx))}
        return result

    server.middleware += [_answer_errors, meet, complete]
    return server


class _McpHandlers:
    """The handlers: parse, call the catalog, render."""

    def __init__(self, catalog: CatalogInterface | ClientFolderCatalog, principal_of: PrincipalOf) -> None:
        self._catalog = catalog
        self._principal_of = principal_of

    async def _open(self, context: Context) -> OpenedCatalog:
        """The catalog and the principal of a request. A request takes them once: the client may change its folder."""
        if isinstance(self._catalog, ClientFolderCatalog):
            return await self._catalog.opened()
        return self._catalog, self._principal_of(context)

    async def list_tools(self, context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return LISTING

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in (ASK, GET):
            raise MCPError(
                code=types.INVALID_PARAMS, message=f"unknown tool {params.name[:100]!r}: the tools are ask and get"
            )
        call = self._ask if params.name == ASK else self._get
        try:
            return await call(context, params.arguments)
        except ClewError as error:
            return error_result(error)

    async def _ask(self, context: Context, arguments: dict[str, Any] | None) -> types.CallToolResult:
        question = read_question(arguments)
        catalog, by = await self._open(context)
        answer = await catalog.ask(question, by=by)
        return ask_result(answer, await catalog.rules(by=by, handle=answer.handle))

    async def _get(self, context: Context, arguments: dict[str, Any] | None) -> types.CallToolResult:
        wanted = read_arguments(arguments, GetArguments)
        catalog, by = await self._open(context)
        report = increasing(context.session.report_progress)
        results = await catalog.get(read_items(wanted.routes), by=by, handle=wanted.handle, report=report)
        return get_result(results, await catalog.rules(by=by, handle=results.handle))

    async def list_resources(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        cursor = params.cursor if params else None
        return await resources.list_resources(*await self._open(context), cursor)

    async def list_templates(
        self, context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return TEMPLATES

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        catalog, by = await self._open(context)
        return await resources.read_resource(catalog, by, str(params.uri), context.protocol_version, params.meta)

    async def list_skills(self, context: Context, params: types.PaginatedRequestParams) -> dict[str, Any]:
        skills.require_modern(context.protocol_version, skills.LIST)
        return await skills.list_skills(*await self._open(context), params.cursor)

    async def get_skill(self, context: Context, params: skills.GetSkillParams) -> dict[str, Any]:
        skills.require_modern(context.protocol_version, skills.GET)
        return await skills.get_skill(*await self._open(context), params.uri)


async def _answer_errors(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Convert errors of Clew to one-line errors, and all others to internal errors. The log gets the traceback without
    the message, which may quote content."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):
        raise
    except ClewError as error:
        raise MCPError(code=types.INVALID_PARAMS, message=str(error)) from None
    except Exception as error:
        places = "".join(traceback.format_tb(error.__traceback__))
        _log.error("%s failed with %s\n%s", ctx.method, type(error).__name__, places)
        message = "internal error: see the log of the server"
        raise MCPError(code=types.INTERNAL_ERROR, message=message) from None
