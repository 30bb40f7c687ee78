"""A provider on this machine that sends the bytes that a test gives it, including faults."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

Write = Callable[[asyncio.StreamWriter], Awaitable[None]]


class Asked(NamedTuple):
    """A request that came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


current: ContextVar[Asked] = ContextVar("current")
"""The request that is being answered."""


class FakeProvider:
    """Answers each request by the next of `answers`; the last one is used again. `gone` is set when a client closed its
    connection before the answer had ended."""

    def __init__(self) -> None:
        self.answers: list[Write] = []
        self.asked: list[Asked] = []
        self.gone = asyncio.Event()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (asked := await _read_request(reader)) is not None:
                self.asked.append(asked)
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                current.set(asked)
                watching = asyncio.ensure_future(reader.read(1))
                answering = asyncio.ensure_future(answer(writer))
                await asyncio.wait((watching, answering), return_when=asyncio.FIRST_COMPLETED)
                if not answering.done():
                    answering.cancel()
                    self.gone.set()
                watching.cancel()
                await asyncio.gather(watching, answering, return_exceptions=True)
                break  # one answer a connection: each ends by closing it
        finally:
            writer.close()


@asynccontextmanager
async def fake_provider() -> AsyncIterator[FakeProvider]:
    provider = FakeProvider()
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0)
    provider.port = server.sockets[0].getsockname()[1]
    try:
        yield provider
    finally:
        server.close()
        await server.wait_closed()


async def _read_request(reader: asyncio.StreamReader) -> Asked | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(first.split(" ")[1], headers, json.loads(body) if body else {})


def status(code: int, body: object, headers: Mapping[str, str] | None = None) -> Write:
    """A whole answer with a status."""

    async def write(writer: asyncio.StreamWriter) -> None:
        content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        kind = "text/plain" if isinstance(body, str) else "application/json"
        given = {"content-type": kind, "content-length": str(len(content)), "connection": "close", **(headers or {})}
        lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        writer.write(f"HTTP/1.1 {code} X\r\n{lines}\r\n".encode() + content)
        await writer.drain()

    return write


def stream(*events: str, ending: str = "whole") -> Write:
    """Server-sent events. `ending`: `whole`, `cut` (the connection breaks off within the body), `hang` (nothing more
    ever comes)."""

    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n"
            b"connection: close\r\n\r\n"
        )
        for event in events:
            content = event.encode()
            writer.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
            await writer.drain()
        if ending == "hang":
            await asyncio.Event().wait()
        if ending == "whole":
            writer.write(b"0\r\n\r\n")
        await writer.drain()

    return write


# -- what OpenAI-compatible servers say -------------------------------------------------------------------


def chunk(delta: Mapping[str, Any], finish: str | None = None, **more: Any) -> str:
    choice = {"index": 0, "delta": dict(delta), "finish_reason": finish}
    data = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m-1", "choices": [choice], **more}
    return f"data: {json.dumps(data)}\n\n"


def usage(prompt: int, completion: int, cached: int = 0) -> str:
    counted = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    data = {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m-1",
        "choices": [],
        "usage": counted,
    }
    return f"data: {json.dumps(data)}\n\n"


DONE = "data: [DONE]\n\n"


def completion(message: Mapping[str, Any], finish: str = "stop") -> dict[str, Any]:
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m-1",
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14},
    }


# -- what Anthropic says ----------------------------------------------------------------------------------


def event(kind: str, **data: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n"


def message_start(prompt: int = 20, cached: int = 0) -> str:
    counted = {"input_tokens": prompt, "output_tokens": 1, "cache_read_input_tokens": cached}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5-5",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": counted,
    }
    return event("message_start", message=message)


def block(index: int, start: Mapping[str, Any], *deltas: Mapping[str, Any]) -> str:
    return "".join(
        [
            event("content_block_start", index=index, content_block=dict(start)),
            *(event("content_block_delta", index=index, delta=dict(each)) for each in deltas),
            event("content_block_stop", index=index),
        ]
    )


def message_end(reason: str = "end_turn", output: int = 9) -> str:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return event("message_delta", delta=delta, usage={"output_tokens": output}) + event("message_stop")
