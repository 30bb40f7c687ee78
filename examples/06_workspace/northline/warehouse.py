"""The warehouse: who the passengers are and what they booked. Its guidance depends on what it finds."""

from pathlib import Path
from typing import Any

from clew.catalog.domain import Domain, SearchConfig, Segment
from clew.catalog.formats import TableSchema
from clew.catalog.resource import Pipeline, Resource
from clew.catalog.sources.warehouse import WarehouseSettings, WarehouseSource
from clew.errors import NotFound
from clew.tools import Effects, GuidedContent, ToolContext, guide, tool
from northline.store import Store

RISKY, VIP = 80, 10_000
READS = Effects(reads_only=True, reaches_out=False)


@tool(effects=READS, examples=({"passenger": 4711},))
async def passenger_investigation(passenger: int, ctx: ToolContext) -> GuidedContent:
    """Look into one passenger: who it is, how risky, and how much was spent. Start here for a disputed charge, a
    suspected fraud, or any other question about a person."""
    found = _passenger(ctx.client, passenger)
    risk, spent = found["risk_score"], found["lifetime_spend"]
    steps = [guide("warehouse://tools/hidden/bookings", "All bookings of this passenger.", passenger=passenger)]
    if risk > RISKY:
        why = f"The risk score {risk} is above {RISKY}: have the bookings reviewed for financial crime."
        steps.append(guide("warehouse://tools/hidden/fincrime-review", why, passenger=passenger))
    if spent > VIP:
        why = f"A VIP, with {spent:,.0f} euros spent: open a ticket once you know what happened."
        steps.append(guide("support://tools/hidden/vip-ticket", why, passenger=passenger))
    steps.append(guide("logs://tools/investigator", "The sign-ins of this passenger.", passenger=passenger))
    return GuidedContent(
        content=f"{found['name']} has a risk score of {risk} and has spent {spent:,.0f} euros.", guidance=steps
    )


@tool(effects=READS, searchable=False)
async def bookings(passenger: int, ctx: ToolContext, last: int = 10) -> list[dict[str, Any]]:
    """List the bookings of a passenger, the latest first."""
    query = "SELECT * FROM bookings WHERE passenger = ? ORDER BY booked_at DESC LIMIT ?"
    found: list[dict[str, Any]] = ctx.client.read(query, passenger, last)
    return found


@tool(effects=READS, searchable=False)
async def fincrime_review(passenger: int, ctx: ToolContext) -> GuidedContent:
    """Review the bookings of a passenger for financial crime: which came from a device that was never seen before?"""
    rows = ctx.client.read("SELECT * FROM bookings WHERE passenger = ? ORDER BY booked_at", passenger)
    usual = rows[0]["device"] if rows else ""
    odd = [row for row in rows if row["device"] != usual]
    total, numbers = sum(row["price"] for row in odd), ", ".join(str(row["id"]) for row in odd)
    step = guide(
        "logs://tools/hidden/sign-out", "Lock the other device out, if the account is stolen.", passenger=passenger
    )
    return GuidedContent(
        content=f"{len(odd)} bookings ({numbers}) for {total:,.0f} euros came from a device never seen before.",
        guidance=(step,) if odd else (),
    )


def _passenger(store: Store, number: int) -> dict[str, Any]:
    found = store.read("SELECT * FROM passengers WHERE id = ?", number)
    if not found:
        raise NotFound("passenger", str(number))
    return found[0]


async def explain_risk_score(store: Store) -> str:
    risky = store.read("SELECT count(*) AS n FROM passengers WHERE risk_score > ?", RISKY)[0]["n"]
    return f"The risk score goes from 0 to 100. Above {RISKY} a review is due; that is so for {risky} passenger now."


def build_warehouse(store: Store, database: Path) -> Domain:
    """The domain on a database. Its tables are resources too, read by the pipeline for warehouses."""
    tables = Pipeline(
        source=WarehouseSource(WarehouseSettings(url=f"sqlite:///{database}")),
        formats=(TableSchema(),),
        base_path="tables",
    )
    risk_score = Resource(
        path="risk-score",
        name="Risk score",
        description="The meaning of a passenger's risk score, and when a review is due",
        fetch=explain_risk_score,
    )
    return Domain(
        name="warehouse",
        description="Passengers, bookings and payments of the ferry line",
        tools=(passenger_investigation, bookings, fincrime_review),
        resources=(risk_score,),
        extractors=(tables,),
        search=SearchConfig(
            query_by=("description", "name"),
            weights=(2, 1),
            segments=(Segment(name="tables", types=("table",), limit=2), Segment(name="rest", limit=3, priority=2)),
        ),
        client=store,
    )
