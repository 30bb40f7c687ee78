"""The tool `llm`: one model call for one request. The text is written in pieces while it arrives, so that clients can
stream it. The last piece is written together with the response.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from clew.access import Principal
from clew.agents.budgets.budget import Amount
from clew.agents.budgets.budget_tree import Budgets, Reservation
from clew.agents.runs.prompts import ModelPrompt, read_input, rebuild_prompt
from clew.agents.runs.requests import ToolRequest
from clew.agents.runs.run_records import DELETED, RunRecords
from clew.clock import Clock
from clew.errors import ClewError
from clew.llm.ledger import usage_draft, usage_record
from clew.llm.model import Models
from clew.llm.model_catalogue import ModelInfo
from clew.llm.requests import ModelReply, ModelRequest
from clew.llm.tokens import estimate_tokens
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.flow import Flow
from clew.trail.store import Trail
from clew.trail.work.correlation import find_run, inherited_tags

FIRST_SECONDS, PIECE_SECONDS = 0.02, 0.12
"""Seconds from the first word of a text to the first write of it, and between two writes."""
MAX_OUTPUT = 4_096
"""Tokens that are reserved for an answer by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCalls:
    """Calls models for requests."""

    trail: Trail
    flow: Flow
    clock: Clock
    models: Models
    budgets: Budgets
    runs: RunRecords
    by: Principal

    async def call(
        self, request: ToolRequest, record: Breadcrumb, config: Mapping[str, Any], *, budget: str | None, key: str
    ) -> tuple[dict[str, Any], list[Draft]]:
        """The answer of the model, and further records: the last piece of its text, and its usage. Raises ModelError,
        BudgetExceeded, InvalidInput."""
        input = read_input(request.input)
        model, info = self.models.for_agent(request.requested_by, str(config.get("model") or input.model))
        run = find_run(record)
        known = await self.runs.read(run) if run else {}
        prompt = await rebuild_prompt(self.trail, self.flow, record, by=self.by, known=known, deleted=DELETED)
        settings = {**config, **input.settings}
        asked = ModelRequest(
            messages=prompt.messages,
            tools=prompt.tools,
            model=info.name,
            temperature=settings.get("temperature"),
            max_tokens=settings.get("max_tokens"),
        )
        began = time.monotonic()
        pieces = AnswerPieces(self, record, request)
        reserved = await self._reserve(budget, key, prompt, asked, info)
        spent = Amount(calls=1)
        try:
            try:
                answer = await model.answer(asked, on_text=pieces.add)
                spent = _spent(answer)
                rest = await pieces.take()
                seconds = time.monotonic() - began
            finally:
                if reserved is not None:
                    await self.budgets.settle(reserved, spent, by=self.by)
        except BaseException:
            await pieces.flush()
            raise
        return _output(answer, prompt), [*rest, self._usage(request, record, answer, info, seconds)]

    async def _reserve(
        self, budget: str | None, key: str, prompt: ModelPrompt, asked: ModelRequest, info: ModelInfo
    ) -> Reservation | None:
        """Reserve the most that a call may take. A call is refused if its prompt alone is larger than the rest of the
        budget."""
        if budget is None:
            return None
        read = sum(estimate_tokens(each.content) for each in prompt.messages)
        tokens = read + (asked.max_tokens or MAX_OUTPUT)
        money = tokens / 1_000_000 * max(info.input_price or 0.0, info.output_price or 0.0)
        most = Amount(tokens=tokens, money=money, calls=1)
        return await self.budgets.reserve(budget, key, most, by=self.by, least=Amount(calls=1, tokens=read + 1))

    def _usage(
        self, request: ToolRequest, record: Breadcrumb, answer: ModelReply, info: ModelInfo, seconds: float
    ) -> Draft:
        made = usage_record(
            answer.usage,
            agent_id=request.requested_by,
            session=record.session or "",
            run=find_run(record) or "",
            layer="model",
            model=info.full_name,
            latency_ms=seconds * 1000,
            request_id=request.request_id,
        )
        return usage_draft(self.flow.usage, made)


class AnswerPieces:
    """Writes the text of one answer to the trail in pieces."""

    def __init__(self, calls: ModelCalls, record: Breadcrumb, request: ToolRequest) -> None:
        self._calls = calls
        self._tags = (*inherited_tags(record), f"request:{request.request_id}", f"agent:{request.requested_by}")
        self._scopes = record.scopes
        self._request = request
        self._waiting: list[str] = []
        self._index = 0
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None

    async def add(self, text: str) -> None:
        """Take in a piece of the text. It is written soon, or taken before."""
        if not self._waiting and self._timer is None:
            self._write_in(FIRST_SECONDS if self._index == 0 else PIECE_SECONDS)
        self._waiting.append(text)

    def _write_in(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()

        def write() -> None:
            self._timer = None
            self._writing = loop.create_task(self._write(self._writing))

        self._timer = loop.call_later(seconds, write)

    async def _write(self, before: asyncio.Task[None] | None) -> None:
        """Write the text that has arrived, after the write `before`. Raises the error of that write: nothing is written
        after a gap."""
        if before is not None:
            await asyncio.shield(before)
        for draft in self._drafts():
            await self._calls.trail.records.create(draft, by=self._calls.by)

    async def flush(self) -> None:
        """Write the text that has arrived, at the end of a call that failed. The error of the call is more important
        than one of the trail here."""
        self._end()
        with contextlib.suppress(ClewError):
            await self._write(self._writing)

    async def take(self) -> Sequence[Draft]:
        """The end of the text that is not written yet, as a draft for the caller to write. Raises the error of
        the first piece that could not be written."""
        self._end()
        if self._writing is not None:
            await asyncio.shield(self._writing)
        return self._drafts()

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _drafts(self) -> Sequence[Draft]:
        if not self._waiting:
            return ()
        text, self._waiting = "".join(self._waiting), []
        self._index += 1
        return (
            Draft(
                title="A piece of an answer",
                schema_name=self._calls.flow.delta,
                tags=self._tags,
                context={"request_id": self._request.request_id, "index": self._index - 1, "text": text},
                scopes=self._scopes,
                embed="never",
            ),
        )


def _output(answer: ModelReply, prompt: ModelPrompt) -> dict[str, Any]:
    """The answer as the output of a response."""
    output: dict[str, Any] = {
        "content": answer.content,
        "tool_calls": msgspec.to_builtins(answer.tool_calls),
        "finish_reason": answer.finish_reason,
        "model": answer.model,
        "usage": msgspec.to_builtins(answer.usage),
        "prompt_digest": prompt.digest,
    }
    return {**output, "extra": answer.extra} if answer.extra else output


def _spent(answer: ModelReply) -> Amount:
    usage = answer.usage
    return Amount(tokens=usage.input_tokens + usage.output_tokens, money=usage.cost or 0.0, calls=1)
