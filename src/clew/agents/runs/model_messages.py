"""Messages to a model: for a turn, and for a trigger without a context."""

from __future__ import annotations

from clew.agents.runs.executor import Gathered
from clew.agents.runs.loop_detection import CompletedCall, fingerprint
from clew.agents.runs.prompts import source_of, text_at
from clew.agents.runs.run_state import ModelTurn
from clew.fences import clean, fenced
from clew.llm.messages import Message
from clew.trail.model.breadcrumb import Breadcrumb, encode_canonical


def turn_messages(turn: ModelTurn) -> list[Message]:
    """The messages of a turn: the model's answer, and the results in the order of its calls."""
    output = turn.answer.context.get("output") or {}
    said = Message(
        role="assistant",
        source=source_of(turn.answer, "output.content"),
        tool_calls=turn.calls,
        extra=output.get("extra") or {},
    )
    results = [
        Message(
            role="tool",
            tool_call_id=call.id,
            name=call.name,
            source=source_of(response, _result_field(response)),
        )
        for call, response in zip(turn.calls, turn.responses, strict=True)
    ]
    return [said, *results]


def turn_fingerprint(turn: ModelTurn) -> str:
    """A fingerprint of the calls and results of a turn."""
    return fingerprint(
        [
            CompletedCall(name=call.name, arguments=call.arguments, result=text_at(response, _result_field(response)))
            for call, response in zip(turn.calls, turn.responses, strict=False)
        ]
    )


def _result_field(response: Breadcrumb) -> str:
    return "output" if response.context.get("status") == "success" else "error"


def gathered_message(gathered: Gathered) -> Message:
    """The message to an agent without a context builder: its trigger and its subscriptions, as data."""
    parts = [f"## {key}\n" + "\n".join(map(_shown, records)) for key, records in gathered.items()]
    return Message(role="user", content="\n\n".join(parts))


def _shown(record: Breadcrumb) -> str:
    return fenced(clean(f"{record.title}\n{encode_canonical(record.context, 'context').decode()}"), "")
