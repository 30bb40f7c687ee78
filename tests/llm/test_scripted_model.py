"""The model that answers by a script: it streams, calls, fails loudly, and finds its place after a restart."""

from __future__ import annotations

import pytest

from clew.config import Config
from clew.errors import InvalidInput, ModelError
from clew.llm.messages import Message, ToolCall, ToolSpec
from clew.llm.model import ModelRequest, open_models
from clew.llm.scripted_model import ScriptedModel, ScriptedTurn, read_script

SCRIPT = """
- user: weather            # an exchange begins
  tools: [get-weather]
  say: I look it up.
  call: {get-weather: {city: Paris}}
- expect: [18 °C, /sun+y/]
  say: It is 18 °C and sunny in Paris.
- user: thanks
  say: You are welcome.
"""
TOOL = ToolSpec(name="get-weather", description="d", schema={})


def asked(*messages: Message, tools: tuple[ToolSpec, ...] = (TOOL,)) -> ModelRequest:
    return ModelRequest(messages=messages, tools=tools)


def user(text: str) -> Message:
    return Message(role="user", content=text)


@pytest.mark.req("SYL-99")
@pytest.mark.req("O21")
async def test_a_script_is_followed_word_by_word_and_offline() -> None:
    model = ScriptedModel(read_script(SCRIPT))
    pieces: list[str] = []

    async def take(piece: str) -> None:
        pieces.append(piece)

    first = await model.answer(asked(user("How is the weather?")), on_text=take)
    assert "".join(pieces) == first.content == "I look it up."
    assert len(pieces) == 4
    assert first.tool_calls == (ToolCall(id="call_0_0", name="get-weather", arguments={"city": "Paris"}),)
    assert first.finish_reason == "tool_calls"
    result = Message(role="tool", content="18 °C, sunny", tool_call_id="call_0_0", name="get-weather")
    second = await model.answer(asked(user("How is the weather?"), first.as_message(), result))
    assert (second.content, second.finish_reason) == ("It is 18 °C and sunny in Paris.", "stop")
    assert second.usage.input_tokens > first.usage.input_tokens > 0
    assert len(model.requests) == 2


async def test_the_position_in_the_script_follows_from_the_messages() -> None:
    result = Message(role="tool", content="18 °C, sunny", tool_call_id="call_0_0", name="get-weather")
    late = asked(user("weather?"), Message(role="assistant", content="I look it up."), result)
    for _ in range(3):
        assert (await ScriptedModel(read_script(SCRIPT)).answer(late)).content == "It is 18 °C and sunny in Paris."


async def test_the_last_user_message_selects_the_exchange() -> None:
    model = ScriptedModel(read_script(SCRIPT))
    context = "# Earlier\nuser: How is the weather?\n# Message\nthanks!"
    assert (await model.answer(asked(user(context)))).content == "You are welcome."
    context = "# Earlier\nuser: thanks!\n# Message\nAnd the weather?"
    assert (await model.answer(asked(user(context)))).content == "I look it up."


async def test_answers_to_earlier_messages_do_not_count() -> None:
    earlier = (user("thanks"), Message(role="assistant"), user("weather"), Message(role="assistant"))
    answer = await ScriptedModel(read_script(SCRIPT)).answer(asked(*earlier, user("thanks")))
    assert answer.content == "You are welcome."


@pytest.mark.parametrize(
    ("messages", "tools", "said"),
    [
        (
            (user("Tell a joke"),),
            (TOOL,),
            "the script expects 'weather' or 'thanks' of the user, but got: Tell",
        ),
        ((user("weather"),), (), "the script expects the tool 'get-weather' to be offered, but got: no tools"),
        (
            (user("weather"), Message(role="assistant"), Message(role="tool", content="rain", name="get-weather")),
            (TOOL,),
            "the script expects '18 °C' before answer 2, but got: rain",
        ),
        (
            (user("thanks"), Message(role="assistant"), Message(role="tool", content="rain", name="get-weather")),
            (TOOL,),
            "the script ends after 1 answer here",
        ),
        ((), (TOOL,), "but got: nothing"),
    ],
)
async def test_a_conversation_that_leaves_the_script_fails_loudly(
    messages: tuple[Message, ...], tools: tuple[ToolSpec, ...], said: str
) -> None:
    with pytest.raises(ModelError) as told:
        await ScriptedModel(read_script(SCRIPT)).answer(asked(*messages, tools=tools))
    assert (told.value.kind, told.value.retryable) == ("malformed", False)
    assert said in told.value.message


async def test_faults_come_as_often_as_the_script_says() -> None:
    model = ScriptedModel([ScriptedTurn(say="At last.", fault="rate", times=2)])
    for _ in range(2):
        with pytest.raises(ModelError) as told:
            await model.answer(asked(user("?")))
        assert (told.value.kind, told.value.retryable) == ("rate", True)
    assert (await model.answer(asked(user("?")))).content == "At last."


async def test_one_turn_may_call_a_tool_several_times() -> None:
    [turn] = read_script("- call: [{get: {n: 1}}, {get: {n: 2}, put: }]")
    answer = await ScriptedModel([turn]).answer(asked(user("?")))
    called = [(each.id, each.name, each.arguments) for each in answer.tool_calls]
    assert called == [("call_0_0", "get", {"n": 1}), ("call_0_1", "get", {"n": 2}), ("call_0_2", "put", {})]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- say: [", "line 1: is not YAML"),
        ("say: hello", "script: must be a list"),
        ("- says: hello", "says: is not a part of a turn here"),
        ("- user: hello", "[0]: answers nothing"),
        ("- say: x\n  fault: broken", "fault: 'broken' is not one of the choices"),
        ("- say: x\n  expect: /(/", "[0]: /(/ is not a regular expression"),
        ("- say: x\n  delay: 1000", "[0].delay: must be from 0 to 60 seconds"),
        ("- say: !!python/object/apply:os.system [echo]", "is not YAML"),
    ],
)
def test_errors_in_a_script_are_reported_with_their_place(text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as told:
        read_script(text)
    assert said in str(told.value)


def test_a_script_without_turns_is_refused() -> None:
    with pytest.raises(InvalidInput, match="has no turns"):
        ScriptedModel([])


def test_a_script_can_stand_in_for_one_model_or_for_all() -> None:
    one, other = ScriptedModel([ScriptedTurn(say="1")]), ScriptedModel([ScriptedTurn(say="2")])
    models = open_models(Config(), {})
    every = models.with_model("*", one)
    assert [every.resolve(name)[0] for name in ("default", "fast", "ollama:x", "nonsense")] == [one] * 4
    some = models.with_model("default", one).with_model("strong", other)
    assert some.resolve("fast")[0] is one
    assert some.for_agent("guide")[0] is one
    assert some.for_agent("guide", "strong")[0] is other
    assert some.resolve("default", {"model": "strong"})[0] is other
    with pytest.raises(ModelError):
        models.resolve("default")


async def test_only_the_message_section_of_a_context_selects_the_exchange() -> None:
    script = "- say: Good day.\n- user: weather\n  say: Sunny."
    model = ScriptedModel(read_script(script))
    about = "# Relevant knowledge\n\nthe weather\n\n# Message to answer\n\nhello"
    assert (await model.answer(asked(user(about)))).content == "Good day."
    assert (await model.answer(asked(user(f"{about}, how is the weather?")))).content == "Sunny."
