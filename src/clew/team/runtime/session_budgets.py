"""Budgets of teams: the budget of a session is a root of the budget tree, and lends to the runs of each pipeline."""

from __future__ import annotations

from contextlib import suppress

from clew.access import Principal
from clew.agents.budgets.budget import AgentBudget, BudgetLimits
from clew.agents.budgets.budget_tree import Budgets
from clew.clock import Clock
from clew.errors import BudgetExceeded, NotFound
from clew.team.messages.conversation import MAIN, find_conversation

SHARES = 4
"""A run is lent this part of the rest, so that several can work at once. A run that has used its part up gets another
one."""
SMALLEST = 50_000
"""Tokens of a part. A smaller rest is not divided: all runs spend it together, so that the limit is passed by no more
than one call."""
MARGIN = 20_000
"""With fewer tokens than these a part counts as used up, since a call may take more."""
MAX_PARTS = 200
"""Parts that one run can have."""


class SessionBudgets:
    """Finds the budget that pays for the model calls of a conversation."""

    def __init__(self, budgets: Budgets, clock: Clock, *, by: Principal) -> None:
        self._budgets = budgets
        self._clock = clock
        self._by = by

    async def open(self, session: str, tokens: int) -> None:
        """Give a session a budget, or another limit. 0 means without limit."""
        if tokens:
            await self._budgets.open(root_name(session), BudgetLimits(tokens=tokens), by=self._by, session=session)

    async def spent(self, session: str) -> AgentBudget | None:
        """The budget of a session; None where it has no limit."""
        with suppress(NotFound):
            return await self._budgets.get(root_name(session), by=self._by)
        return None

    async def of_run(self, conversation: str, run: str) -> str | None:
        """The budget of a run in a conversation of a team; None where nothing limits it."""
        found = find_conversation(conversation)
        root = None if found is None else await self.spent(found.session)
        if found is None or root is None:
            return None
        return await self._part(root, _run_name(root.name, found.pipeline, run))

    async def release(self, conversation: str, run: str) -> None:
        """Give back what a run that has ended did not spend."""
        found = find_conversation(conversation)
        if found is None:
            return
        own = _run_name(root_name(found.session), found.pipeline, run)
        with suppress(NotFound):
            for number in range(1, MAX_PARTS + 1):
                await self._budgets.close(f"{own}/{number}", by=self._by)

    async def _part(self, root: AgentBudget, own: str) -> str:
        """The part that a run spends now. A part that is used up is closed, and the next one is lent."""
        for number in range(1, MAX_PARTS + 1):
            name = f"{own}/{number}"
            try:
                part = await self._budgets.get(name, by=self._by)
            except NotFound:
                return await self._lend(root.name, name)
            if part.reserved:  # a run makes one call at a time: this is the same one, before a crash
                return name
            if not part.is_closed and (part.left(self._clock.now()).tokens or 0) >= MARGIN:
                return name
            await self._budgets.close(name, by=self._by)
        return root.name

    async def _lend(self, root: str, name: str) -> str:
        """Lend a part of the rest; a small rest is spent from the root itself."""
        share = ((await self._budgets.remaining(root, by=self._by)).tokens or 0) // SHARES
        if share < SMALLEST:
            return root
        try:
            await self._budgets.lend(root, name, BudgetLimits(tokens=share), by=self._by)
        except BudgetExceeded:  # another run was faster
            return root
        return name


def root_name(session: str) -> str:
    """The name of the budget of a session."""
    return f"team/{session}"


def _run_name(root: str, pipeline: str, run: str) -> str:
    return f"{root}/{pipeline or MAIN}/{run}"
