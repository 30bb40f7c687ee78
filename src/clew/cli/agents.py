"""`clew agents`: which agents there are, and how they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.cli.options import HERE, Here, Json, open_here
from clew.cli.output import note, print_json, print_rows

if TYPE_CHECKING:
    from clew.agents.amounts import Limits
    from clew.agents.roll import AgentStatus


async def agents(*, json: Json = False, here: Here = HERE) -> None:
    """List the agents of this folder, and how they are.

    Each with its model, how its newest model calls went, whether its circuit is open after failures, the events that
    wait for it or that it gave up on, and what is left of the budget of its newest session.

        clew agents
        clew agents --json
    """
    # models and agents are of use here only
    from clew.agents.conversation import open_conversations
    from clew.agents.roll import Roll
    from clew.llm.model import open_models

    async with open_here(here, create=True) as app:
        await app.bootstrap()
        await app.mirror_agents()
        flow = (await open_conversations(app.trail, app.clock, by=app.me)).flow
        found = await Roll(app.trail, flow, app.clock, open_models(app.config)).call(by=app.me)
    if json:
        print_json({"items": found})
        return
    head = ("agent", "model", "calls", "p50", "p95", "failed", "circuit", "waiting", "dead", "left", "about")
    print_rows(head, [_row(each) for each in found], main=10, spare=(7, 8, 4, 3))
    for problem in dict.fromkeys(each.problem for each in found if each.problem):
        note(f"{', '.join(each.agent_id for each in found if each.problem == problem)}: {problem}")


def _row(each: AgentStatus) -> tuple[str, ...]:
    p50, p95 = ("-" if value is None else f"{value:.2f} s" for value in (each.p50, each.p95))
    return (
        each.agent_id,
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


def _left(left: Limits | None) -> str:
    """What is left of what is limited."""
    if left is None:
        return "-"
    parts = [
        f"{value:,.4g} {kind}" if isinstance(value, float) else f"{value:,} {kind}"
        for kind in left.__struct_fields__
        if (value := getattr(left, kind)) is not None
    ]
    return ", ".join(parts) or "-"
