"""Helpers for tests over the wire: a conversation, a tool, and events of OpenAI's protocol."""

from __future__ import annotations

from typing import Any

from clew.llm.messages import Message, ToolSpec
from clew.llm.model import ModelReply, ModelRequest, Models
from tests.llm.fake_provider import (
    FakeProvider,
    Write,
    event,
)

KEY = "sk-lab-0123456789abcdef0123"
HELLO = (Message(role="system", content="Be brief."), Message(role="user", content="Hello"))
WEATHER = ToolSpec(
    name="geo/get.weather",
    description="The weather of a city.",
    schema={
        "type": "object",
        "properties": {"city": {"type": "string", "minLength": 1}, "days": {"type": "integer", "default": 1}},
        "patternProperties": {"^x-": {}},
    },
)


class Pieces(list[str]):
    async def take(self, piece: str) -> None:
        self.append(piece)


async def ask(models: Models, name: str, *answers: Write, provider: FakeProvider, **request: Any) -> ModelReply:
    provider.answers = list(answers)
    model, _ = models.resolve(name)
    return await model.answer(ModelRequest(**{"messages": HELLO, **request}))


def responses(text: str, *, is_whole: bool = True) -> str:
    """Events of OpenAI's own protocol."""
    item: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "in_progress",
        "content": [],
    }
    part = {"type": "output_text", "text": "", "annotations": []}
    base = {"id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5", "output": [], "tools": []}
    base |= {"parallel_tool_calls": True, "tool_choice": "auto", "status": "in_progress"}
    begun = [
        event("response.created", sequence_number=0, response=base),
        event("response.output_item.added", sequence_number=1, output_index=0, item=item),
        event(
            "response.content_part.added",
            sequence_number=2,
            item_id="msg_1",
            output_index=0,
            content_index=0,
            part=part,
        ),
        event(
            "response.output_text.delta",
            sequence_number=3,
            item_id="msg_1",
            output_index=0,
            content_index=0,
            delta=text,
            logprobs=[],
        ),
    ]
    done = {**item, "status": "completed", "content": [{**part, "text": text}]}
    counted = {
        "input_tokens": 8,
        "output_tokens": 2,
        "total_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    ended = [
        event("response.output_item.done", sequence_number=4, output_index=0, item=done),
        event(
            "response.completed",
            sequence_number=5,
            response={**base, "status": "completed", "output": [done], "usage": counted},
        ),
    ]
    return "".join([*begun, *(ended if is_whole else [])])
