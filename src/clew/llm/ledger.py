"""Model usage: one record per call, and sums by agent, session, layer and model."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from clew.access import Principal
from clew.llm.messages import Usage
from clew.trail.bulk import each_record
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

MODEL_LAYER = "model"
"""The layer that asks a model; the others answer without one."""


class UsageRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One model call, or a call that a cache saved. `baseline_tokens` is the estimate without savings; `cost` is None
    without a known price."""

    agent_id: str
    session: str = ""
    run: str = ""
    layer: str = MODEL_LAYER
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None
    baseline_tokens: int | None = None
    latency_ms: float = 0.0
    request_id: str = ""


class UsageTotals(msgspec.Struct, kw_only=True):
    """Calls added up. `cost` is the cost of the calls with a known price, None if there are none. `unpriced_calls`
    counts the other calls. Savings are computed only from calls with a baseline."""

    calls: int = 0
    hits: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: float | None = None
    unpriced_calls: int = 0
    baseline_tokens: int = 0
    compared_tokens: int = 0
    latency_ms: float = 0.0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def saved_tokens(self) -> int:
        """The number of tokens saved compared with the baseline; negative if more tokens were used."""
        return self.baseline_tokens - self.compared_tokens

    @property
    def savings(self) -> float | None:
        """The share of the baseline that was saved; None if no call has a baseline."""
        return self.saved_tokens / self.baseline_tokens if self.baseline_tokens else None

    @property
    def hit_rate(self) -> float | None:
        """The share of calls that needed no model; None if there were no calls."""
        return self.hits / self.calls if self.calls else None

    def add(self, record: UsageRecord) -> None:
        self.calls += 1
        self.hits += record.layer != MODEL_LAYER
        self.input_tokens += record.input_tokens
        self.output_tokens += record.output_tokens
        self.cached_tokens += record.cached_tokens
        self.latency_ms += record.latency_ms
        if record.cost is None:
            self.unpriced_calls += 1
        else:
            self.cost = (self.cost or 0.0) + record.cost
        if record.baseline_tokens is not None:
            self.baseline_tokens += record.baseline_tokens
            self.compared_tokens += record.input_tokens + record.output_tokens


class UsageLedger(msgspec.Struct, kw_only=True):
    """All sums, each by name in order of the first call. `remarks` say what the figures leave out."""

    total: UsageTotals = msgspec.field(default_factory=UsageTotals)
    agents: dict[str, UsageTotals] = {}
    sessions: dict[str, UsageTotals] = {}
    layers: dict[str, UsageTotals] = {}
    models: dict[str, UsageTotals] = {}
    unreadable: int = 0

    def add(self, context: dict[str, Any]) -> None:
        """Add a usage record, given as the context of its breadcrumb."""
        try:
            record = msgspec.convert(context, UsageRecord)
        except msgspec.ValidationError:
            self.unreadable += 1
            return
        self.total.add(record)
        self.agents.setdefault(record.agent_id, UsageTotals()).add(record)
        self.layers.setdefault(record.layer, UsageTotals()).add(record)
        if record.session:
            self.sessions.setdefault(record.session, UsageTotals()).add(record)
        if record.model:
            self.models.setdefault(record.model, UsageTotals()).add(record)

    @property
    def remarks(self) -> tuple[str, ...]:
        """One line for each thing that the figures leave out."""
        unpriced = [name for name, found in self.models.items() if found.unpriced_calls]
        known = f"no price is known of {', '.join(unpriced)}: {self.total.unpriced_calls:,} calls are not in the cost"
        skipped = f"{self.unreadable:,} usage records could not be read"
        return (*((known,) if unpriced else ()), *((skipped,) if self.unreadable else ()))


def usage_draft(schema_name: str, record: UsageRecord) -> Draft:
    """The breadcrumb of one call. A second draft for the same request and layer does not create another breadcrumb."""
    tags = [f"usage:{record.layer}", f"agent:{record.agent_id}"]
    tags += [f"{name}:{value}" for name in ("session", "run") if (value := getattr(record, name))]
    key = f"usage:{record.layer}:{record.request_id}" if record.request_id else None
    return Draft(
        title=f"{record.model or record.layer}: {record.input_tokens:,} tokens in, {record.output_tokens:,} out",
        schema_name=schema_name,
        tags=tuple(tags),
        context=msgspec.to_builtins(record),
        embed="never",
        idempotency_key=key,
    )


def usage_record(usage: Usage, **about: Any) -> UsageRecord:
    """The record of a call that took `usage`."""
    return UsageRecord(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        cost=usage.cost,
        **about,
    )


async def read_ledger(
    trail: Trail,
    schema_name: str,
    *,
    by: Principal,
    session: str | None = None,
    agent_id: str | None = None,
    since: datetime | None = None,
) -> UsageLedger:
    """The sums of the usage records that the caller may see, optionally only of one session, of one agent, or since a
    time."""
    selector = Selector(
        schema_name=schema_name,
        session=session,
        all_tags=(f"agent:{agent_id}",) if agent_id else (),
        created_after=since,
    )
    ledger = UsageLedger()
    async for each in each_record(trail, selector, by=by):
        ledger.add(each.context)
    return ledger
