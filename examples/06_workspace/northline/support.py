"""The support desk: its tickets. Results of other domains lead to these tools when somebody has to be told."""

from typing import Any

from clew.catalog.domain import Domain
from clew.tools import Effects, GuidedContent, ToolContext, guide, tool
from northline.store import Store


@tool(effects=Effects(reads_only=True, reaches_out=False))
async def tickets(passenger: int, ctx: ToolContext) -> GuidedContent:
    """List the support tickets of a passenger, to see what is known before a new one is opened."""
    found: list[dict[str, Any]] = ctx.client.read("SELECT * FROM tickets WHERE passenger = ?", passenger)
    shown = "\n".join(f"- {row['id']} ({row['queue']}): {row['subject']}" for row in found) or "There are none."
    step = guide("support://tools/hidden/ticket", "Open one, when none is about this.", passenger=passenger)
    return GuidedContent(content=shown, guidance=(step,))


@tool(searchable=False)
async def ticket(passenger: int, subject: str, ctx: ToolContext) -> str:
    """Open a support ticket in the ordinary queue, which is answered within two days."""
    return f"Ticket {ctx.client.open_ticket(passenger, 'ordinary', subject)} is open in the ordinary queue."


@tool(searchable=False)
async def vip_ticket(passenger: int, subject: str, ctx: ToolContext) -> str:
    """Open a support ticket in the VIP queue, which is answered within the hour."""
    return f"Ticket {ctx.client.open_ticket(passenger, 'VIP', subject)} is open in the VIP queue."


def build_support(store: Store) -> Domain:
    return Domain(
        name="support",
        description="Tickets of passengers at the support desk",
        tools=(tickets, ticket, vip_ticket),
        client=store,
    )
