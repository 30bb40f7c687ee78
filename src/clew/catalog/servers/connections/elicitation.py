"""Questions of a server to the user during a request. The question is untrusted text. The answer is checked against its
schema. Only a host with a hook for it gets questions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from clew.catalog.servers.connections.hooks import Elicitation, Elicited, ServerHookChain
from clew.catalog.servers.connections.request_timeouts import RequestTimeouts
from clew.catalog.servers.connections.server_errors import Faults
from clew.catalog.servers.entries.schemas import check_arguments
from clew.errors import InvalidInput
from clew.fences import clean

if TYPE_CHECKING:
    from mcp_types import ElicitRequestParams, ElicitResult, ErrorData

MAX_MESSAGE = 4_000
MAX_ADDRESS = 2_000
PERSON_SECONDS = 600.0
"""Seconds until an unanswered question counts as dismissed."""


class Elicitations:
    """Answers the questions of one server through the hooks."""

    def __init__(self, server: str, hooks: ServerHookChain, patience: RequestTimeouts, faults: Faults) -> None:
        self._server = server
        self._hooks = hooks
        self._patience = patience
        self._faults = faults

    async def __call__(self, context: Any, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        from mcp_types import INVALID_PARAMS, ElicitResult, ErrorData  # loaded with the SDK

        try:
            answer = await self._ask(params)
        except InvalidInput as error:
            self._faults.note = f"asked for input, and {error.message}"
            return ErrorData(code=INVALID_PARAMS, message=error.message)
        return ElicitResult(action=answer.action, content=answer.content if answer.action == "accept" else None)

    async def _ask(self, params: ElicitRequestParams) -> Elicited:
        """Put a question to the user. Raises InvalidInput if the question is invalid or the answer does not match its
        schema."""
        question = _question(self._server, params)
        with self._patience.stopped():
            try:
                async with asyncio.timeout(PERSON_SECONDS):
                    answer = await self._hooks.elicit(question)
            except TimeoutError:
                return Elicited(action="cancel")
        if answer.action != "accept" or question.url:
            return Elicited(action=answer.action)
        filled = fill_defaults(question.schema, answer.content or {})
        return Elicited(action="accept", content=check_arguments(question.schema, filled))


def _question(server: str, params: ElicitRequestParams) -> Elicitation:
    message = clean(params.message)[:MAX_MESSAGE]
    if params.mode == "url":
        if urlsplit(params.url).scheme not in ("http", "https") or len(params.url) > MAX_ADDRESS:
            raise InvalidInput("url", "is not an address that can be opened")
        return Elicitation(server=server, message=message, url=clean(params.url))
    check_arguments({**params.requested_schema, "required": []}, {})
    return Elicitation(server=server, message=message, schema=params.requested_schema)


def fill_defaults(schema: Mapping[str, Any], content: Mapping[str, Any]) -> dict[str, Any]:
    """The content with the schema's default for each field that is missing."""
    properties = schema.get("properties", {})
    known = properties.items() if isinstance(properties, dict) else ()
    defaults = {name: each["default"] for name, each in known if isinstance(each, dict) and "default" in each}
    return {**defaults, **content}
