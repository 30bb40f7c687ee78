"""Limits of a provider's answer: each exceeded limit raises a ModelError and closes the connection."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

import pytest

from clew.errors import ModelError
from clew.llm.messages import Message
from clew.llm.model import ModelRequest, Models
from clew.llm.providers import response_limits
from tests.llm.fake_provider import DONE, FakeProvider, Write, chunk, completion, status, stream

HELLO = (Message(role="user", content="Hello"),)
MEGABYTE = 1_000_000


async def pass_over(piece: str) -> None:
    """A callback that ignores the streamed text."""


async def failure(models: Models, provider: FakeProvider, answer: Write, *, streamed: bool = True) -> ModelError:
    """The error of a call with this answer."""
    provider.answers = [answer]
    model, _ = models.resolve("lab:m-1")
    with pytest.raises(ModelError) as raised:
        async with asyncio.timeout(60):
            await model.answer(ModelRequest(messages=HELLO), on_text=pass_over if streamed else None)
    return raised.value


def endless(pieces: tuple[str, ...], closed: asyncio.Event) -> Write:
    """A stream that repeats its last piece until the client closes the connection."""

    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        for piece in pieces[:-1]:
            writer.write(piece.encode())
        try:
            while True:
                writer.write(pieces[-1].encode())
                await writer.drain()
        finally:
            closed.set()

    return write


def call(arguments: str, **more: Any) -> str:
    return chunk({"tool_calls": [{"index": 0, "function": {"arguments": arguments, **more}}]})


FIRST = chunk({"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "a", "arguments": ""}}]})

EXCESSES = [
    ((chunk({"content": "a" * 10_000}),), "text is over"),
    (
        (
            FIRST,
            call("a" * 10_000),
        ),
        "arguments of its tools are over",
    ),
    (("data: " + "x" * MEGABYTE,), "one event of it is over"),
    (("data: x\n",), "one event of it has over"),
    ((": " + "p" * 100_000 + "\n\n",), "it is over 32 MB"),
    ((": " + "p" * 100_000 + "\r\n\r\n",), "it is over 32 MB"),
]


@pytest.mark.parametrize(("pieces", "said"), EXCESSES)
async def test_an_answer_without_end_is_cut_off_and_reported(
    models: Models, provider: FakeProvider, pieces: tuple[str, ...], said: str
) -> None:
    closed = asyncio.Event()
    error = await failure(models, provider, endless(pieces, closed))
    assert (error.kind, error.retryable) == ("malformed", False)
    assert said in str(error)
    async with asyncio.timeout(30):
        await closed.wait()


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"content": "a" * (2 * MEGABYTE + 1)}, "text is over"),
        ({"content": "a" * (33 * MEGABYTE)}, "it is over 32 MB"),
        (
            {
                "content": None,
                "tool_calls": [
                    {
                        "id": "c",
                        "type": "function",
                        "function": {"name": "a", "arguments": json.dumps({"x": "y" * MEGABYTE})},
                    }
                ],
            },
            "arguments of its tools are over",
        ),
    ],
)
async def test_an_answer_that_comes_at_once_has_the_same_limits(
    models: Models, provider: FakeProvider, message: dict[str, Any], said: str
) -> None:
    error = await failure(models, provider, status(200, completion(message)), streamed=False)
    assert error.kind == "malformed"
    assert said in str(error)


async def test_a_packed_answer_is_neither_asked_for_nor_taken(models: Models, provider: FakeProvider) -> None:
    packed = gzip.compress(b"data: " + b"x" * 50 * MEGABYTE)

    async def bomb(writer: asyncio.StreamWriter) -> None:
        head = f"content-type: text/event-stream\r\ncontent-encoding: gzip\r\ncontent-length: {len(packed)}\r\n\r\n"
        writer.write(b"HTTP/1.1 200 OK\r\n" + head.encode() + packed)
        await writer.drain()

    error = await failure(models, provider, bomb)
    assert (error.kind, "compressed" in str(error)) == ("malformed", True)
    assert provider.asked[0].headers["accept-encoding"] == "identity"


async def test_an_answer_that_drips_for_ever_ends_with_the_time_of_the_whole_call(
    models: Models, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(response_limits, "MAX_SECONDS", 0.5)
    error = await failure(models, provider, stream(chunk({"content": "a"}), ending="hang"))
    assert (error.kind, error.retryable) == ("timeout", False)
    assert "had not finished its answer" in str(error)


@pytest.mark.parametrize(
    ("asked", "taken", "hint"),
    [
        ("7", 7.0, "in 7 seconds"),
        ("600", 600.0, "in 10 minutes"),
        ("31536000", 3600.0, "in more than an hour"),
    ],
)
async def test_the_pause_that_a_provider_requests_is_bounded_and_reported(
    models: Models, provider: FakeProvider, asked: str, taken: float, hint: str
) -> None:
    answer = status(429, {"error": {"message": "slow down"}}, {"retry-after": asked})
    error = await failure(models, provider, answer)
    assert error.retry_after == taken
    assert hint in error.hint


async def test_a_long_answer_within_the_limits_is_whole(models: Models, provider: FakeProvider) -> None:
    pieces = [chunk({"content": "é" * 10_000}) for _ in range(150)]
    provider.answers = [stream(*pieces, chunk({}, "stop"), DONE)]
    model, _ = models.resolve("lab:m-1")
    answer = await model.answer(ModelRequest(messages=HELLO), on_text=pass_over)
    assert len(answer.content) == 1_500_000
