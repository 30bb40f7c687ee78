"""Wraps a model without native tool calls, and adds them with a formatter."""

from __future__ import annotations

import msgspec

from clew.llm.formatters.formatter import Formatter, join_turns
from clew.llm.messages import ToolCall
from clew.llm.requests import Model, ModelReply, ModelRequest, OnText


class FormattedModel:
    """Describes tools to the inner model as text, and reads its calls from text. Streamed text contains no call."""

    def __init__(self, inner: Model, formatter: Formatter) -> None:
        self.inner = inner
        self._formatter = formatter

    async def answer(self, request: ModelRequest, *, on_text: OnText | None = None) -> ModelReply:
        """See `Model.answer`. The ids of calls are derived from the conversation."""
        messages = join_turns(self._formatter.write(request.messages, request.tools))
        plain = msgspec.structs.replace(request, messages=messages, tools=())
        if not request.tools:
            return await self.inner.answer(plain, on_text=on_text)
        shown = _Shown(self._formatter, on_text) if on_text is not None else None
        found = await self.inner.answer(plain, on_text=shown.take if shown is not None else None)
        parsed = self._formatter.read(found.content)
        if shown is not None:
            await shown.finish(parsed.content)
        turn = sum(each.role == "assistant" for each in request.messages)
        calls = tuple(
            ToolCall(id=f"call_{turn}_{at}", name=name, arguments=arguments)
            for at, (name, arguments) in enumerate(parsed.calls)
        )
        reason = "tool_calls" if calls else found.finish_reason
        return msgspec.structs.replace(found, content=parsed.content, tool_calls=calls, finish_reason=reason, extra={})


class _Shown:
    """Streams an answer: passes on only text that is certainly not part of a call."""

    def __init__(self, formatter: Formatter, on_text: OnText) -> None:
        self._formatter = formatter
        self._on_text = on_text
        self._text = ""
        self._length = 0

    async def take(self, piece: str) -> None:
        self._text += piece
        line = self._text.rfind("\n", 0, self._length) + 1  # the text before it was searched already
        await self._show(line + self._formatter.safe_length(self._text[line:]))

    async def finish(self, content: str) -> None:
        self._text = content
        await self._show(len(content))

    async def _show(self, length: int) -> None:
        if length > self._length:
            piece, self._length = self._text[self._length : length], length
            await self._on_text(piece)
