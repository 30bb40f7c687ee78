"""Builds a runtime from an open trail, models, tools and a policy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from clew.access import Principal
from clew.agents.budgets.budget import read_limits
from clew.agents.budgets.budget_tree import Budgets
from clew.agents.folder.registry import AgentRegistry
from clew.agents.hooks.default_hooks import HookDeps, default_hooks
from clew.agents.hooks.hook_points import agent_hooks
from clew.agents.hooks.prompt_hooks import ContextWindow, PromptSkills
from clew.agents.permissions.decisions import PermissionDecider
from clew.agents.repairs.guard import Guard
from clew.agents.repairs.policy import RepairPolicy
from clew.agents.repairs.reliability_settings import Reliability, read_reliability
from clew.agents.repairs.repair_tools import ToolRepairs, repair_tools
from clew.agents.runs.agent_runner import AgentDeps
from clew.agents.runs.call_limits import CallLimits
from clew.agents.runs.called_agents import spawn_tool
from clew.agents.runs.callers import find_caller
from clew.agents.runs.cancellation import RunCancellation
from clew.agents.runs.compaction import OpenItems, RunCompaction
from clew.agents.runs.executor import Gathered
from clew.agents.runs.model_calls import ModelCalls
from clew.agents.runs.model_hosts import ModelHosts
from clew.agents.runs.run_limits import RunLimits, bounded
from clew.agents.runs.run_records import RunRecords
from clew.agents.runs.tools_runner import ToolDeps
from clew.agents.runtime import ContextHandlers, Flush, NeedsModel, Runtime, RuntimeParts
from clew.agents.tools.note_tools import note_tools
from clew.agents.tools.toolbox import FromRecord, Toolbox
from clew.agents.workers.placement import places_of
from clew.agents.workers.roles import EVERY_ROLE
from clew.clock import Clock
from clew.context.builder import ContextBuilder
from clew.context.definition import AgentDefinition, Subscription
from clew.context.edges import edge_handler
from clew.context.handlers import context_handler, request_handler
from clew.context.sources import fetch
from clew.errors import ModelError
from clew.llm.messages import ToolSpec
from clew.llm.model import Models
from clew.tools.hook_chain import Hook, HookChain
from clew.tools.permissions.permission_patterns import Place
from clew.tools.permissions.policy import Policy
from clew.tools.tool import Tool, ToolContext
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.event import Event
from clew.trail.model.flow import Flow, read_flow
from clew.trail.store import Trail
from clew.trail.work.correlation import CONSUMER_TAG, find_root, find_run
from clew.trail.work.handlers import Completion, Handler, HandlerFunction

BudgetLookup = Callable[[str, str], Awaitable[str | None]]
"""Finds the budget that a layer above agents opened for this session and run; None if there is none."""


async def build_runtime(
    trail: Trail,
    clock: Clock,
    models: Models,
    *,
    by: Principal,
    from_record: FromRecord,
    tools: Iterable[Tool] = (),
    policy: Policy | None = None,
    place: Place | None = None,
    hooks: Sequence[Hook] = (),
    skills: PromptSkills | None = None,
    is_isolated: bool = True,
    limits: CallLimits | None = None,
    additions: RuntimeAdditions | None = None,
    roles: frozenset[str] = EVERY_ROLE,
    worker_tags: Sequence[str] = (),
) -> Runtime:
    """Build a runtime on a bootstrapped trail, for the owner of `by`.

    `tools` come with the program; `from_record` builds a tool from a breadcrumb. `policy` limits all agents, in
    addition to their definitions. `place` resolves a path. `hooks` are added to the default ones. `skills` finds the
    skills of a run. `is_isolated` says whether the sandbox confines code of every language. `limits` bound the number
    of concurrent calls. `additions` come from a layer above agents. `roles` are the parts of the work that this process
    does. `worker_tags` name the abilities and places that only this process offers.
    """
    more = additions or RuntimeAdditions()
    flow = await read_flow(trail, by=by)
    deps = RuntimeDeps(
        trail=trail,
        flow=flow,
        clock=clock,
        models=models,
        by=by,
        reliability=await read_reliability(trail, by=by),
        registry=AgentRegistry(trail, flow, by=by),
        budgets=Budgets(trail, flow, clock),
        toolbox=Toolbox(trail, flow, from_record, tools),
        runs=RunRecords(trail, flow, clock, by=by),
        find_budget=more.find_budget,
        open_items=more.open_items,
        unlinked=more.unlinked,
        limits=limits or CallLimits(),
    )
    deps.toolbox.add(_own_tools(deps))
    decider = PermissionDecider(deps.registry, deps.toolbox, by=by, policy=policy, place=place, is_isolated=is_isolated)
    parts = _parts(deps, decider, _hooks(deps, decider, skills, hooks))
    parts = replace(parts, tools=replace(parts.tools, places=places_of(tuple(worker_tags))))
    always = (*parts.always, *more.handlers)
    return Runtime(
        replace(
            parts,
            always=always,
            needs_model=more.needs_model,
            complete=more.complete,
            flush=more.flush,
            retired=more.retired,
            roles=roles,
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeAdditions:
    """Parts of a runtime that a layer above agents adds. `find_budget` looks up budgets. `open_items` returns the open
    items that a compaction must keep. `needs_model` selects the steps that wait for a process with a model. `complete`
    adds records to the outputs of a step, and `flush` writes deferred records. `retired` are the names of obsolete
    consumers. `unlinked` are requesters whose calls contexts leave out."""

    handlers: Sequence[Handler] = ()
    find_budget: BudgetLookup | None = None
    open_items: OpenItems | None = None
    needs_model: NeedsModel | None = None
    complete: Completion | None = None
    flush: Flush | None = None
    retired: Sequence[str] = ()
    unlinked: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeDeps:
    """The objects that the parts of a runtime share."""

    trail: Trail
    flow: Flow
    clock: Clock
    models: Models
    by: Principal
    reliability: Reliability
    registry: AgentRegistry
    budgets: Budgets
    toolbox: Toolbox
    runs: RunRecords
    limits: CallLimits
    find_budget: BudgetLookup | None = None
    open_items: OpenItems | None = None
    unlinked: Sequence[str] = ()

    @property
    def accounts(self) -> CallBudgets:
        return CallBudgets(self.budgets, self.registry, self.by, self.find_budget)


def _own_tools(deps: RuntimeDeps) -> tuple[Tool, ...]:
    """The tools that work on the trail itself."""
    trail, flow, find_agent = deps.trail, deps.flow, deps.registry.find_agent
    budget_of = deps.accounts.of_context
    return (
        *note_tools(trail, deps.reliability.notes),
        *repair_tools(ToolRepairs(trail, flow, deps.reliability.repairs)),
        spawn_tool(flow, deps.clock, deps.budgets, find_agent, budget_of, deps.toolbox),
    )


def _hooks(
    deps: RuntimeDeps, decider: PermissionDecider, skills: PromptSkills | None, hooks: Sequence[Hook]
) -> HookChain:
    chain = default_hooks(
        HookDeps(
            trail=deps.trail,
            flow=deps.flow,
            by=deps.by,
            reliability=deps.reliability,
            decide=decider,
            budgets=deps.budgets,
            skills=skills,
            judges=agent_hooks([each for each in hooks if each.point == "pre_skill"]),
            window=_window(deps.models, deps.registry),
        )
    )
    return chain.add(*hooks)


def _parts(deps: RuntimeDeps, decider: PermissionDecider, chain: HookChain) -> RuntimeParts:
    trail, flow, by = deps.trail, deps.flow, deps.by
    cancelling, guard = RunCancellation(trail, flow, by=by), Guard(deps.clock)
    builder = ContextBuilder(trail, deps.models, flow, deps.clock)
    return RuntimeParts(
        trail=trail,
        flow=flow,
        clock=deps.clock,
        by=by,
        registry=deps.registry,
        cancelling=cancelling,
        guard=guard,
        hosts=ModelHosts(trail, flow, deps.clock, by=by, has_model=deps.models.has_any()),
        agents=_agent_deps(deps, chain),
        tools=_tool_deps(deps, decider, chain, cancelling, guard),
        contexts=_contexts(deps, builder),
        always=(_requested_contexts(deps, builder),),
        unhurried=(edge_handler(trail, flow, by=by, unlinked=deps.unlinked),),
    )


def _agent_deps(deps: RuntimeDeps, chain: HookChain) -> AgentDeps:
    trail, by = deps.trail, deps.by

    async def specs(agent: AgentDefinition) -> tuple[ToolSpec, ...]:
        return await deps.toolbox.specs(agent, by=by)

    async def gathered(wanted: Sequence[Subscription], trigger: Breadcrumb) -> Gathered:
        return {each.key: await fetch(trail, each, trigger, by=by) for each in wanted}

    return AgentDeps(
        trail=trail,
        flow=deps.flow,
        clock=deps.clock,
        by=by,
        specs=specs,
        hooks=chain,
        budget_of=deps.accounts.of_agent,
        runs=deps.runs,
        gather=gathered,
        compaction=RunCompaction(
            trail=trail,
            flow=deps.flow,
            by=by,
            table=deps.reliability.thresholds,
            window=_window(deps.models, deps.registry),
            open_items=deps.open_items,
        ),
    )


def _tool_deps(
    deps: RuntimeDeps, decider: PermissionDecider, chain: HookChain, cancelling: RunCancellation, guard: Guard
) -> ToolDeps:
    trail, flow, clock, by = deps.trail, deps.flow, deps.clock, deps.by
    return ToolDeps(
        trail=trail,
        flow=flow,
        clock=clock,
        by=by,
        toolbox=deps.toolbox,
        models=ModelCalls(
            trail=trail,
            flow=flow,
            clock=clock,
            models=deps.models,
            budgets=deps.budgets,
            runs=deps.runs,
            by=by,
        ),
        hooks=chain,
        cancelling=cancelling,
        guard=guard,
        find_agent=deps.registry.find_agent,
        budget_of=deps.accounts.of_agent,
        policy_of=decider.policy_of,
        desk=RepairPolicy(trail, flow, deps.reliability.repairs, by=by),
        limits=deps.limits,
    )


def _contexts(deps: RuntimeDeps, builder: ContextBuilder) -> ContextHandlers:
    def contexts(agent: AgentDefinition) -> Sequence[Handler]:
        handler = context_handler(builder, deps.trail, deps.flow, agent, by=deps.by)
        return () if handler is None else (replace(handler, function=_where_a_model_is(deps.models, agent, handler)),)

    return contexts


class CallBudgets:
    """Finds the budget that pays for a call: the budget that the calling agent lent, else the budget that `find_budget`
    returns for the session, else the agent's own budget in this session."""

    def __init__(
        self, budgets: Budgets, registry: AgentRegistry, by: Principal, find_budget: BudgetLookup | None = None
    ) -> None:
        self._budgets = budgets
        self._registry = registry
        self._by = by
        self._find_budget = find_budget

    async def of_agent(self, agent: AgentDefinition, record: Breadcrumb) -> str | None:
        """Return the name of the agent's budget, which is opened if necessary; None if the agent has no limit."""
        run = find_run(record) or record.id
        return await self._of(agent, record.session or find_root(record), run)

    async def of_context(self, agent_id: str, context: ToolContext) -> str | None:
        agent = await self._registry.find_agent(agent_id)
        session = context.by.session or context.root or context.run
        return None if agent is None else await self._of(agent, session, context.run)

    async def _of(self, agent: AgentDefinition, session: str, run: str) -> str | None:
        if (caller := find_caller(agent.metadata)) is not None:
            return caller.budget
        if self._find_budget is not None and (found := await self._find_budget(session, run)) is not None:
            return found
        if not agent.budget:
            return None
        name = f"{agent.agent_id}/{session}"
        await self._budgets.open(name, read_limits(agent.budget), by=self._by, session=session)
        return name


def _requested_contexts(deps: RuntimeDeps, builder: ContextBuilder) -> Handler:
    """The handler that builds requested contexts. A requested context may also start a run."""
    run_limits = RunLimits(deps.trail, deps.flow, by=deps.by)
    handler = request_handler(builder, deps.trail, deps.flow, by=deps.by)
    return bounded(handler, deps.flow, run_limits.check_hops, lambda request: str(request.context.get("consumer_id")))


def _where_a_model_is(models: Models, agent: AgentDefinition, handler: Handler) -> HandlerFunction:
    """The handler for an agent that has a model. An agent without a model still handles messages addressed to it, to
    say that it has none; it skips other triggers."""

    async def handle(event: Event, deps: Any) -> Sequence[Draft] | None:
        if not any(tag.startswith(CONSUMER_TAG) for tag in event.tags):
            try:
                models.for_agent(agent.agent_id, agent.model or "")
            except ModelError:
                return ()
        return await handler.function(event, deps)

    return handle


def _window(models: Models, registry: AgentRegistry) -> ContextWindow:
    """A function that returns the context window, in tokens, of an agent's model."""

    async def window(agent: str) -> int:
        found = await registry.find_agent(agent)
        _, info = models.for_agent(agent, (found.model if found else None) or "")
        return info.context_tokens

    return window
