"""The logs: who signed in from where. A far address is a question for the server `geo`, which somebody else wrote."""

from clew.catalog.domain import Domain
from clew.tools import Effects, GuidedContent, ToolContext, guide, tool
from northline.store import Store


@tool(effects=Effects(reads_only=True, reaches_out=False))
async def investigator(passenger: int, ctx: ToolContext) -> GuidedContent:
    """Read the sign-ins of one passenger: when, from which address and device, and what is unusual about them."""
    rows = ctx.client.read("SELECT * FROM sign_ins WHERE passenger = ? ORDER BY at", passenger)
    usual = rows[0]["ip"] if rows else ""
    odd = [row for row in rows if row["ip"] != usual]
    if not odd:
        return GuidedContent(content=f"All {len(rows)} sign-ins came from the usual address.")
    last = odd[-1]
    return GuidedContent(
        content=f"{len(rows) - len(odd)} sign-ins came from {usual}; the one of {last['at']} from {last['ip']}.",
        guidance=[
            guide("geo://tools/hidden/locate_ip", "Where is this unusual address?", ip=last["ip"]),
            guide("logs://tools/hidden/sign-out", "End all sessions, if the account is stolen.", passenger=passenger),
        ],
    )


@tool(searchable=False, effects=Effects(destroys=True, repeats_safely=True, reaches_out=False))
async def sign_out(passenger: int) -> str:
    """Sign a passenger out on all devices; only a new code by mail lets anybody in again."""
    return f"Passenger {passenger} is signed out everywhere."


def build_logs(store: Store) -> Domain:
    return Domain(
        name="logs",
        description="Sign-ins and errors of the booking site",
        tools=(investigator, sign_out),
        client=store,
    )
