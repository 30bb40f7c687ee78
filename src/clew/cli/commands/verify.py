"""`clew verify`: run the proof of a task again, or vouch for a source that a tool ingested."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from clew.cli.folder_access import open_here
from clew.cli.options import HERE, Here, Json
from clew.cli.terminal.output import agrees, can_ask, note, print_json, say
from clew.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.trail.model.breadcrumb import Breadcrumb

_SHOWN = 2_000
_SOURCE = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


async def verify(
    id: Annotated[str, Parameter(help="A task of the team; or the id that `ingest_source` printed.")],
    /,
    *,
    session: Annotated[str, Parameter(help="The session of the task. [default: the newest of the team]")] = "",
    yes: Annotated[bool, Parameter(help="Verify without being asked.")] = False,
    json: Json = False,
    here: Here = HERE,
) -> int:
    """Run the commands of a task again, or vouch for a source.

    For a task of the team, by its id or its number in the plan: the linters and tests of its receipts run again on the
    recorded tree, and the results are compared. Ends with 1 when they differ.

    A source from a tool is unverified: research marks it, and trusts it least. This shows the source, asks you, and
    then stores it with the trust of its kind. Ends with 1 when you do not agree, and with 2 when there is nobody to
    ask.

        clew verify api
        clew verify 1f0c3b9e-8d2a-5c41-9f6e-2b7a4d0e5c13
        clew verify 1f0c3b9e-8d2a-5c41-9f6e-2b7a4d0e5c13 --yes
    """
    if session or not _SOURCE.fullmatch(id):
        return await _verify_task(id, session, as_json=json, here=here)
    from clew.knowledge.documents.ingest import find_unverified  # with the rest of knowledge

    async with open_here(here) as app:
        library = app.knowledge().library(app.me)
        pieces = await find_unverified(library.trail, id, by=app.me)
        if not yes and not can_ask():
            raise InvalidInput("--yes", "is needed to verify a source, since nobody can be asked here")
        if not yes:
            _show(pieces)
        if not yes and not agrees("Do you vouch for this source?"):
            note("Nothing was verified.")
            return 1
        done = await library.verify_source(id)
    if json:
        print_json(done)
    else:
        note(f"Verified: {done.title} ({done.node_type}, trust {done.trust}), now {done.ids[0]}.")
    return 0


async def _verify_task(task: str, session: str, *, as_json: bool, here: Here) -> int:
    from clew.cli.team.code import find_session

    async with open_here(here) as app:
        await app.bootstrap()
        team = await app.team()
        found = await team.verify(await find_session(team, app, session), task, by=app.me)
    if as_json:
        print_json(found)
        return 0 if found.matches else 1
    say(f"{found.task}: {'the same results' if found.matches else 'other results'} on tree {found.tree[:12]}")
    for each in found.commands:
        say(f"  {'✗' if each.difference else '✓'} {each.command}: {each.difference or f'exit code {each.exit_code}'}")
    return 0 if found.matches else 1


def _show(pieces: Sequence[Breadcrumb]) -> None:
    """The kind, the origin and the beginning of a source."""
    context, metadata = pieces[0].context, pieces[0].context["metadata"]
    say(f"{metadata['title']} ({metadata['kind']}, {len(pieces)} parts)")
    say(f"From: {context.get('source') or 'a text'}")
    if claimed := metadata.get("claimed_url"):
        say(f"Claims to be: {claimed}")
    text = "\n\n".join(each.context["content"] for each in pieces)
    more = f"\n… and {len(text) - _SHOWN:,} characters more" if len(text) > _SHOWN else ""
    say(f"{text[:_SHOWN]}{more}")
