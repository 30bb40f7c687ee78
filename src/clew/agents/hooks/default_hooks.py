"""The default chain of every agent: thirteen hooks around prompts and tools.

Hooks that add content run early and guards run late, so a guard checks the final prompt or call. A user's hook that
changes arguments needs a priority below LATE, so that the guards check its changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from clew.access import Principal
from clew.agents.budgets.budget_tree import Budgets
from clew.agents.hooks.hook_points import Point, agent_hooks
from clew.agents.hooks.prompt_hooks import (
    ContextWindow,
    PromptSkills,
    history_injection,
    pattern_extraction,
    response_logging,
    session_context,
    skill_loading,
    token_accounting,
    token_budget_check,
)
from clew.agents.hooks.tool_hooks import (
    Decide,
    file_tracking,
    parameter_validation,
    permission_check,
    result_logging,
    session_scoping,
    state_update,
)
from clew.agents.repairs.reliability_settings import Reliability
from clew.tools.hook_chain import Hook, HookChain, HookFunction, HookPriority
from clew.trail.model.flow import Flow
from clew.trail.store import Trail


@dataclass(frozen=True, slots=True, kw_only=True)
class HookDeps:
    """The dependencies of the default hooks. Without `skills`, no skills are loaded; without a `window`, the length of
    prompts is not limited. `judges` are the hooks that see a skill before it is loaded."""

    trail: Trail
    flow: Flow
    by: Principal
    reliability: Reliability
    decide: Decide
    budgets: Budgets | None = None
    skills: PromptSkills | None = None
    judges: HookChain = field(default_factory=agent_hooks)
    window: ContextWindow | None = None


def default_hooks(deps: HookDeps) -> HookChain:
    """The chain, in the order in which a turn goes through it."""
    return agent_hooks((*_around_prompts(deps), *_around_tools(deps)))


def _around_prompts(deps: HookDeps) -> tuple[Hook, ...]:
    trail, flow, by = deps.trail, deps.flow, deps.by
    accounting = token_accounting(trail, flow, by, deps.reliability.thresholds, deps.window)
    budget = token_budget_check(by, deps.budgets, deps.window)
    return (
        _hook("session_context", "pre_prompt", HookPriority.FIRST, session_context(trail, flow, by)),
        _hook("skill_loading", "pre_prompt", HookPriority.EARLY, skill_loading(trail, by, deps.skills, deps.judges)),
        _hook("history_injection", "pre_prompt", HookPriority.NORMAL, history_injection(trail, flow, by)),
        _guard("token_budget_check", "pre_prompt", HookPriority.LAST, budget),
        _hook("response_logging", "post_prompt", HookPriority.FIRST, response_logging()),
        _hook("pattern_extraction", "post_prompt", HookPriority.NORMAL, pattern_extraction(deps.reliability.pattern)),
        _hook("token_accounting", "post_prompt", HookPriority.LAST, accounting),
    )


def _around_tools(deps: HookDeps) -> tuple[Hook, ...]:
    permission = permission_check(deps.trail, deps.flow, deps.by, deps.decide)
    return (
        _guard("permission_check", "pre_tool", HookPriority.LATE, permission),
        _guard("parameter_validation", "pre_tool", HookPriority.LATE, parameter_validation()),
        _guard("session_scoping", "pre_tool", HookPriority.LAST, session_scoping()),
        _hook("result_logging", "post_tool", HookPriority.FIRST, result_logging()),
        _hook("file_tracking", "post_tool", HookPriority.NORMAL, file_tracking()),
        _hook("state_update", "post_tool", HookPriority.LAST, state_update()),
    )


def _hook(name: str, point: Point, priority: HookPriority, function: HookFunction) -> Hook:
    return Hook(name=name, point=point, priority=priority, function=function)


def _guard(name: str, point: Point, priority: HookPriority, function: HookFunction) -> Hook:
    return Hook(name=name, point=point, priority=priority, function=function, required=True)
