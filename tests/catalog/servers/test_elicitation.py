"""Servers that ask the user something in the middle of a call, in both eras of the protocol."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from clew.catalog.servers import Hooks, McpServerConfig
from clew.catalog.servers.connections.connection import ServerConnection
from clew.catalog.servers.connections.elicitation import fill_defaults
from clew.catalog.servers.connections.hooks import Elicitation, Elicited, ServerHookChain
from clew.catalog.servers.connections.request_timeouts import RequestTimeouts
from clew.errors import ServerError

from .conftest import program, stdio

ERAS = ("2025-11-25", "2026-07-28")


def asker(era: str, mode: str = "form", **more: Any) -> McpServerConfig:
    return stdio("asker", *program("asker.py", era, mode), **more)


async def ask(config: McpServerConfig, *hooks: Hooks) -> str:
    connection = ServerConnection(config, hooks=ServerHookChain(*hooks))
    try:
        assert (await connection.about()).protocol == config.command[-2]
        return str((await connection.call_tool("book", {})).content[0].text)
    finally:
        await connection.close()


def answering(answer: Elicited | None, seen: list[Elicitation] | None = None) -> Hooks:
    async def on_elicit(question: Elicitation) -> Elicited | None:
        if seen is not None:
            seen.append(question)
        return answer

    return Hooks(on_elicit=on_elicit)


@pytest.mark.req("PLA-24")
@pytest.mark.parametrize("era", ERAS)
async def test_the_answer_reaches_the_server_with_defaults_filled_in(era: str) -> None:
    seen: list[Elicitation] = []
    said = await ask(asker(era), answering(Elicited(action="accept", content={"name": "Ada"}), seen))
    assert said == 'accept {"name": "Ada", "seats": 2}'
    (question,) = seen
    assert (question.server, question.message) == ("asker", "How many seats?")
    assert question.schema["properties"]["seats"]["default"] == 2


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_user_may_say_no(era: str, action: Any) -> None:
    assert await ask(asker(era), answering(Elicited(action=action, content={"name": "x"}))) == f"{action} null"


@pytest.mark.parametrize("era", ERAS)
async def test_the_first_hook_that_answers_counts_and_none_is_a_dismissal(era: str) -> None:
    yes = answering(Elicited(action="accept", content={"name": "B", "seats": 1}))
    assert await ask(asker(era), answering(None), yes) == 'accept {"name": "B", "seats": 1}'
    assert await ask(asker(era), answering(None)) == "cancel null"


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("content", "said"), [({}, "name"), ({"name": 3}, "name"), ({"name": "A", "seats": "many"}, "seats")]
)
async def test_an_answer_that_does_not_fit_is_not_sent(era: str, content: dict[str, Any], said: str) -> None:
    with pytest.raises(ServerError, match=f"^asker: asked for input, and .*{said}"):
        await ask(asker(era), answering(Elicited(action="accept", content=content)))


@pytest.mark.parametrize("era", ERAS)
async def test_without_a_hook_nothing_of_it_is_offered(era: str) -> None:
    assert await ask(asker(era)) == "the user cannot be asked"


async def test_the_time_of_the_person_is_not_the_time_of_the_server() -> None:
    """The limit of a request is far shorter than what the person takes."""
    patience, answered = RequestTimeouts(0.05), asyncio.Event()
    asyncio.get_running_loop().call_later(0.3, answered.set)
    async with patience.limit():
        with patience.stopped():
            async with patience.limit():
                await answered.wait()

    async def go_on() -> None:
        async with patience.limit():
            with patience.stopped():
                pass
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await go_on()


async def test_a_question_with_an_address_is_passed_on_as_such() -> None:
    seen: list[Elicitation] = []
    said = await ask(asker("2025-11-25", "url"), answering(Elicited(action="accept", content={"x": 1}), seen))
    assert said == "accept null"
    assert (seen[0].url, seen[0].schema) == ("https://pay.example.com/1", {})


@pytest.mark.parametrize("mode", ["script", "bomb"])
async def test_a_question_that_cannot_be_asked_is_refused(mode: str) -> None:
    seen: list[Elicitation] = []
    with pytest.raises(ServerError, match=r"^asker: asked for input, and "):
        await ask(asker("2025-11-25", mode), answering(Elicited(action="accept", content={}), seen))
    assert seen == []


def test_defaults_do_not_replace_what_was_given() -> None:
    schema = {"properties": {"a": {"default": 1}, "b": {"default": None}, "c": {}, "d": True}}
    assert fill_defaults(schema, {"a": 0, "z": 9}) == {"a": 0, "b": None, "z": 9}
    assert fill_defaults({"properties": [1]}, {}) == {}
