"""`clew agents`: the agents of a folder, their status, and lasting permissions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from clew.cli.folder_access import open_here
from clew.cli.options import HERE, Here, Json
from clew.cli.terminal.output import is_terminal, note, one_line, print_json, print_rows, short_ids, show_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.agents.budgets.budget import BudgetLimits
    from clew.agents.conversations.agent_status import AgentStatus
    from clew.agents.folder.blocked_agents import BlockedAgent
    from clew.agents.permissions.lasting_permissions import LastingPermission


HEAD = ("agent", "kind", "model", "calls", "p50", "p95", "failed", "circuit", "waiting", "dead", "left", "about")
QUIET = ("-", "0", "0%", "closed")
"""Cells of an agent that has not worked yet."""


async def agents(
    *,
    permissions: Annotated[bool, Parameter(help="Show lasting permissions instead of the agents.")] = False,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """List the agents of this folder and their status.

    Shows the model of each agent, the results of its latest model calls, its circuit breaker, its pending and failed
    events, and the budget left in its latest session. The ten agents of the team are built in; a file of the same name
    in .clew/agents replaces one. A terminal shows only columns that say something. Agents of
    markdown files that do not run are listed below, with the reason.

        clew agents
        clew agents --permissions
        clew agents --json
    """
    # models and agents are of use here only
    from clew.agents.conversations.agent_status import AgentStatuses
    from clew.agents.conversations.conversation import open_conversations
    from clew.agents.folder.blocked_agents import find_blocked_agents
    from clew.agents.permissions.lasting_permissions import find_lasting_permissions
    from clew.llm.model import open_models
    from clew.team.members.member_definitions import built_in_members

    async with open_here(here, create=True) as app:
        await app.bootstrap()
        flow = (await open_conversations(app.trail, app.clock, by=app.me)).flow
        if permissions:
            _show_allowances(await find_lasting_permissions(app.trail, flow, by=app.me), as_json=json)
            return
        await app.mirror_agents()
        statuses = AgentStatuses(app.trail, flow, app.clock, open_models(app.config))
        found = await statuses.call(by=app.me, built_in=built_in_members(flow))
        kept_back = find_blocked_agents((await app.workspace()).definitions)
    if json:
        print_json({"items": found, "kept_back": kept_back})
    else:
        _show(found, kept_back)


def _show(found: Sequence[AgentStatus], kept_back: Sequence[BlockedAgent]) -> None:
    rows = [_row(each) for each in found]
    shown = [at for at, name in enumerate(HEAD) if not is_terminal() or _is_telling(name, [row[at] for row in rows])]
    head = [HEAD[at] for at in shown]
    spare = [head.index(name) for name in ("waiting", "dead", "p95", "p50") if name in head]
    print_rows(head, [[row[at] for at in shown] for row in rows], main=len(head) - 1, spare=spare)
    for problem in dict.fromkeys(each.problem for each in found if each.problem):
        note(f"{', '.join(each.agent_id for each in found if each.problem == problem)}: {problem}")
    for each in kept_back:
        note(f"{one_line(each.name)} does not run: {one_line(each.reason)}. {each.hint}")


def _is_telling(name: str, column: Sequence[str]) -> bool:
    """Whether a column says something of at least one agent."""
    return name in ("agent", "about") or any(cell not in QUIET for cell in column)


def _show_allowances(found: Sequence[LastingPermission], *, as_json: bool) -> None:
    """Print the lasting permissions, and how to revoke one."""
    if as_json:
        print_json({"items": found})
        return
    ids = short_ids([each.id for each in found])
    rows = [
        (id, each.answer, each.pattern.replace("\n", ", "), show_time(each.at), each.session[-8:] or "-")
        for id, each in zip(ids, found, strict=True)
    ]
    print_rows(("id", "allowed", "what", "since", "session"), rows, main=2, spare=(4,))
    note("Take one back: clew trail rm ID" if rows else "No lasting permissions.", dim=True)


def _row(each: AgentStatus) -> tuple[str, ...]:
    p50, p95 = ("-" if value is None else f"{value:.2f} s" for value in (each.p50, each.p95))
    return (
        each.agent_id,
        _kind(each),
        each.model or "-",
        f"{each.calls:,}",
        p50,
        p95,
        f"{each.error_rate:.0%}",
        each.circuit.replace("_", " "),
        f"{each.waiting:,}",
        f"{each.dead:,}",
        _left(each.left),
        each.description,
    )


def _kind(each: AgentStatus) -> str:
    """Whether an agent comes with Clew, and whether it talks with the user."""
    if not each.mode:
        return "-"
    return f"{'built in' if each.origin == 'built-in' else 'team'}, {each.mode}"


def _left(left: BudgetLimits | None) -> str:
    """The rest of the limited amounts."""
    if left is None:
        return "-"
    parts = [
        f"{value:,.4g} {kind}" if isinstance(value, float) else f"{value:,} {kind}"
        for kind in left.__struct_fields__
        if (value := getattr(left, kind)) is not None
    ]
    return ", ".join(parts) or "-"
