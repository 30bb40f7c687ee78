"""The agents and their status, read from the trail. Any process may ask, wherever the agents run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from clew.access import Principal
from clew.agents.budgets.budget import AgentBudget, BudgetLimits
from clew.agents.folder.registry import read_agent
from clew.agents.repairs.circuit_breaker import Breaker, State
from clew.agents.repairs.health import WINDOW, is_healthy, measure
from clew.clock import Clock, ManualClock
from clew.context.definition import AgentDefinition
from clew.errors import InvalidInput, ModelError
from clew.llm.model import Models
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.event import ConsumerState
from clew.trail.model.flow import Flow
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import CONSUMER_TAG

MOST = 500
"""How many definitions are read."""
NO_FAULTS = ("validation", "permission", "budget")
"""Errors that do not count against a model."""


class AgentStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One agent. Latencies are in seconds. They, `error_rate` and `circuit` are computed from its newest model calls.
    `last_seen` is the last time when one of its workers asked for events. If that is too long ago, the agent is not
    healthy. `waiting` counts the events that it has not handled, `dead` the events that it gave up on. `left` is the
    rest of its newest budget. `problem` says why it cannot work. `mode` says whether a member of the team talks with
    the user. The `origin` of an agent that comes with Clew is `built-in`."""

    agent_id: str
    description: str = ""
    mode: str = ""
    origin: str = ""
    id: str
    version: int
    model: str = ""
    problem: str = ""
    calls: int = 0
    p50: float | None = None
    p95: float | None = None
    error_rate: float = 0.0
    circuit: State = "closed"
    last_call: datetime | None = None
    last_seen: datetime | None = None
    is_healthy: bool = False
    waiting: int = 0
    dead: int = 0
    budget: str = ""
    left: BudgetLimits | None = None


class AgentStatuses:
    """Reads the status of the agents of an owner."""

    def __init__(self, trail: Trail, flow: Flow, clock: Clock, models: Models | None = None) -> None:
        self._trail = trail
        self._flow = flow
        self._clock = clock
        self._models = models

    async def call(self, *, by: Principal, built_in: Sequence[AgentDefinition] = ()) -> list[AgentStatus]:
        """The status of all agents, sorted by name: of the newest definition of each, and of the `built_in` agents that
        have no definition on the trail yet. Raises AccessDenied."""
        page = await self._trail.records.list(Selector(schema_name=self._flow.agent), by=by, limit=MOST)
        newest: dict[str, Breadcrumb] = {}
        for record in page.items:
            newest.setdefault(str(record.context.get("agent_id") or record.title), record)
        consumers = await self._trail.deliveries.consumers(by=by)
        found = [await self._status(name, record, consumers, by) for name, record in newest.items()]
        found += [self._unused(each) for each in built_in if each.agent_id not in newest]
        return sorted(found, key=lambda each: each.agent_id)

    def _unused(self, agent: AgentDefinition) -> AgentStatus:
        """The status of an agent that is not on the trail yet."""
        return AgentStatus(
            agent_id=agent.agent_id,
            description=agent.description,
            mode=str(agent.metadata.get("mode") or ""),
            origin=str(agent.metadata.get("origin") or ""),
            id="",
            version=0,
            model=self._model(agent)[0],
        )

    async def _status(
        self, name: str, record: Breadcrumb, consumers: Sequence[ConsumerState], by: Principal
    ) -> AgentStatus:
        mine = [each for each in consumers if _is_of(each.consumer.name, name)]
        last_seen = max((each.seen_at for each in mine if each.seen_at is not None), default=None)
        budget = await self._budget(name, by)
        return AgentStatus(
            agent_id=name,
            id=record.id,
            version=record.version,
            waiting=sum(each.pending + each.claimed for each in mine),
            dead=sum(each.dead for each in mine),
            last_seen=last_seen,
            is_healthy=is_healthy(last_seen, self._clock.now()),
            budget=budget.name if budget is not None else "",
            left=budget.left(self._clock.now()) if budget is not None else None,
            **self._defined(record),
            **await self._measured(name, by),
        )

    def _defined(self, record: Breadcrumb) -> dict[str, Any]:
        """The description and the model of a definition, or its problem."""
        try:
            agent = read_agent(record)
        except InvalidInput as error:
            return {"problem": str(error)}
        model, problem = self._model(agent)
        told = {name: str(agent.metadata.get(name) or "") for name in ("mode", "origin")}
        return {"description": agent.description, "model": model, "problem": problem, **told}

    def _model(self, agent: AgentDefinition) -> tuple[str, str]:
        if self._models is None:
            return agent.model or "", ""
        try:
            return self._models.for_agent(agent.agent_id, agent.model or "")[1].full_name, ""
        except ModelError as error:
            return agent.model or "", str(error)

    async def _measured(self, name: str, by: Principal) -> dict[str, Any]:
        """The figures of the newest model calls, by the rules of the circuit breaker."""
        model_calls = ContextMatch(path="tool", value=self._flow.model_tool)
        selector = Selector(
            schema_name=self._flow.response, all_tags=(CONSUMER_TAG + name,), context_match=(model_calls,)
        )
        page = await self._trail.records.list(selector, by=by, limit=WINDOW)
        if not page.items:
            return {}
        clock = ManualClock(page.items[-1].created_at)
        breaker, calls = Breaker(clock), []
        for each in reversed(page.items):
            clock.time = each.created_at
            is_well = each.context.get("status") == "success" or each.context.get("error_type") in NO_FAULTS
            (breaker.succeeded if is_well else breaker.failed)(name)
            calls.append((_seconds(each), is_well))
        clock.time = self._clock.now()
        return {
            **msgspec.structs.asdict(measure(calls)),
            "circuit": breaker.state(name),
            "last_call": page.items[0].created_at,
        }

    async def _budget(self, name: str, by: Principal) -> AgentBudget | None:
        """The newest budget of an agent: that of its last session."""
        page = await self._trail.records.list(Selector(schema_name=self._flow.budget), by=by, limit=MOST)
        for each in page.items:
            if str(each.context.get("name", "")).startswith(f"{name}/"):
                return msgspec.convert(each.context, AgentBudget)
        return None


def _is_of(consumer: str, agent: str) -> bool:
    own = f"agent/{agent}"
    return consumer in (own, f"context/{agent}") or consumer.startswith(f"{own}/")


def _seconds(response: Breadcrumb) -> float:
    spent = response.context.get("execution_time_ms")
    return spent / 1000 if isinstance(spent, int | float) else 0.0
