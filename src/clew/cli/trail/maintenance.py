"""Commands that keep the trail healthy: hygiene and dead letters."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from clew.cli.folder_access import open_here
from clew.cli.options import HERE, Here, Json
from clew.cli.terminal.output import (
    count,
    note,
    print_json,
    print_rows,
    say,
    short_ids,
    show_day,
    show_time,
)
from clew.cli.terminal.progress import progress
from clew.errors import InvalidInput
from clew.trail.model.selector import Selector
from clew.trail.work.hygiene import REPORT_SCHEMA

MOST = 1_000
"""The maximum number of dead letters that are listed or retried at a time."""

Letters = Annotated[str, Parameter(help="The id of a dead letter.")]


async def run_hygiene(*, json: Json = False, here: Here = HERE) -> None:
    """Remove expired breadcrumbs now.

    `clew up` does this every few minutes by itself.

        clew hygiene run
    """
    async with open_here(here) as app:
        with progress("Removing expired records"):
            purged = await app.hygiene.run()
    if json:
        print_json(purged)
        return
    removed = (
        count(purged.breadcrumbs, "breadcrumb"),
        count(purged.agents, "idle agent"),
        count(purged.subscriptions, "subscription"),
    )
    say(f"Removed {', '.join(removed)}.")


async def hygiene_stats(*, json: Json = False, here: Here = HERE) -> None:
    """Show the report of the last hygiene run.

    Counts begin with the process that ran it. Earlier reports are breadcrumbs: clew trail ls --schema
    system.hygiene.v1

        clew hygiene stats --json
    """
    async with open_here(here) as app:
        page = await app.trail.records.list(Selector(schema_name=REPORT_SCHEMA), by=app.me, limit=1)
    report = page.items[0].context if page.items else {}
    if json:
        print_json(report)
        return
    if not report:
        note("No report yet. `clew hygiene run` makes one.")
        return
    names = ("runs_completed", "total_breadcrumbs_purged", "last_run_duration_ms", "hygiene_enabled")
    rows = [(name, str(report.get(name))) for name in names]
    print_rows(("what", "value"), [("at", show_time(page.items[0].created_at)), *rows])


async def list_dead_letters(
    *,
    consumer: Annotated[str | None, Parameter(help="Only those of this consumer.")] = None,
    limit: Annotated[int, Parameter(help="At most this many.")] = 100,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """List dead letters, oldest first.

    A dead letter is an event that a consumer failed to handle in all its attempts. The list shows the reason.

        clew dlq ls --consumer run_tool
    """
    if not 1 <= limit <= MOST:
        raise InvalidInput("--limit", f"must be between 1 and {MOST:,}")
    async with open_here(here) as app:
        letters = await app.trail.dead_letters.list(by=app.me, consumer=consumer, limit=limit)
        now = app.clock.now()
    if json:
        print_json({"items": letters})
        return
    ids = short_ids([each.event.breadcrumb_id for each in letters])
    rows = [
        (each.id, each.consumer, show_day(each.failed_at, now), str(each.attempts), id, each.reason)
        for id, each in zip(ids, letters, strict=True)
    ]
    print_rows(("id", "consumer", "failed", "attempts", "breadcrumb", "reason"), rows, main=5, spare=(3, 2, 4))
    if not rows:
        note("No dead letters.")


async def retry_dead_letters(
    *ids: Letters,
    all: Annotated[bool, Parameter(help="Retry every one of the owner.")] = False,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Make dead letters pending again.

    Each event gets its full number of attempts again, in the process that runs its consumer.

        clew dlq retry 17-42
        clew dlq retry --all
    """
    _require(ids, all=all)
    async with open_here(here) as app:
        if all:
            ids = tuple(letter.id for letter in await app.trail.dead_letters.list(by=app.me, limit=MOST))
        for id in ids:
            await app.trail.dead_letters.replay(id, by=app.me)
    print_json({"retried": ids}) if json else say(f"{count(len(ids), 'event')} will be retried.")


async def drop_dead_letters(*ids: Letters, json: Json = False, here: Here = HERE) -> None:
    """Forget dead letters.

    Their breadcrumbs stay; only the work on these events is given up for good.

        clew dlq drop 17-42
    """
    _require(ids, all=False)
    async with open_here(here) as app:
        for id in ids:
            await app.trail.dead_letters.drop(id, by=app.me)
    print_json({"dropped": ids}) if json else say(f"{count(len(ids), 'dead letter')} dropped.")


def _require(ids: tuple[str, ...], *, all: bool) -> None:
    if ids and all:
        raise InvalidInput("--all", "cannot be combined with an ID", hint="Give one or the other")
    if not ids and not all:
        raise InvalidInput("ID", "is missing", hint="`clew dlq ls` lists them")
