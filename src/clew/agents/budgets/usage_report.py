"""The report of model usage and cost, the same for every interface."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import msgspec

from clew.access import Principal
from clew.errors import NotFound
from clew.llm.ledger import UsageLedger, UsageTotals, read_ledger
from clew.trail.bootstrap import read_pieces
from clew.trail.bulk import each_record
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.flow import read_flow, shipped_flow
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import CONSUMER_TAG


class UsageSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Totals of calls, with the share of calls that needed no model and the share of tokens that the cache saved; None
    without data. `failed` calls brought no answer and are not among `calls`. They are known for the total, agents and
    sessions. `cost` is in US dollars, None without a known price."""

    calls: int
    failed: int = 0
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
    ledger = await read_ledger(trail, flow.usage, by=by, session=session, agent_id=agent, since=since)
    responses = Selector(
        schema_name=flow.response,
        session=session,
        all_tags=(f"{CONSUMER_TAG}{agent}",) if agent else (),
        context_match=(ContextMatch(path="tool", value=flow.model_tool),),
        created_after=since,
    )
    failed = _FailedCalls()
    async for each in each_record(trail, responses, by=by):
        failed.add(each)
    return report_of(ledger, failed)


class _FailedCalls:
    """Model calls that brought no answer: all, by agent and by session."""

    def __init__(self) -> None:
        self.total = 0
        self.groups: dict[str, Counter[str]] = {"agents": Counter(), "sessions": Counter()}

    def add(self, response: Breadcrumb) -> None:
        if response.context.get("status") == "success":
            return
        self.total += 1
        for group, prefix in (("agents", CONSUMER_TAG), ("sessions", "session:")):
            self.groups[group].update(tag.removeprefix(prefix) for tag in response.tags if tag.startswith(prefix))


def report_of(ledger: UsageLedger, failed: _FailedCalls | None = None) -> UsageReport:
    """The ledger for display, with the calls that failed."""
    failed = failed or _FailedCalls()
    sums: dict[str, dict[str, UsageSummary]] = {}
    for group in ("agents", "sessions", "layers", "models"):
        counted, without = getattr(ledger, group), failed.groups.get(group, Counter())
        sums[group] = {name: _spent(counted.get(name, UsageTotals()), without[name]) for name in (*counted, *without)}
    return UsageReport(total=_spent(ledger.total, failed.total), **sums, remarks=ledger.remarks)


def _spent(each: UsageTotals, failed: int) -> UsageSummary:
    names = (name for name in UsageSummary.__struct_fields__ if name != "failed")
    return UsageSummary(failed=failed, **{name: getattr(each, name) for name in names})
