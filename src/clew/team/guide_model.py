"""The Guide's model: the one that [models] names for `guide`, else the default. It is resolved with the first message
that needs it, it is not used on a trail that the user neither made nor agreed to, and every call is in the ledger."""

from __future__ import annotations

import time
from collections.abc import Callable

from clew.access import Principal
from clew.errors import ConfigError, ModelError
from clew.llm.ledger import usage_draft, usage_record
from clew.llm.model import Models
from clew.llm.requests import Answer, ModelRequest, OnText
from clew.trail.flow import read_flow
from clew.trail.ownership import Ownership
from clew.trail.store import Trail

AGENT = "guide"
"""The Guide in [models] and in the ledger."""


class GuideModel:
    """A `Model` that resolves the Guide's model and records what each call took."""

    def __init__(self, models: Callable[[], Models], trail: Trail, ownership: Ownership | None, by: Principal) -> None:
        self._models, self._trail, self._ownership, self._by = models, trail, ownership, by

    async def answer(self, request: ModelRequest, *, on_text: OnText | None = None) -> Answer:
        """As promised by `Model`. Raises ModelError, also where the model cannot be used."""
        try:
            if self._ownership is not None:
                await self._ownership.require()
        except ConfigError as error:
            raise ModelError("config", str(error)) from None
        model, info = self._models().for_agent(AGENT)
        began = time.monotonic()
        answer = await model.answer(request, on_text=on_text)
        taken = 1_000 * (time.monotonic() - began)
        record = usage_record(answer.usage, agent_id=AGENT, model=info.full_name, latency_ms=taken)
        flow = await read_flow(self._trail, by=self._by)
        await self._trail.records.create(usage_draft(flow.usage, record), by=self._by)
        return answer
