"""The report of model usage and cost, the same for every door."""

from __future__ import annotations

from datetime import datetime

import msgspec

from clew.access import Principal
from clew.errors import NotFound
from clew.llm.ledger import UsageLedger, UsageTotals, read_ledger
from clew.trail.bootstrap import read_pieces
from clew.trail.model.flow import read_flow, shipped_flow
from clew.trail.store import Trail


class UsageSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of calls, with the share of calls that needed no model and the share of tokens that the cache saved; None
    without data. `cost` is in US dollars, None without a known price."""

    calls: int
    hits: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: float | None
    latency_ms: float
    hit_rate: float | None
    baseline_tokens: int
    saved_tokens: int
    savings: float | None


class UsageReport(msgspec.Struct, frozen=True, kw_only=True):
    """Usage in total and by group. `remarks` say what the figures leave out."""

    total: UsageSummary
    agents: dict[str, UsageSummary]
    sessions: dict[str, UsageSummary]
    layers: dict[str, UsageSummary]
    models: dict[str, UsageSummary]
    remarks: tuple[str, ...]


async def read_usage(
    trail: Trail,
    *,
    by: Principal,
    session: str | None = None,
    agent: str | None = None,
    since: datetime | None = None,
) -> UsageReport:
    """The sums over the usage records that the caller may see. Raises AccessDenied."""
    by.require("read")
    try:
        flow = await read_flow(trail, by=by)
    except NotFound:
        flow = shipped_flow(read_pieces())
    return report_of(await read_ledger(trail, flow.usage, by=by, session=session, agent_id=agent, since=since))


def report_of(ledger: UsageLedger) -> UsageReport:
    """The ledger as doors show it."""
    groups = ("agents", "sessions", "layers", "models")
    sums = {group: {name: _spent(each) for name, each in getattr(ledger, group).items()} for group in groups}
    return UsageReport(total=_spent(ledger.total), **sums, remarks=ledger.remarks)


def _spent(each: UsageTotals) -> UsageSummary:
    return UsageSummary(**{name: getattr(each, name) for name in UsageSummary.__struct_fields__})
