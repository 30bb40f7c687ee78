"""An offline model that answers from a script, for tests and demos. It keeps no state: the position in the script
follows from the messages of a conversation, so a conversation can continue after a crash."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any, get_args

import msgspec

from clew.decode_errors import in_plain_words
from clew.errors import InvalidInput, ModelError, ModelFailure
from clew.llm.messages import Message, ToolCall, Usage
from clew.llm.requests import ModelReply, ModelRequest, OnText
from clew.llm.tokens import estimate_tokens

MAX_SHOWN = 300
MAX_REQUESTS = 1_000
"""How many requests a model keeps for tests: 1,000 with the tools of an agent take about 30 MB."""
HEADING = "# Message to answer"
"""The heading in an agent's context below which the message to answer follows."""
_PIECE = re.compile(r"\s*\S+|\s+\Z")


class ScriptedTurn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One answer. `user` starts an exchange if the user's message contains it; in a context only the message to answer
    is searched. `expect` must occur in the text since the last answer. Both are substrings, or regular expressions
    between slashes. `tools` must be offered.

    `call` is tool → arguments, or a list of these. `delay` is the pause in seconds before each word. `fault` is a kind
    of ModelError that is raised instead, for the first `times` requests of this turn in this process."""

    user: str = ""
    expect: str | tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    say: str = ""
    call: dict[str, dict[str, Any] | None] | tuple[dict[str, dict[str, Any] | None], ...] = ()
    delay: float = 0.0
    fault: ModelFailure | None = None
    times: int = 1

    @property
    def calls(self) -> tuple[tuple[str, dict[str, Any]], ...]:
        """The tool calls with their arguments, in order."""
        groups = (self.call,) if isinstance(self.call, dict) else self.call
        return tuple((name, arguments or {}) for group in groups for name, arguments in group.items())


class ScriptedModel:
    """Answers from its script. Raises ModelError of the kind `malformed` if the conversation leaves the script.
    `requests` are the newest requests, for inspection in tests."""

    def __init__(self, turns: Sequence[ScriptedTurn], name: str = "scripted") -> None:
        if not turns:
            raise InvalidInput("script", "has no turns")
        self.name = name
        self.requests: list[ModelRequest] = []
        self._exchanges = _exchanges(turns)
        self._faults: dict[tuple[int, int], int] = {}

    async def answer(self, request: ModelRequest, *, on_text: OnText | None = None) -> ModelReply:
        """See `Model.answer`. The text is streamed word by word."""
        self.requests.append(request)
        del self.requests[:-MAX_REQUESTS]
        exchange = self._exchange_of(request.messages)
        number = _answers_given(request.messages)
        turns = self._exchanges[exchange]
        if number >= len(turns):
            many = "1 answer" if len(turns) == 1 else f"{len(turns)} answers"
            raise _left(f"the script ends after {many} here", _new_text(request.messages))
        turn = turns[number]
        _check(turn, number, request)
        self._fail(turn, (exchange, number))
        for piece in _PIECE.findall(turn.say):
            await asyncio.sleep(turn.delay)
            if on_text is not None:
                await on_text(piece)
        return self._answer(turn, number, request)

    def _answer(self, turn: ScriptedTurn, number: int, request: ModelRequest) -> ModelReply:
        calls = tuple(
            ToolCall(id=f"call_{number}_{at}", name=name, arguments=arguments)
            for at, (name, arguments) in enumerate(turn.calls)
        )
        size = sum(estimate_tokens(each.content) for each in request.messages)
        said = estimate_tokens(turn.say) + sum(estimate_tokens(repr(each.arguments)) + 4 for each in calls)
        return ModelReply(
            content=turn.say,
            tool_calls=calls,
            finish_reason="tool_calls" if calls else "stop",
            model=self.name,
            usage=Usage(input_tokens=size, output_tokens=said, cost=0.0),
        )

    def _exchange_of(self, messages: Sequence[Message]) -> int:
        """The exchange whose message occurs nearest to the end of the user's text; of several, the first. An exchange
        without a message is the fallback."""
        said = _message(next((each.content for each in reversed(messages) if each.role == "user"), ""))
        begins = [turns[0].user for turns in self._exchanges]
        ends = [(_last_end(user, said) if user else 0, at) for at, user in enumerate(begins)]
        best = max(ends, key=lambda each: (each[0], -each[1]))
        if best[0] < 0:
            expected = " or ".join(repr(turns[0].user) for turns in self._exchanges)
            raise _left(f"the script expects {expected} of the user", said)
        return best[1]

    def _fail(self, turn: ScriptedTurn, place: tuple[int, int]) -> None:
        failed = self._faults.get(place, 0)
        if turn.fault is None or failed >= turn.times:
            return
        self._faults[place] = failed + 1
        is_retryable = turn.fault in ("rate", "timeout", "server", "malformed", "unreachable")
        raise ModelError(turn.fault, f"the script lets this call fail: {turn.fault}", retryable=is_retryable)


def read_script(text: str) -> tuple[ScriptedTurn, ...]:
    """Read the turns of a script in YAML. Raises InvalidInput that names the place of the error."""
    # takes longer to import than the rest of this module
    import yaml

    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark is not None else "script"
        raise InvalidInput(where, "is not YAML", hint="A script is a list of turns: - say: Hello") from None
    try:
        turns = msgspec.convert(found, tuple[ScriptedTurn, ...])
    except msgspec.ValidationError as error:
        raise in_plain_words(error, tuple[ScriptedTurn, ...], "script", called="part of a turn") from None
    for at, turn in enumerate(turns):
        _check_turn(at, turn)
    return turns


def _check_turn(at: int, turn: ScriptedTurn) -> None:
    if not turn.say and not turn.calls and turn.fault is None:
        raise InvalidInput(f"[{at}]", "answers nothing", hint=f"Write say, call or fault: {', '.join(_FAULTS)}")
    if not 0 <= turn.delay <= 60:
        raise InvalidInput(f"[{at}].delay", "must be from 0 to 60 seconds")
    for pattern in (turn.user, *_texts(turn.expect)):
        try:
            _last_end(pattern, "")
        except re.error as error:
            raise InvalidInput(f"[{at}]", f"{pattern} is not a regular expression: {error}") from None


_FAULTS: tuple[str, ...] = get_args(ModelFailure)


def _exchanges(turns: Sequence[ScriptedTurn]) -> list[list[ScriptedTurn]]:
    found: list[list[ScriptedTurn]] = []
    for turn in turns:
        if turn.user or not found:
            found.append([])
        found[-1].append(turn)
    return found


def _check(turn: ScriptedTurn, number: int, request: ModelRequest) -> None:
    came = _new_text(request.messages)
    for pattern in _texts(turn.expect):
        if _last_end(pattern, came) < 0:
            raise _left(f"the script expects {pattern!r} before answer {number + 1}", came)
    offered = [each.name for each in request.tools]
    missing = [name for name in turn.tools if name not in offered]
    if missing:
        raise _left(f"the script expects the tool {missing[0]!r} to be offered", ", ".join(offered) or "no tools")


def _answers_given(messages: Sequence[Message]) -> int:
    """Return the number of answers since the last message of the user. Answers to earlier messages are history."""
    last = max((at for at, each in enumerate(messages) if each.role == "user"), default=-1)
    return sum(each.role == "assistant" for each in messages[last + 1 :])


def _message(text: str) -> str:
    """Return the message to answer in a context, otherwise all of the text."""
    before, heading, message = text.rpartition(f"{HEADING}\n")
    return message if heading and (not before or before.endswith("\n")) else text


def _texts(expect: str | tuple[str, ...]) -> tuple[str, ...]:
    return (expect,) if isinstance(expect, str) else expect


def _new_text(messages: Sequence[Message]) -> str:
    """Return the text since the last answer; before the first, the user's messages."""
    last = max((at for at, each in enumerate(messages) if each.role == "assistant"), default=-1)
    return "\n".join(each.content for each in messages[last + 1 :] if each.role != "system")


def _last_end(pattern: str, text: str) -> int:
    """The end position of the last match of a pattern; -1 if there is none."""
    if len(pattern) > 2 and pattern.startswith("/") and pattern.endswith("/"):
        ends = [found.end() for found in re.finditer(pattern[1:-1], text)]
        return ends[-1] if ends else -1
    at = text.rfind(pattern)
    return at + len(pattern) if at >= 0 else -1


def _left(expected: str, came: str) -> ModelError:
    shown = " ".join(came.split())
    shown = shown if len(shown) <= MAX_SHOWN else f"…{shown[-MAX_SHOWN:]}"
    return ModelError("malformed", f"{expected}, but got: {shown or 'nothing'}", hint="Correct the script")
