"""`clew team`: watch and steer the work of the team from any terminal. `clew code` or `clew up` carries it out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from clew.cli.folder_access import open_here
from clew.cli.options import HERE, Here, Json
from clew.cli.project import trail_file
from clew.cli.team.code import find_session
from clew.cli.terminal.output import is_terminal, note, print_json, print_rows, say, say_wrapped, short_ids, show_time
from clew.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from clew.app import App
    from clew.team.messages.message import TeamMessage
    from clew.team.team import Team

Session = Annotated[str, Parameter(help="Its name, or the end of its id. [default: the focused or newest one]")]
InSession = Annotated[str, Parameter(name="--session", help="The session. [default: the focused or newest one]")]
Words = Annotated[str, Parameter(help="Your text; quotes are not needed.")]


async def status(*, json: Json = False, here: Here = HERE) -> None:
    """List the work of the team, newest first.

    A session that waits for you needs an answer, an approval or a decision. Below the list are the running and waiting
    calls of the worker pool, and the locks on files of the checkout.

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
    limit: Annotated[int, Parameter(help="The maximum number of messages; the newest are shown.")] = 1_000,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Show the messages of the team in a session.

    The JSON output has every message; the text leaves out internal messages.

        clew team log
        clew team log 4f1c22ab --json
    """
    from clew.cli.team.team_lines import message_row

    async with _open(here) as (team, app):
        found = await team.log(await find_session(team, app, session), by=app.me, limit=limit)
    if json:
        print_json({"items": found})
        return
    rows = [(show_time(each.timestamp), *message_row(each)) for each in found]
    if not is_terminal():
        print_rows(("time", "task", "message"), [row for row in rows if row[2]])
        return
    for time, task, line in rows:
        if line:
            say_wrapped(f"{time}  {task}{': ' if task else ''}{line}")


async def approve(
    session: Session = "",
    /,
    *,
    over_budget: Annotated[bool, Parameter(help="Also accept an estimate above the budget.")] = False,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Approve the plan of a session.

    The work begins in a running runtime: `clew up`, or `clew code --resume`.

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
    words = _words(text, 'clew team modify "keep the public API as it is"')
    async with _open(here) as (team, app):
        sent = await team.modify(await find_session(team, app, session), words, by=app.me)
    _sent(sent, "The Architect will propose another plan.", as_json=json)


async def ask(*text: Words, session: InSession = "", json: Json = False, here: Here = HERE) -> None:
    """Ask the Architect about the work.

    The work continues while it answers.

        clew team ask "why two tasks?"
    """
    words = _words(text, 'clew team ask "why two tasks?"')
    async with _open(here) as (team, app):
        sent = await team.ask(await find_session(team, app, session), words, by=app.me)
    _sent(sent, "The Architect will answer; `clew team log` shows it.", as_json=json)


async def answer(
    *text: Words,
    question: Annotated[str, Parameter(help="Its number or id, if several are open.")] = "",
    session: InSession = "",
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Answer a question of the Architect.

    The task that asked continues with your answer.

        clew team answer "per user, ten a second"
        clew team answer --question 2 "yes"
    """
    words = _words(text, 'clew team answer "per user, ten a second"')
    async with _open(here) as (team, app):
        id = await find_session(team, app, session)
        sent = await team.answer(id, words, by=app.me, question=question)
    _sent(sent, "Answered. `clew code --resume` or a running `clew up` goes on.", as_json=json)


async def add(*text: Words, session: InSession = "", json: Json = False, here: Here = HERE) -> None:
    """Add a requirement to work under way.

    Tasks that passed already stay as they are.

        clew team add "log refused requests"
    """
    words = _words(text, 'clew team add "log refused requests"')
    async with _open(here) as (team, app):
        sent = await team.interrupt(await find_session(team, app, session), "add", words, by=app.me)
    _sent(sent, "The Architect takes it into the plan.", as_json=json)


async def task(
    which: Annotated[str, Parameter(help="The id of the task, or its number in the plan.")],
    action: Annotated[
        Literal["prompt", "query", "interrupt", "ignore_inspector", "ignore_tester"],
        Parameter(help="The action on the task."),
    ],
    /,
    *text: Words,
    session: InSession = "",
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Prompt, ask or interrupt a task, or ignore its Inspector or Tester.

    An ignored check is ignored for this task only, and the summary lists it.

        clew team task 1 prompt "use the existing clock"
        clew team task api query "what is left?"
        clew team task api ignore_tester "the test needs a network"
    """
    if action in ("prompt", "query"):
        _words(text, f'clew team task {which} {action} "use the existing clock"')
    async with _open(here) as (team, app):
        id = await find_session(team, app, session)
        sent = await team.task(id, which, action, " ".join(text), by=app.me)
    _sent(sent, "Sent. `clew team log` shows what comes of it.", as_json=json)


async def choose(
    choice: Annotated[
        Literal["ignore", "retry", "fail"], Parameter(help="Accept its findings, try it again, or let it fail.")
    ],
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
    _sent(sent, "Decided. `clew code --resume` or a running `clew up` goes on.", as_json=json)


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
    words = _words(reason, 'clew team override "the linter is wrong here"')
    async with _open(here) as (team, app):
        id = await find_session(team, app, session)
        sent = await team.override(id, words, by=app.me, what=what)
    _sent(sent, "Accepted. The summary will list it as deferred.", as_json=json)


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
    """Print the evidence of a task, or of all tasks if none is named."""
    from clew.team.evidence.task_evidence import why_done

    async with _open(here) as (team, app):
        id = await find_session(team, app, session)
        plan = (await team.state(id, by=app.me)).plan
        if not task and plan is None:
            raise NotFound("plan", "", hint="The Architect has not planned yet; `clew team log` shows the work")
        wanted = [task] if task or plan is None else [each.id for each in plan.nodes]
        found = [await team.why_done(id, each, by=app.me) for each in wanted]
    if as_json:
        print_json(found[0] if task else {"items": found})
        return
    for line in "\n".join(map(why_done, found)).splitlines():
        say_wrapped(line)


def _words(text: Sequence[str], example: str) -> str:
    """The words as one text. Raises InvalidInput if there are none."""
    if not (words := " ".join(text).strip()):
        raise InvalidInput("TEXT", "is missing", hint=f"For example {example}")
    return words


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
