"""Commands that look at the trail: ls, show, search, history, stats."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from cyclopts import Parameter

from clew.cli.folder_access import open_here
from clew.cli.options import EVERY, HERE, FilterOptions, Here, Json, System
from clew.cli.terminal.output import (
    BOLD,
    note,
    print_content,
    print_json,
    print_rows,
    say,
    short_ids,
    show_day,
    show_time,
)
from clew.cli.trail.record_ids import find_id, get_version
from clew.cli.trail.system_records import describe_hidden, has_steps, list_others, search_others
from clew.trail.model.breadcrumb import Breadcrumb, Ttl, View
from clew.trail.model.query import Ranking, SearchRequest

Id = Annotated[str, Parameter(help="The id of a breadcrumb, or six or more of its first or last characters.")]

NONE_YET = """No breadcrumbs yet. Write one: clew trail put --title "Hello" --context '{"text": "my first one"}'"""
STEPS = "Steps of runs (requests, responses, contexts, pieces of answers) are left out; --system shows them."


async def ls(
    *,
    which: FilterOptions = EVERY,
    limit: Annotated[int, Parameter(help="At most this many.")] = 20,
    cursor: Annotated[str | None, Parameter(help="The cursor from the previous page.")] = None,
    oldest: Annotated[bool, Parameter(help="Begin with the oldest.")] = False,
    system: System = False,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """List breadcrumbs, newest first.

    Elsewhere than on a terminal, columns are separated by tabs, and times and ids are complete.
    Clew's own breadcrumbs and the steps of runs are left out, in JSON too, unless you pass --system or --schema.

        clew trail ls --schema note.v1 --limit 5
        clew trail ls --tag session:42 --since 2h --oldest
        clew trail ls --where status=open --json
    """
    async with open_here(here) as app:
        now = app.clock.now()
        wanted, hidden = which.selector(now), ""
        if system or which.schema:
            page = await app.trail.records.list(wanted, by=app.me, limit=limit, cursor=cursor, oldest_first=oldest)
        else:
            page = await list_others(app, wanted, limit=limit, cursor=cursor, oldest_first=oldest)
            hidden = await describe_hidden(app, None if which == EVERY else wanted)
    if json:
        print_json(page)
        return
    ids = short_ids([each.id for each in page.items])
    rows = [_row(id, each, now) for id, each in zip(ids, page.items, strict=True)]
    print_rows(("id", "updated", "schema", "title", "tags"), rows, main=3, spare=(4, 2, 1))
    if not rows:
        note(NONE_YET if which == EVERY and cursor is None else "No breadcrumb fits that.")
    if hidden:
        note(hidden, dim=True)
    if page.cursor is not None:
        note(f"There are more: --cursor {page.cursor}", dim=True)


async def show(
    id: Id,
    /,
    *,
    full: Annotated[bool, Parameter(help="Show it as stored. This is not counted as a read.")] = False,
    version: Annotated[int | None, Parameter(help="Show this version as it was stored.")] = None,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Show one breadcrumb as a model sees it.

    Its llm_hints are applied. If the breadcrumb ends after a number of reads, this is one of them.

        clew trail show 2e7484bd67a7
        clew trail show 2e7484bd67a7 --full --json
        clew trail show 2e7484bd67a7 --version 2
    """
    async with open_here(here) as app:
        found_id = await find_id(app, id)
        found: Breadcrumb | View
        if full or version is not None:
            found = await get_version(app, found_id, version)
        else:
            found = await app.trail.records.read(found_id, by=app.me)
    if json:
        print_json(found)
        return
    say(found.title, BOLD)
    for name, value in _facts(found):
        say(f"{name:<9} {value}")
    say()
    print_content(found.context)


async def search(
    text: Annotated[str, Parameter(help="Words, a question, or an exact name.")],
    /,
    *,
    which: FilterOptions = EVERY,
    limit: Annotated[int, Parameter(help="At most this many.")] = 10,
    ranking: Annotated[Ranking, Parameter(help="How to order what is found.")] = "default",
    system: System = False,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Find breadcrumbs by words and by meaning.

    Elsewhere than on a terminal, columns are separated by tabs, and ids are complete.
    Clew's own breadcrumbs and the steps of runs are left out, in JSON too, unless you pass --system or --schema.

        clew trail search "how do we rotate keys"
        clew trail search create_invoice --schema tool.code.v1 --limit 3
        clew trail search "rate limit" --tag session:42 --ranking text
    """
    async with open_here(here) as app:
        wanted = which.selector(app.clock.now())
        request = SearchRequest(text=text, selector=wanted, limit=limit, ranking=ranking)
        shows_all = system or bool(which.schema)
        result = await (app.trail.index.search(request, by=app.me) if shows_all else search_others(app, request))
        hides_steps = not shows_all and await has_steps(app, wanted)
    if json:
        print_json(result)
        return
    ids = short_ids([hit.breadcrumb.id for hit in result.hits])
    rows = [
        (id, f"{hit.score:.3f}", hit.breadcrumb.schema_name or "-", hit.breadcrumb.title)
        for id, hit in zip(ids, result.hits, strict=True)
    ]
    print_rows(("id", "score", "schema", "title"), rows, main=3, spare=(2, 1))
    if not rows:
        note("Nothing found. `clew trail ls` lists all breadcrumbs.")
    if hides_steps:
        note(STEPS, dim=True)


async def history(id: Id, /, *, json: Json = False, here: Here = HERE) -> None:
    """List the versions of a breadcrumb.

    The oldest comes first, and the present one last. Look at one with `clew trail show ID --version N`.

        clew trail history 2e7484bd67a7
    """
    async with open_here(here) as app:
        versions = await app.trail.records.history(await find_id(app, id), by=app.me)
    if json:
        print_json({"items": versions})
        return
    rows = [(str(each.version), show_time(each.updated_at), each.updated_by or "-", each.checksum) for each in versions]
    print_rows(("version", "written", "by", "checksum"), rows)


async def stats(*, json: Json = False, here: Here = HERE) -> None:
    """Count breadcrumbs, events and edges.

    Counts everything that the owner sees, including Clew's own breadcrumbs. It does not count expired records and those
    of other owners; `clew trail backup` copies and counts them too.

        clew trail stats --json
    """
    async with open_here(here) as app:
        counted = await app.trail.upkeep.stats(by=app.me)
    if json:
        print_json(counted)
        return
    rows = [("breadcrumbs", counted.breadcrumbs), ("events", counted.events), ("edges", counted.edges)]
    rows += [(f"schema {name or '(none)'}", number) for name, number in counted.schemas.items()]
    print_rows(("what", "count"), [(name, str(number)) for name, number in rows])
    note(f"The counts include the records that {app.me.owner_id} can see, without expired ones.", dim=True)


def _row(id: str, each: Breadcrumb, now: datetime) -> tuple[str, ...]:
    tags = " ".join(each.tags[:6]) + (" …" if len(each.tags) > 6 else "")
    return id, show_day(each.updated_at, now), each.schema_name or "-", each.title, tags


def _facts(found: Breadcrumb | View) -> list[tuple[str, str]]:
    facts = [("id", found.id), ("schema", found.schema_name or "-"), ("version", str(found.version))]
    facts += [("tags", ", ".join(found.tags))] if found.tags else []
    if isinstance(found, View):
        return [*facts, ("updated", show_time(found.updated_at))]
    facts += [("owner", found.owner_id)]
    facts += [("scopes", ", ".join(found.scopes))] if found.scopes else []
    facts += [("created", f"{show_time(found.created_at)} by {found.created_by or '-'}")]
    facts += [("updated", f"{show_time(found.updated_at)} by {found.updated_by or '-'}")]
    return [*facts, ("ends", _end(found.ttl)), ("checksum", found.checksum)]


def _end(ttl: Ttl) -> str:
    when = [f"at {show_time(ttl.expires_at)}"] if ttl.expires_at is not None else []
    when += [f"after {ttl.max_reads} reads ({ttl.read_count} so far)"] if ttl.max_reads is not None else []
    return " or ".join(when) or "never"
