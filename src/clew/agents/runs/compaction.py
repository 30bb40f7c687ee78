"""Compaction of a run. When a threshold orders it, the next request starts a new prompt: the opening of the run, a
summary of its steps, and the last steps unchanged. It uses no model, and the records of the run stay.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from clew.access import Principal
from clew.agents.hooks.prompt_hooks import ContextWindow
from clew.agents.hooks.thresholds import ContextUsage, Table, compacted_draft, find_due_compaction, thresholds_of
from clew.agents.runs.model_messages import turn_messages
from clew.agents.runs.prompts import read_input, text_at
from clew.agents.runs.requests import read_request
from clew.agents.runs.run_state import ModelTurn, RunState
from clew.fences import clean, fenced
from clew.llm.messages import Message
from clew.llm.tokens import estimate_tokens
from clew.trail.model.breadcrumb import Breadcrumb, Draft, encode_canonical
from clew.trail.model.flow import Flow
from clew.trail.store import Trail

KEPT_TURNS = 2
"""The number of last steps that stay as they are, if they fit."""
KEPT_SHARE = 0.3
"""The share of the context that the last steps may take."""
MAX_SUMMARY = 12_000
SAID, ARGUMENTS, RESULT = 400, 200, 300
"""Characters of a step in the summary: of the model's text, of the arguments of a call, and of its result."""
CUT = 4_000
"""The characters to which a result of the last step is cut if it does not fit."""

OpenItems = Callable[[str, str], Awaitable[str]]
"""Open items of an agent in a session that a compaction must keep, as text; empty without any."""


class CompactedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The messages of the shortened conversation, and the record of the compaction."""

    messages: tuple[Message, ...]
    record: Draft


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCompaction:
    """Shortens the conversations of runs. `window` finds the context of an agent's model."""

    trail: Trail
    flow: Flow
    by: Principal
    table: Table
    window: ContextWindow
    open_items: OpenItems | None = None

    async def shorten(self, agent: str, state: RunState) -> CompactedRun | None:
        """The shortened conversation of a run whose last turn is complete; None if no compaction is due."""
        last = state.turns[-1]
        session = last.answer.session or ""
        points = [each.at for each in thresholds_of(self.table, agent) if each.do == "compact"]
        if not session or not points:
            return None
        limit = await self.window(agent)
        if not limit or 100 * _used(last.answer) / limit < min(points):  # the usual case reads nothing from the trail
            return None
        due = await find_due_compaction(self.trail, self.flow, agent, session, by=self.by)
        if due is None:
            return None
        items = await self.open_items(agent, session) if self.open_items is not None else ""
        messages = build_messages(state, int(limit * KEPT_SHARE), items)
        used = sum(estimate_tokens(each.content) for each in messages) + _kept_tokens(messages, state)
        usage = ContextUsage(agent=agent, session=session, used=min(used, limit), limit=limit, kind=agent)
        return CompactedRun(messages=messages, record=compacted_draft(self.flow, usage, due.generation))


def build_messages(state: RunState, room: int, open_items: str = "") -> tuple[Message, ...]:
    """The opening of a run, the summary of its steps, and its last steps within `room` tokens."""
    opening = read_input(read_request(state.model_requests[0]).input).messages
    kept = _last_turns(state.turns, room)
    earlier = state.turns[: len(state.turns) - len(kept)]
    parts = ["Your conversation was shortened. What you did so far, oldest first:", summarise(earlier)]
    if open_items:
        parts.append(f"Open items:\n{fenced(clean(open_items), '')}")
    told = Message(role="user", content="\n\n".join(filter(None, parts)))
    tail = [message for turn in kept for message in turn_messages(turn)]
    return (*opening, told, *(tail or _cut_messages(state.turns[-1])))


def summarise(turns: Sequence[ModelTurn]) -> str:
    """The steps, a few lines each. If the summary gets too long, the oldest steps are left out."""
    lines: list[str] = []
    size = 0
    for turn in reversed(turns):
        text = _step(turn)
        size += len(text)
        if size > MAX_SUMMARY:
            lines.append(f"({len(turns) - len(lines)} earlier steps are left out)")
            break
        lines.append(text)
    return fenced(clean("\n".join(reversed(lines))), "") if lines else ""


def _step(turn: ModelTurn) -> str:
    said = _short(str((turn.answer.context.get("output") or {}).get("content") or ""), SAID)
    calls = [
        f"  {call.name}({_short(encode_canonical(call.arguments, 'arguments').decode(), ARGUMENTS)}) → "
        f"{response.context.get('status')}: {_short(_result(response), RESULT)}"
        for call, response in zip(turn.calls, turn.responses, strict=False)
    ]
    return "\n".join([f"- {said}" if said else "-", *calls])


def _last_turns(turns: Sequence[ModelTurn], room: int) -> list[ModelTurn]:
    """The last consecutive turns that fit; empty if even the last turn is too long."""
    kept: list[ModelTurn] = []
    for turn in reversed(turns[-KEPT_TURNS:]):
        room -= _turn_tokens(turn)
        if room < 0:
            break
        kept.insert(0, turn)
    return kept


def _cut_messages(turn: ModelTurn) -> list[Message]:
    """The messages of a turn with its long results cut."""
    said, *results = turn_messages(turn)
    texts = [_result(each) for each in turn.responses]
    cut = [
        each if len(text) <= CUT else msgspec.structs.replace(each, source=None, content=_short(text, CUT))
        for each, text in zip(results, texts, strict=True)
    ]
    return [said, *cut]


def _kept_tokens(messages: Sequence[Message], state: RunState) -> int:
    """Tokens of texts that messages only refer to."""
    sources = {each.source.id for each in messages if each.source is not None}
    return sum(
        estimate_tokens(encode_canonical(state.records[id].context, "context").decode())
        for id in sources
        if id in state.records
    )


def _turn_tokens(turn: ModelTurn) -> int:
    texts = [encode_canonical(turn.answer.context, "context").decode(), *map(_result, turn.responses)]
    return sum(map(estimate_tokens, texts))


def _result(response: Breadcrumb) -> str:
    return text_at(response, "output" if response.context.get("status") == "success" else "error")


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} […]"


def _used(answer: Breadcrumb) -> int:
    usage: Any = (answer.context.get("output") or {}).get("usage")
    if not isinstance(usage, dict):
        return 0
    return int(usage.get("input_tokens") or 0) + int(usage.get("output_tokens") or 0)
