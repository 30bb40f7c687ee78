"""A model that is resolved at each call and records every call in the ledger. It refuses calls on a trail that the user
neither created nor consented to."""

from __future__ import annotations

import time
from collections.abc import Callable

from clew.access import Principal
from clew.errors import ConfigError, ModelError
from clew.llm.ledger import usage_draft, usage_record
from clew.llm.model import Models
from clew.llm.model_catalogue import ModelInfo
from clew.llm.requests import Model, ModelReply, ModelRequest, OnText
from clew.trail.model.flow import read_flow
from clew.trail.ownership import Ownership
from clew.trail.store import Trail

Resolve = Callable[[Models], tuple[Model, ModelInfo]]


class RecordedModel:
    """A `Model` for one agent. The ledger records its calls under the agent's name. `resolve` chooses one of the
    models."""

    def __init__(
        self,
        agent: str,
        resolve: Resolve,
        open_models: Callable[[], Models],
        trail: Trail,
        ownership: Ownership | None,
        by: Principal,
    ) -> None:
        self._agent, self._resolve, self._open_models = agent, resolve, open_models
        self._trail, self._ownership, self._by = trail, ownership, by

    async def answer(self, request: ModelRequest, *, on_text: OnText | None = None) -> ModelReply:
        """See `Model.answer`. Also raises ModelError if the model may not be used on this trail."""
        try:
            if self._ownership is not None:
                await self._ownership.require()
        except ConfigError as error:
            raise ModelError("config", str(error)) from None
        model, info = self._resolve(self._open_models())
        began = time.monotonic()
        answer = await model.answer(request, on_text=on_text)
        taken = 1_000 * (time.monotonic() - began)
        record = usage_record(answer.usage, agent_id=self._agent, model=info.full_name, latency_ms=taken)
        flow = await read_flow(self._trail, by=self._by)
        await self._trail.records.create(usage_draft(flow.usage, record), by=self._by)
        return answer
