"""Requests of a server to a model of ours (`sampling/createMessage`). Only servers with `features.sampling` get it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from clew.catalog.servers.connections.request_timeouts import RequestTimeouts
from clew.errors import InvalidInput, ModelError
from clew.llm.messages import Message
from clew.llm.requests import FinishReason, Model, ModelRequest

if TYPE_CHECKING:
    from mcp_types import CreateMessageRequestParams, CreateMessageResult, ErrorData

ModelFor = Callable[[str], Model]
"""The model that a server may use, by the server's id."""

MAX_CHARACTERS = 200_000
MAX_TOKENS = 8_192
_STOPS: dict[FinishReason, str] = {"stop": "endTurn", "length": "maxTokens"}


class Sampling:
    """Answers the sampling requests of one server with a model."""

    def __init__(self, model: Model, patience: RequestTimeouts) -> None:
        self._model = model
        self._patience = patience

    async def __call__(self, context: Any, params: CreateMessageRequestParams) -> CreateMessageResult | ErrorData:
        from mcp_types import (  # loaded with the SDK
            INTERNAL_ERROR,
            INVALID_PARAMS,
            CreateMessageResult,
            ErrorData,
            TextContent,
        )

        try:
            request = _request(params)
            with self._patience.stopped():
                answer = await self._model.answer(request)
        except InvalidInput as error:
            return ErrorData(code=INVALID_PARAMS, message=error.message)
        except ModelError as error:
            return ErrorData(code=INTERNAL_ERROR, message=error.message)
        return CreateMessageResult(
            role="assistant",
            content=TextContent(type="text", text=answer.content),
            model=answer.model or "unknown",
            stop_reason=_STOPS.get(answer.finish_reason),
        )


def _request(params: CreateMessageRequestParams) -> ModelRequest:
    """Raises InvalidInput for messages that are not text, or too long."""
    if params.tools:
        raise InvalidInput("tools", "cannot be used in sampling")
    system = [Message(role="system", content=params.system_prompt)] if params.system_prompt else []
    said = [Message(role=each.role, content="\n".join(_texts(each.content))) for each in params.messages]
    if sum(len(each.content) for each in (*system, *said)) > MAX_CHARACTERS:
        raise InvalidInput("messages", f"must have at most {MAX_CHARACTERS:,} characters")
    return ModelRequest(
        messages=(*system, *said),
        temperature=params.temperature,
        max_tokens=max(1, min(params.max_tokens, MAX_TOKENS)),
    )


def _texts(content: Any) -> Iterator[str]:
    for block in content if isinstance(content, list) else [content]:
        if block.type != "text":
            raise InvalidInput("messages", f"hold content of the type {block.type!r}: only text is answered")
        yield block.text
