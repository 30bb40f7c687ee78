"""Servers that ask our model, in both eras of the protocol: only those whose entry says so."""

from __future__ import annotations

import pytest

from clew.catalog.servers import McpServerConfig
from clew.catalog.servers.config import Features
from clew.catalog.servers.connections.connection import ServerConnection
from clew.errors import ModelError
from clew.llm.requests import ModelReply, ModelRequest, OnText

from .conftest import program, stdio

ERAS = ("2025-11-25", "2026-07-28")


class Answering:
    """A model with one answer that records its requests."""

    def __init__(self, answer: ModelReply | ModelError) -> None:
        self.asked: list[ModelRequest] = []
        self._answer = answer

    async def answer(self, request: ModelRequest, *, on_text: OnText | None = None) -> ModelReply:
        self.asked.append(request)
        if isinstance(self._answer, ModelError):
            raise self._answer
        return self._answer


def asker(era: str, mode: str = "sample", *, sampling: bool = True) -> McpServerConfig:
    return stdio("asker", *program("asker.py", era, mode), features=Features(sampling=sampling))


async def ask(config: McpServerConfig, model: Answering) -> str:
    connection = ServerConnection(config, model_for=lambda server: model)
    try:
        return str((await connection.call_tool("book", {})).content[0].text)
    finally:
        await connection.close()


@pytest.mark.req("PLA-24")
@pytest.mark.parametrize("era", ERAS)
async def test_the_answer_of_the_model_reaches_the_server(era: str) -> None:
    model = Answering(ModelReply(content="Blue", model="small-1"))
    assert await ask(asker(era), model) == 'small-1 {"text": "Blue", "type": "text"}'
    (request,) = model.asked
    assert [(each.role, each.content) for each in request.messages] == [
        ("system", "One word."),
        ("user", "Name a colour."),
    ]
    assert request.max_tokens == 20


@pytest.mark.req("PLA-24")
@pytest.mark.parametrize("era", ERAS)
async def test_without_the_feature_the_server_is_told_that_it_cannot_ask(era: str) -> None:
    model = Answering(ModelReply(content="Blue"))
    assert await ask(asker(era, sampling=False), model) == "the user cannot be asked"
    assert model.asked == []


async def test_a_failure_of_the_model_is_an_error_of_the_request() -> None:
    model = Answering(ModelError("config", "no model is configured"))
    with pytest.raises(Exception, match="nobody answered"):
        await ask(asker(ERAS[0]), model)
    with pytest.raises(Exception, match="nobody answered"):
        await ask(asker(ERAS[0], "image"), Answering(ModelReply(content="Blue")))
