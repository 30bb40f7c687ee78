"""Write a breadcrumb, change it, and look at its history.

Run it: python examples/01_first_trail.py
"""

import asyncio

from clew.access import Principal
from clew.errors import Conflict
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Change, Draft


async def main() -> None:
    trail = await open_trail("sqlite://:memory:")  # or sqlite://PATH, which stays
    ann = Principal(owner_id="acme", agent_id="ann")

    note = await trail.records.create(
        Draft(title="Port 8081 is ours", context={"port": 8081}, tags=["ports"], schema_name="note.v1"), by=ann
    )
    print(f"{note.title}: version {note.version}, {note.context}")

    # An update says which version it was made from: nobody overwrites what they have not seen.
    note = await trail.records.update(note.id, Change(context={"port": 8082}), expect=1, by=ann)
    try:
        await trail.records.update(note.id, Change(context={"port": 9999}), expect=1, by=ann)
    except Conflict as conflict:
        print(f"refused: expected version {conflict.expected}, it is {conflict.actual}")

    first = await trail.records.get(note.id, by=ann, version=1)
    print(f"version 1 had {first.context}, version {note.version} has {note.context}")

    events, _ = await trail.log.read(0, by=ann)
    print("the log:", ", ".join(f"{event.seq} {event.type} v{event.version}" for event in events))
    await trail.close()


asyncio.run(main())
