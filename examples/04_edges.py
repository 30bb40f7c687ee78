"""Edges: what led to what, what is near, and which way is cheapest.

Run it: python examples/04_edges.py
"""

import asyncio
from pathlib import Path

from clew.access import Principal
from clew.errors import CycleRefused
from clew.trail import open_trail
from clew.trail.model.edge import Edge
from clew.trail.model.selector import Selector
from clew.trail.transfer import import_trail

DATA = Path(__file__).parent / "data" / "northline.jsonl"
ME = Principal(owner_id="local")
OLD, NEW = "Decision: retry a failed charge three times", "Decision: every charge carries an idempotency key"


async def main() -> None:
    trail = await open_trail("sqlite://:memory:")
    with DATA.open("rb") as lines:
        await import_trail(trail, ME, lines)
    page = await trail.records.list(Selector(), by=ME, limit=100)
    titles = {each.id: each.title for each in page.items}
    ids = {title: id for id, title in titles.items()}
    runbook = ids["Runbook: a passenger was charged twice"]

    print("The runbook points at:")
    for edge in await trail.edges.of(runbook, by=ME, direction="outgoing"):
        print(f"  {edge.type:<11} {titles[edge.target]}")

    print("Two steps from it, along the arrows:")
    for reached in await trail.edges.walk([runbook], by=ME, depth=2):
        if reached.depth == 2:
            print(f"  {titles[reached.id]}  (by way of: {titles[reached.path[1]]})")

    print("The cheapest ways in either direction, up to a cost of 1:")
    for reached in await trail.edges.paths([runbook], by=ME, max_cost=1.0):
        print(f"  {reached.cost:.1f}  {titles[reached.id]}")

    try:
        await trail.edges.add([Edge(source=ids[OLD], target=ids[NEW], type="supersedes")], by=ME)
    except CycleRefused as error:
        print(f"Refused: {error.edge_type} must stay free of cycles")
    await trail.close()


asyncio.run(main())
