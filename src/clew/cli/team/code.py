"""`clew code`: a team plans, builds, checks and tests a request, on a branch of its own."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from clew.cli.folder_access import open_here
from clew.cli.options import HERE, Here
from clew.cli.project import project_root
from clew.cli.terminal.output import can_ask, count, note, print_json, say, say_wrapped
from clew.errors import InvalidInput

if TYPE_CHECKING:
    from clew.app import App
    from clew.team.machines.team_state import TeamState
    from clew.team.team import Team
    from clew.team.worktrees.checkout_merge import CheckoutMerge

MERGE = "merge"


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeOptions:
    """The options of the command line."""

    name: str
    session: str
    budget: int
    agents: int
    yes: bool
    dry_run: bool
    base: str
    take_changes: bool | None
    research: bool
    allow: tuple[str, ...]
    script: Path | None
    json: bool


async def code(
    *text: Annotated[str, Parameter(help="The request; with --resume or after `merge`, a session.")],
    name: Annotated[str, Parameter(help="A name for the session and its branch.")] = "",
    in_session: Annotated[
        str, Parameter(name="--session", help="Begin in this session of `clew session new`, within its limits.")
    ] = "",
    budget: Annotated[int, Parameter(help="Spend at most this many tokens. [default: no limit]")] = 0,
    agents: Annotated[int, Parameter(help="At most this many agents at the same time.")] = 4,
    yes: Annotated[bool, Parameter(help="Approve the plan without a question.")] = False,
    dry_run: Annotated[bool, Parameter(help="Show the plan and its estimate, and stop.")] = False,
    resume: Annotated[bool, Parameter(help="Continue a session: the named, the focused or the newest one.")] = False,
    base: Annotated[str, Parameter(help="The commit or branch to start from. [default: HEAD]")] = "",
    take_changes: Annotated[
        bool | None, Parameter(help="Take uncommitted changes along. [default: ask]", negative="--no-take-changes")
    ] = None,
    ff_only: Annotated[bool, Parameter(help="With `merge`: only if no merge commit is needed.")] = False,
    research: Annotated[bool, Parameter(help="Let the Academic research the request first.")] = False,
    allow: Annotated[
        tuple[str, ...], Parameter(help="A tool that may run without asking, as a name or glob; repeatable.")
    ] = (),
    script: Annotated[Path | None, Parameter(help="A file with scripted answers, instead of a model.")] = None,
    json: Annotated[bool, Parameter(help="Print one JSON object for each event.")] = False,
    here: Here = HERE,
) -> int:
    """Let a team plan, build, check and test a request.

    The team shows its plan and asks you. It works in git work trees of its own and leaves the result on a branch;
    `clew code merge` brings it into your checkout. Every task is proven by your linters and tests. Ctrl-C asks whether
    to pause, steer or stop. After a crash, --resume continues. The exit code is 3 if the work waits for your answer.

        clew code "add rate limiting to the API"
        clew code --dry-run "add rate limiting to the API"
        clew code --resume
        clew code merge
    """
    logging.getLogger("clew.agents").setLevel(logging.ERROR)  # failures are part of the view
    if text[:1] == (MERGE,) and len(text) <= 2:
        return await _merge(text[1] if len(text) > 1 else "", ff_only=ff_only, as_json=json, here=here)
    options = CodeOptions(
        name=name,
        session=in_session,
        budget=budget,
        agents=agents,
        yes=yes,
        dry_run=dry_run,
        base=base,
        take_changes=take_changes,
        research=research,
        allow=allow,
        script=script,
        json=json,
    )
    return await _run(" ".join(text).strip(), options, here, is_resumed=resume)


async def _run(text: str, options: CodeOptions, here: Here, *, is_resumed: bool) -> int:
    """Start or resume a session, and follow it. `text` is the request, or the session to resume."""
    if not is_resumed and not text:
        raise InvalidInput("TEXT", "is missing", hint='For example clew code "add rate limiting to the API"')
    async with open_here(here, create=True, tell_first=True) as app:
        await app.bootstrap()
        async with _working(app, options) as team:
            if not is_resumed:
                session, after = await _start(app, team, text, options), 0
            else:
                session, after = await find_session(team, app, text), await app.trail.log.head()
                await _resume(app, team, session, options)
            return await _follow(app, team, session, options, after)


async def _start(app: App, team: Team, request: str, options: CodeOptions) -> str:
    from clew.team.team import TeamOptions

    wanted = TeamOptions(
        name=options.name,
        session=options.session,
        budget=options.budget,
        max_agents=options.agents,
        base=options.base,
        takes_changes=_takes_changes(app, options),
        approves_plan=options.yes and not options.dry_run,
        research=options.research,
    )
    return (await team.start(request, by=app.me, options=wanted)).id


async def _resume(app: App, team: Team, session: str, options: CodeOptions) -> None:
    """Resume a session: show its state, and approve its plan with --yes."""
    state = await team.resume(session, by=app.me)
    if state.stage != "approval":  # the question about a plan shows it
        _show_state(state, as_json=options.json)
    elif options.yes:
        await team.approve(session, by=app.me)


@asynccontextmanager
async def _working(app: App, options: CodeOptions) -> AsyncIterator[Team]:
    """The team, with a runtime in this process. Another process may work on the same trail: each step is done once."""
    from clew.llm.model import open_models

    models = open_models(app.config)
    if options.script is not None:
        from clew.cli.scripts import with_script  # for demos and tests only

        models = with_script(models, options.script)
    team = await app.team(models)
    try:
        runtime = await app.runtime(models)
        async with runtime.running():
            yield team
    finally:
        await models.close()


def _show_state(state: TeamState, *, as_json: bool) -> None:
    """Print the state of a session."""
    from clew.cli.team.team_commands import state_lines

    for line in () if as_json else state_lines(state):
        say_wrapped(line)


async def _follow(app: App, team: Team, session: str, options: CodeOptions, after: int) -> int:
    from clew.agents.conversations.conversation import open_conversations
    from clew.cli.chat.chat_input import open_lines
    from clew.cli.chat.chat_turn import answer_from, ask_person, interrupts
    from clew.cli.team.team_run import RunParts, TeamRun
    from clew.cli.team.team_view import open_display
    from clew.team.sessions.session import label

    is_asked = can_ask() and not options.json
    conversations = await open_conversations(app.trail, app.clock, by=app.me, scopes=app.me.scopes)
    with interrupts() as caught, open_lines() as lines:
        parts = RunParts(
            team=team,
            conversations=conversations,
            session=session,
            label=label(await team.sessions.get(session, by=app.me)),
            by=app.me,
            display=open_display(as_json=options.json),
            asker=ask_person(lines, options.allow) if is_asked else answer_from(options.allow),
            interrupts=caught,
            lines=lines if is_asked else None,
            plan_only=options.dry_run,
            after=after,
        )
        return await TeamRun(parts).follow()


async def find_session(team: Team, app: App, which: str) -> str:
    """The named session. Without a name, the focused session, or the newest with a team. Raises NotFound."""
    from clew.errors import NotFound

    if which:
        return await team.sessions.find(which, by=app.me)
    known = [each.session_id for each in await team.status(by=app.me)]
    focused = await team.sessions.focused(by=app.me)
    if focused is not None and focused.id in known:
        return focused.id
    if not known:
        raise NotFound("session of a team", "", hint='Start one with `clew code "TEXT"`')
    return known[0]


def _takes_changes(app: App, options: CodeOptions) -> bool:
    """Whether uncommitted changes go along: decided by the option, else by the user's answer, else no."""
    from clew.cli.terminal.output import agrees
    from clew.team.worktrees.checkout_state import changed_files

    root = project_root(app.config)
    found = changed_files(root)
    if found is None:
        note(
            "This folder has no git repository: the team works in a copy, and `clew code merge` copies the result back."
        )
        return False
    if not found or options.take_changes is not None:
        return bool(options.take_changes)
    files = count(len(found), "changed file")
    if can_ask() and not options.json:
        return agrees(f"The checkout has {files}. Take them along? (No starts from the last commit)")
    note(f"The team starts without {files} of the checkout; --take-changes takes them along.")
    return False


async def _merge(which: str, *, ff_only: bool, as_json: bool, here: Here) -> int:
    """Merge the branch of a session into the checkout."""
    async with open_here(here) as app:
        await app.bootstrap()
        team = await app.team()
        done = await team.merge(await find_session(team, app, which), by=app.me, ff_only=ff_only)
    if as_json:
        print_json(done)
    else:
        show_merge(done)
    return 0 if done.merged else 1


def show_merge(done: CheckoutMerge) -> None:
    """The result of a merge for a person."""
    words = {
        "up_to_date": "The checkout has it already.",
        "fast_forward": f"Your branch was moved forward to {done.head[:12]}.",
        "merged": f"Merged as {done.head[:12]}.",
        "copied": "The changed files were copied into the folder.",
        "conflict": "Nothing was merged: both sides changed the same lines. Merge the branch with git.",
        "diverged": "Nothing was merged: your branch has new commits. Leave out --ff-only for a merge commit.",
        "dirty": "Nothing was merged: these files have uncommitted changes. Commit or stash them, then try again.",
    }
    say(words[done.outcome])
    for path in done.dirty or [each.path for each in done.conflicts] or done.files:
        say(f"  {path}")
