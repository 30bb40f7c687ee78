"""`clew usage`: model usage and cost by agent, session, layer and model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from clew.cli.arguments.values import parse_past
from clew.cli.folder_access import open_here
from clew.cli.options import HERE, Here, Json
from clew.cli.terminal.output import note, print_json, print_rows

if TYPE_CHECKING:
    from clew.agents.budgets.usage_report import UsageSummary

By = Literal["agent", "session", "layer", "model"]


async def usage(
    *,
    by: Annotated[By | None, Parameter(help="Show only the totals by this.")] = None,
    session: Annotated[str | None, Parameter(help="Only this session.")] = None,
    agent: Annotated[str | None, Parameter(help="Only this agent.")] = None,
    since: Annotated[str | None, Parameter(help="Only calls after this time, or 1h for an hour ago.")] = None,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Show model usage and cost.

    Shows calls, failed calls, tokens, cost and savings. A call that a cache or a shortcut answered is a hit of that
    layer.
    Savings compare with the same call without that layer, if its size is known.

        clew usage
        clew usage --by model --since 1d
    """
    # the sums are of use here only
    from clew.agents.budgets.usage_report import read_usage

    async with open_here(here) as app:
        moment = None if since is None else parse_past(since, app.clock.now(), "--since")
        report = await read_usage(app.trail, by=app.me, session=session, agent=agent, since=moment)
    if json:
        print_json(report if by is None else getattr(report, f"{by}s"))
        return
    kinds = ("agent", "session", "layer", "model") if by is None else (by,)
    rows = [_row(kind, name, each) for kind in kinds for name, each in getattr(report, f"{kind}s").items()]
    rows = [*([_row("total", "", report.total)] if by is None and rows else []), *rows]
    head = ("by", "name", "calls", "failed", "hits", "read", "cached", "written", "cost", "saved")
    print_rows(head, rows, main=1, spare=(6, 4))
    for remark in report.remarks:
        note(remark, dim=True)
    if not rows:
        note("No model calls yet.", dim=True)


def _row(kind: str, name: str, each: UsageSummary) -> tuple[str, ...]:
    cost = "-" if each.cost is None else f"${each.cost:,.4f}"
    saved = "-" if each.savings is None else f"{each.savings:.0%}"
    numbers = (each.calls, each.failed, each.hits, each.input_tokens, each.cached_tokens, each.output_tokens)
    return (kind, name, *(f"{number:,}" for number in numbers), cost, saved)
