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
"""A run borrows one part in this many of the remaining budget, so that several runs can work at once. A run that has
used up its part gets another one."""
SMALLEST = 50_000
"""The minimum tokens of a part. If parts would be smaller, all runs spend the rest directly, so that the limit is
exceeded by at most one call."""
MARGIN = 20_000
"""A part with fewer tokens than this is treated as used up, because a single call may need more."""
MAX_PARTS = 200
"""Parts that one run can have."""


class SessionBudgets:
    """Finds the budget that pays for the model calls of a conversation."""

    def __init__(self, budgets: Budgets, clock: Clock, *, by: Principal) -> None:
        self._budgets = budgets
        self._clock = clock
        self._by = by

    async def open(self, session: str, tokens: int) -> None:
        """Open the budget of a session, or change its limit. 0 means no limit and opens nothing."""
        if tokens:
            await self._budgets.open(root_name(session), BudgetLimits(tokens=tokens), by=self._by, session=session)

    async def spent(self, session: str) -> AgentBudget | None:
        """The budget of a session; None if the session has no limit."""
        with suppress(NotFound):
            return await self._budgets.get(root_name(session), by=self._by)
        return None

    async def of_run(self, conversation: str, run: str) -> str | None:
        """The budget of a run in a conversation of a team; None if the run has no limit."""
        found = find_conversation(conversation)
        root = None if found is None else await self.spent(found.session)
        if found is None or root is None:
            return None
        return await self._part(root, _run_name(root.name, found.pipeline, run))

    async def release(self, conversation: str, run: str) -> None:
        """Return the unspent budget of a run that has ended."""
        found = find_conversation(conversation)
        if found is None:
            return
        own = _run_name(root_name(found.session), found.pipeline, run)
        with suppress(NotFound):
            for number in range(1, MAX_PARTS + 1):
                await self._budgets.close(f"{own}/{number}", by=self._by)

    async def _part(self, root: AgentBudget, own: str) -> str:
        """The budget part that a run currently spends. If it is used up, close it and lend the next one."""
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
        """Lend a part of the rest and return its name. If the rest is small, return the root instead."""
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
