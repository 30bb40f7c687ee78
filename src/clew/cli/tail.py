"""`clew trail tail`: the events as they happen."""

from __future__ import annotations

import sys
from typing import Annotated

import msgspec
from cyclopts import Parameter

from clew.app import App
from clew.cli.options import EVERY, HERE, Here, Json, Which, open_here
from clew.cli.output import clean_json, is_terminal, one_line, open_console, show_time
from clew.errors import InvalidInput
from clew.trail.event import Event, sse_payload
from clew.trail.selector import Selector, check_selector

LOOK_BACK = 1_000
"""How many of the newest events are looked at for those to begin with."""

_COLOURS = {"created": "green", "updated": "yellow", "deleted": "red"}


async def tail(
    *,
    which: Which = EVERY,
    after: Annotated[int | None, Parameter(help="Begin after the event of this number.")] = None,
    last: Annotated[int, Parameter(help="Begin with so many earlier events.")] = 10,
    count: Annotated[int | None, Parameter(help="Stop after so many events in all.")] = None,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Follow what happens on the trail until Ctrl-C.

    Events of other processes are seen as well. With --json each line is an event.

        clew trail tail --schema user.message.v1
        clew trail tail --last 0 --count 1 --json
        clew trail tail --after 1200
    """
    if last < 0 or (count is not None and count < 1) or (after is not None and after < 0):
        raise InvalidInput("--last, --count, --after", "must not be negative, and --count at least 1")
    async with open_here(here) as app:
        selector = check_selector(which.selector())
        start = after if after is not None else await _start(app, selector, last)
        shown = 0
        async for event in app.trail.log.follow(start, by=app.me, selector=selector):
            _print(event, as_json=json)
            shown += 1
            if shown == count:
                return


async def _start(app: App, selector: Selector, last: int) -> int:
    """The number after which the last few matching events lie."""
    head = await app.trail.log.head()
    if not last:
        return head
    recent, _ = await app.trail.log.read(max(0, head - LOOK_BACK), by=app.me, selector=selector, limit=LOOK_BACK)
    return recent[-last:][0].seq - 1 if recent else head


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
    from rich.text import Text  # see open_console

    seq, _, verb, schema, title, tags, id = _cells(event)
    line = Text(f"{event.at.astimezone():%H:%M:%S} {seq:>6} ")
    line.append(f"{verb:<8}", style=_COLOURS[verb])
    line.append(f"{schema:<20} {title}  ")
    line.append(f"{tags}  {id.rpartition('-')[2]}", style="dim")
    open_console().print(line, soft_wrap=True)


def _cells(event: Event) -> tuple[str, ...]:
    title = event.breadcrumb.title if event.breadcrumb else ""
    verb = event.type.rpartition(".")[2]
    tags = " ".join(event.tags[:6])
    parts = (str(event.seq), show_time(event.at), verb, event.schema_name or "-", title, tags, event.breadcrumb_id)
    return tuple(map(one_line, parts))
