"""`clew workers`: the processes that work on the trail, and the claims that they hold."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from clew.cli.folder_access import open_here
from clew.cli.options import HERE, Here, Json
from clew.cli.terminal.output import note, print_json, print_rows

if TYPE_CHECKING:
    from clew.agents.workers.worker_records import WorkerStatus


async def workers(*, json: Json = False, here: Here = HERE) -> None:
    """List the processes that work on this trail.

    Shows the roles, the tags and the number of events that each process holds, as of its last report, which is at most
    half a minute old. A process that ended is not listed. A process that was killed on another machine stays listed for
    a minute and a half.

        clew workers
        clew workers --json
    """
    # the records of workers are of use here only
    from clew.agents.workers.roles import EVERY_ROLE
    from clew.agents.workers.worker_records import list_workers

    async with open_here(here) as app:
        found, now = await list_workers(app.trail, app.clock, by=app.me), app.clock.now()
    if json:
        print_json(found)
        return
    rows = [_row(each, now, frozenset(each.roles) == EVERY_ROLE) for each in found]
    print_rows(("host", "pid", "state", "roles", "tags", "holds", "since", "seen"), rows, main=3, spare=(4, 7))
    if not rows:
        note("No process works on this trail. Start one: clew up", dim=True)


def _row(each: WorkerStatus, now: datetime, has_all: bool) -> tuple[str, ...]:
    roles = "all" if has_all else ", ".join(each.roles)
    ages = (_age(each.since, now), _age(each.seen_at, now))
    return (each.host, str(each.pid), each.state, roles, ", ".join(each.tags) or "-", str(each.held_count), *ages)


def _age(moment: datetime, now: datetime) -> str:
    """The time since a moment, in one unit such as `5m`."""
    seconds = max(0, int((now - moment).total_seconds()))
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
