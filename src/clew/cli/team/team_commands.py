"""Commands about the team in a chat: /plan, /approve, /stop and /task."""

from __future__ import annotations

from typing import cast

from clew.app import App
from clew.cli.team.code import find_session
from clew.cli.team.team_lines import estimate_line, plan_lines, status_line, task_line
from clew.cli.terminal.output import note, say_wrapped
from clew.errors import InvalidInput
from clew.team.machines.team_state import TeamState
from clew.team.team import TASK_TYPES, TaskAction, Team

_TASK_USAGE = f"Use /task N and {', '.join(TASK_TYPES)}, and a text"


async def run_team_command(text: str, team: Team, app: App) -> None:
    """Carry out a command on the focused or newest work of the team. Raises ClewError."""
    command, _, rest = text.strip().partition(" ")
    session, rest = await find_session(team, app, ""), rest.strip()
    match command.lower():
        case "/plan" if not rest:
            for line in state_lines(await team.state(session, by=app.me)):
                say_wrapped(line)
        case "/plan":
            await team.modify(session, rest, by=app.me)
            note("The Architect will propose another plan.")
        case "/approve":
            await team.approve(session, by=app.me, over_budget=True)
            note("The plan is approved.")
        case "/stop":
            await team.stop(session, by=app.me, reason=rest)
            note("Stopped. Everything that was committed stays on its branches.")
        case "/task":
            await _act_on_task(rest, session, team, app)


async def _act_on_task(text: str, session: str, team: Team, app: App) -> None:
    which, action, words = (*text.split(maxsplit=2), "", "", "")[:3]
    if not which or action not in TASK_TYPES:
        raise InvalidInput("/task", "needs a task and an action", hint=_TASK_USAGE)
    await team.task(session, which, cast("TaskAction", action), words, by=app.me)
    note("Sent.")


def state_lines(state: TeamState) -> list[str]:
    """The plan, the agents that work, and the open questions."""
    lines = [status_line(state)]
    if state.plan is not None:
        lines += plan_lines(state.plan, state)
    if state.preflight is not None and not state.is_approved:
        lines.append(estimate_line(state.preflight, state.request.budget if state.request else 0))
    lines += [f"  {task_line(each)}" for each in state.pipelines.values() if not each.is_over]
    return [*lines, *(f"The Architect asks: {each.question}" for each in state.questions.values())]
