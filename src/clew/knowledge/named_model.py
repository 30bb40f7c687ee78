"""The model that the user named for what is known. It is found when it is first asked, asks nothing on a trail of
others, and what each call takes is in the ledger."""

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

AGENT = "knowledge"
"""Who asks, in the ledger."""


class NamedModel:
    """One model by its name or role. What is wrong with the name, its provider or its key is raised by `answer`."""

    def __init__(
        self, name: str, open_models: Callable[[], Models], trail: Trail, ownership: Ownership, by: Principal
    ) -> None:
        self._name, self._open_models = name, open_models
        self._trail, self._ownership, self._by = trail, ownership, by

    async def answer(self, request: ModelRequest, *, on_text: OnText | None = None) -> Answer:
        """As promised by `Model`; the call is in the ledger before the answer is given."""
        try:
            await self._ownership.require()
        except ConfigError as error:
            raise ModelError("config", str(error)) from None
        model, info = self._open_models().resolve(self._name)
        began = time.monotonic()
        answer = await model.answer(request, on_text=on_text)
        taken = 1_000 * (time.monotonic() - began)
        record = usage_record(answer.usage, agent_id=AGENT, model=info.full_name, latency_ms=taken)
        flow = await read_flow(self._trail, by=self._by)
        await self._trail.records.create(usage_draft(flow.usage, record), by=self._by)
        return answer
