"""`clew trail tail`: the events as they happen."""

from __future__ import annotations

import asyncio
import os
import select
import stat
import sys
from typing import Annotated

import msgspec
from cyclopts import Parameter

from clew.app import App
from clew.cli.folder_access import open_here
from clew.cli.options import EVERY, HERE, FilterOptions, Here, Json, System
from clew.cli.terminal.output import (
    DIM,
    GREEN,
    RED,
    SHORT,
    YELLOW,
    clean_json,
    is_terminal,
    note,
    one_line,
    paint,
    show_time,
)
from clew.cli.trail.system_records import SystemRecords, read_system_records
from clew.errors import InvalidInput
from clew.trail.model.event import Event, sse_payload
from clew.trail.model.selector import Selector, check_selector

LOOK_EVERY = 0.2
"""Seconds between checks whether the output still has a reader."""
LOOK_BACK = 1_000
"""The number of latest events that are searched for the first events to show."""

_COLOURS = {"created": GREEN, "updated": YELLOW, "deleted": RED}


async def tail(
    *,
    which: FilterOptions = EVERY,
    after: Annotated[int | None, Parameter(help="Begin after the event of this number.")] = None,
    last: Annotated[int, Parameter(help="Begin with so many earlier events.")] = 10,
    count: Annotated[int | None, Parameter(help="Stop after so many events in all.")] = None,
    system: System = False,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Follow the events of the trail until Ctrl-C.

    Events of other processes are seen as well. With --json each line is an event. Events of Clew's own breadcrumbs are
    left out, in JSON too, unless you pass --system or --schema.

        clew trail tail --schema user.message.v1
        clew trail tail --last 0 --count 1 --json
        clew trail tail --after 1200
    """
    if last < 0 or (count is not None and count < 1) or (after is not None and after < 0):
        raise InvalidInput("--last, --count, --after", "must not be negative, and --count at least 1")
    async with open_here(here) as app:
        selector = check_selector(which.selector(app.clock.now()))
        own = None if system or which.schema else await read_system_records(app)
        start = after if after is not None else await _start(app, selector, last, own)
        if is_terminal() and start == await app.trail.log.head():
            note("Waiting for changes; Ctrl-C ends it.", dim=True)
        is_closed = False
        try:
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(_wait_for_closed_output())
                await _follow(app, start, selector, own, count, as_json=json)
                watching.cancel()
        except* BrokenPipeError:
            is_closed = True
        if is_closed:
            raise BrokenPipeError


async def _follow(
    app: App, start: int, selector: Selector, own: SystemRecords | None, count: int | None, *, as_json: bool
) -> None:
    shown = 0
    async for event in app.trail.log.follow(start, by=app.me, selector=selector):
        if own is not None and own.has(event.breadcrumb_id, event.schema_name):
            continue
        _print(event, as_json=as_json)
        shown += 1
        if shown == count:
            return


async def _wait_for_closed_output() -> None:
    """Raise BrokenPipeError once the reader of the output has gone, even if nothing is being written."""
    if not _is_pipe() or not hasattr(select, "poll"):
        await asyncio.get_running_loop().create_future()
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    while not poll.poll(0):  # noqa: ASYNC110 - no event reports that the reader has gone
        await asyncio.sleep(LOOK_EVERY)
    raise BrokenPipeError


def _is_pipe() -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):  # not a file at all
        return False


async def _start(app: App, selector: Selector, last: int, own: SystemRecords | None) -> int:
    """The position in the log after which the `last` matching events begin."""
    head = await app.trail.log.head()
    if not last:
        return head
    recent, _ = await app.trail.log.read(max(0, head - LOOK_BACK), by=app.me, selector=selector, limit=LOOK_BACK)
    wanted = [each.seq for each in recent if own is None or not own.has(each.breadcrumb_id, each.schema_name)]
    return wanted[-last:][0] - 1 if wanted else head


def _print(event: Event, *, as_json: bool) -> None:
    """One event on one line, at once."""
    if as_json:
        payload = {"seq": event.seq, **sse_payload(event)}
        sys.stdout.write(clean_json(msgspec.json.encode(payload).decode()) + "\n")
    elif is_terminal():
        _print_coloured(event)
    else:
        sys.stdout.write("\t".join(_cells(event)) + "\n")
    sys.stdout.flush()


def _print_coloured(event: Event) -> None:
    seq, _, verb, schema, title, tags, id = _cells(event)
    when = f"{event.at.astimezone():%H:%M:%S}"
    aside = paint(f"{tags}  {id[-SHORT:]}", DIM)
    sys.stdout.write(f"{when} {seq:>6}  {paint(f'{verb:<8}', _COLOURS[verb])} {schema:<18} {title}  {aside}\n")


def _cells(event: Event) -> tuple[str, ...]:
    title = event.breadcrumb.title if event.breadcrumb else ""
    verb = event.type.rpartition(".")[2]
    tags = " ".join(event.tags[:6])
    parts = (str(event.seq), show_time(event.at), verb, event.schema_name or "-", title, tags, event.breadcrumb_id)
    return tuple(map(one_line, parts))
