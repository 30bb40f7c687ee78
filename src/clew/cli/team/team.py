"""`clew team`: watch and steer the work of the team from any terminal. `clew code` or `clew up` carries it out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from clew.cli.folder_access import open_here
from clew.cli.options import HERE, Here, Json
from clew.cli.project import trail_file
from clew.cli.team.code import find_session
from clew.cli.terminal.output import note, print_json, print_rows, say, short_ids, show_time

if TYPE_CHECKING:
    from clew.app import App
    from clew.team.messages.message import TeamMessage
    from clew.team.team import Team

Session = Annotated[str, Parameter(help="Its name, or the end of its id. [default: the focused or newest one]")]
InSession = Annotated[str, Parameter(name="--session", help="The session. [default: the focused or newest one]")]
Words = Annotated[str, Parameter(help="The text.")]


async def status(*, json: Json = False, here: Here = HERE) -> None:
    """List the work of the team, newest first.

    A session that waits for you needs an answer, an approval or a decision. Below the list stand the calls that run
    and wait in the worker pool, and the locks on files of the checkout, if there are any.

        clew team status
    """
    from clew.cli.team.team_lines import resource_lines, team_row
    from clew.team.runtime.resources import SharedResources

    found, shared = [], SharedResources()
    if (file := trail_file(here.config())) is None or file.exists():
        async with _open(here) as (team, app):
            found, shared = list(await team.status(by=app.me)), await team.resources.state()
    if json:
        print_json({"items": found, "pool": shared.pool, "locks": shared.locks})
        return
    ids = short_ids([each.session_id for each in found])
    rows = [(id, *team_row(each)[1:]) for id, each in zip(ids, found, strict=True)]
    print_rows(("session", "state", "tasks", "tokens", "request"), rows, main=4)
    for line in resource_lines(shared):
        say(line)
    if not rows:
        note('No work yet. Start with `clew code "TEXT"`.')


async def log(
    session: Session = "",
    /,
    *,
    limit: Annotated[int, Parameter(help="At most this many of the newest messages.")] = 1_000,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Show the messages of the team in a session.

    The output as JSON has every message; for people those of the machinery are left out.

        clew team log
        clew team log 4f1c22ab --json
    """
    from clew.cli.team.team_lines import message_line

    async with _open(here) as (team, app):
        found = await team.log(await find_session(team, app, session), by=app.me, limit=limit)
    if json:
        print_json({"items": found})
        return
    for each in found:
        if line := message_line(each):
            say(f"{show_time(each.timestamp)}  {line}")


async def approve(
    session: Session = "",
    /,
    *,
    over_budget: Annotated[bool, Parameter(help="Also accept an estimate above the budget.")] = False,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Approve the plan of a session.

    The work begins where a runtime runs: `clew up`, or `clew code --resume`.

        clew team approve
    """
    async with _open(here) as (team, app):
        sent = await team.approve(await find_session(team, app, session), by=app.me, over_budget=over_budget)
    _sent(sent, "The plan is approved. `clew code --resume` or a running `clew up` carries it out.", as_json=json)


async def modify(*text: Words, session: InSession = "", json: Json = False, here: Here = HERE) -> None:
    """Ask the Architect to change the plan.

    The work does not begin before you approve a plan.

        clew team modify "keep the public API as it is"
    """
    async with _open(here) as (team, app):
        sent = await team.modify(await find_session(team, app, session), " ".join(text), by=app.me)
    _sent(sent, "The Architect will propose another plan.", as_json=json)


async def ask(*text: Words, session: InSession = "", json: Json = False, here: Here = HERE) -> None:
    """Ask the Architect about the work.

    The work goes on meanwhile.

        clew team ask "why two tasks?"
    """
    async with _open(here) as (team, app):
        sent = await team.ask(await find_session(team, app, session), " ".join(text), by=app.me)
    _sent(sent, "The Architect will answer; `clew team log` shows it.", as_json=json)


async def answer(
    *text: Words,
    question: Annotated[str, Parameter(help="The id of the question, where several are open.")] = "",
    session: InSession = "",
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Answer a question of the Architect.

    The task that asked goes on with your answer.

        clew team answer "per user, ten a second"
    """
    async with _open(here) as (team, app):
        id = await find_session(team, app, session)
        sent = await team.answer(id, " ".join(text), by=app.me, question=question)
    _sent(sent, "Answered.", as_json=json)


async def add(*text: Words, session: InSession = "", json: Json = False, here: Here = HERE) -> None:
    """Add a requirement to work under way.

    Tasks that passed already stay as they are.

        clew team add "log refused requests"
    """
    async with _open(here) as (team, app):
        sent = await team.interrupt(await find_session(team, app, session), "add", " ".join(text), by=app.me)
    _sent(sent, "The Architect takes it into the plan.", as_json=json)


async def task(
    which: Annotated[str, Parameter(help="The id of the task, or its number in the plan.")],
    action: Literal["prompt", "query", "interrupt", "ignore_inspector", "ignore_tester"],
    /,
    *text: Words,
    session: InSession = "",
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Prompt, ask or interrupt a task, or ignore its Inspector or Tester.

    To ignore a check counts for this task alone, and the summary lists it.

        clew team task 1 prompt "use the existing clock"
        clew team task api query "what is left?"
        clew team task api ignore_tester "the test needs a network"
    """
    async with _open(here) as (team, app):
        id = await find_session(team, app, session)
        sent = await team.task(id, which, action, " ".join(text), by=app.me)
    _sent(sent, "Sent.", as_json=json)


async def choose(
    choice: Literal["ignore", "retry", "fail"],
    which: Annotated[str, Parameter(help="The task; without one, the findings of the whole session.")] = "",
    /,
    *,
    reason: Annotated[str, Parameter(help="Why; the summary shows it.")] = "",
    session: InSession = "",
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Decide on a task that used all its rounds.

    Its findings are ignored, it is tried again, or it fails.

        clew team choose retry api
        clew team choose ignore api --reason "the linter is wrong here"
    """
    async with _open(here) as (team, app):
        id = await find_session(team, app, session)
        sent = await team.choose(id, choice, by=app.me, task=which, reason=reason)
    _sent(sent, "Decided.", as_json=json)


async def override(
    *reason: Annotated[str, Parameter(help="Why; the summary shows it.")],
    what: Annotated[Literal["inspection", "testing"], Parameter(help="The check whose findings are accepted.")] = (
        "inspection"
    ),
    session: InSession = "",
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Accept the open findings of the session.

    The summary lists them as deferred.

        clew team override --what testing "the suite needs a database"
    """
    async with _open(here) as (team, app):
        id = await find_session(team, app, session)
        sent = await team.override(id, " ".join(reason), by=app.me, what=what)
    _sent(sent, "Accepted.", as_json=json)


async def stop(
    session: Session = "",
    /,
    *,
    reason: Annotated[str, Parameter(help="Why; the log shows it.")] = "",
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Stop the work of a session; its branches stay.

    Agents that run are cancelled.

        clew team stop
    """
    async with _open(here) as (team, app):
        sent = await team.stop(await find_session(team, app, session), by=app.me, reason=reason)
    _sent(sent, "Stopped. Everything that was committed stays on its branches.", as_json=json)


async def why_done_task(task: str, session: str, *, as_json: bool, here: Here) -> None:
    """Print the evidence of a task."""
    from clew.team.evidence.verification import why_done

    async with _open(here) as (team, app):
        found = await team.why_done(await find_session(team, app, session), task, by=app.me)
    if as_json:
        print_json(found)
    else:
        say(why_done(found))


def _sent(message: TeamMessage, outcome: str, *, as_json: bool) -> None:
    if as_json:
        print_json(message)
    else:
        note(outcome)


@asynccontextmanager
async def _open(here: Here) -> AsyncIterator[tuple[Team, App]]:
    async with open_here(here) as app:
        await app.bootstrap()
        yield await app.team(), app
