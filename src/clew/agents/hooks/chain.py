"""Hooks: functions that see a prompt or a call before and after it is made, and a skill before it is loaded, in one
order.

Data goes in and comes out. A hook may change it, answer in the model's place (`cached_result`), add drafts that are
written together with what the runner writes, or end it all by raising `Abort`.

A hook that fails otherwise is logged, noted in `failures` and passed over. One that is `required` guards: where it
fails nothing is done, so what it would have stopped does not slip through.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, Literal, TypeVar

import msgspec

from clew.access import Principal
from clew.context.definition import AgentDefinition
from clew.errors import Abort as Abort
from clew.errors import ClewError, InvalidInput
from clew.llm.messages import Message, ToolSpec
from clew.tools.tool import Tool
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.work.claims import describe

Point = Literal["pre_prompt", "post_prompt", "pre_tool", "post_tool", "pre_skill"]
POINTS: tuple[Point, ...] = ("pre_prompt", "post_prompt", "pre_tool", "post_tool", "pre_skill")

_log = logging.getLogger(__name__)


class HookPriority(IntEnum):
    """When a hook's turn is. Any number between the first and the last will do."""

    FIRST = 0
    EARLY = 25
    NORMAL = 50
    LATE = 75
    LAST = 100


class PromptData(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt on its way to a model, and what came back.

    Before: `system`, `tools` and the messages that are new at this `turn`, counted from 0. After: the `response`, and
    the `text` of the answer. `budget` names what the call is taken from. `trace` are the hooks that have run, in order.
    """

    agent_id: str
    session: str = ""
    run: str = ""
    turn: int = 0
    system: str = ""
    messages: tuple[Message, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    budget: str | None = None
    cached_result: str | None = None
    response: Breadcrumb | None = None
    text: str = ""
    drafts: tuple[Draft, ...] = ()
    trace: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing left to prepare: the model is not asked."""
        return self.response is None and self.cached_result is not None

    @property
    def is_first(self) -> bool:
        """Whether this is the first prompt of its run."""
        return self.turn == 0


class ToolData(msgspec.Struct, frozen=True, kw_only=True):
    """A call on its way to a tool, and what came back.

    `record` is what the tool was made of, as it will be run, where it does not come with the program. `permitted` is
    what the user answered where they were asked. A call that `is_waiting` is not made now: its user has
    to answer first. After: the `result`, and `tags` that the response gets.
    """

    tool: Tool
    arguments: Mapping[str, Any]
    request: Breadcrumb
    by: Principal
    agent: AgentDefinition | None = None
    record: Breadcrumb | None = None
    permitted: str | None = None
    is_waiting: bool = False
    result: Any = None
    seconds: float = 0.0
    tags: tuple[str, ...] = ()
    drafts: tuple[Draft, ...] = ()
    trace: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()

    @property
    def is_settled(self) -> bool:
        """Whether the call is not made now."""
        return self.is_waiting


class SkillData(msgspec.Struct, frozen=True, kw_only=True):
    """A skill that is about to be put before the model of an agent: its name, what brought it, and its text. A hook
    that raises `Abort` refuses it; the run goes on without it."""

    agent_id: str
    session: str
    run: str
    skill: str
    why: str
    text: str
    trace: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()

    @property
    def is_settled(self) -> bool:
        return False


Data = TypeVar("Data", PromptData, ToolData, SkillData)
HookFunction = Callable[[Any], Awaitable[Any]]
"""Takes PromptData, ToolData or SkillData, as its point has it, and returns it, changed or not."""


class Hook(msgspec.Struct, frozen=True, kw_only=True):
    """One function at one point. Two hooks of a chain cannot share a name at the same point."""

    name: str
    point: Point
    function: HookFunction
    priority: int = HookPriority.NORMAL
    required: bool = False

    def __post_init__(self) -> None:
        if self.point not in POINTS:
            raise InvalidInput("point", f"{self.point!r} is not one", hint=f"Points are {', '.join(POINTS)}")
        if not HookPriority.FIRST <= self.priority <= HookPriority.LAST:
            raise InvalidInput("priority", f"of {self.name} must be between 0 and 100")


class AgentHookChain:
    """Hooks in their order: by priority, and among equals as they were added. A chain never changes."""

    def __init__(self, hooks: Sequence[Hook] = ()) -> None:
        self._hooks = tuple(sorted(hooks, key=lambda each: each.priority))
        seen: set[tuple[Point, str]] = set()
        for hook in self._hooks:
            if (hook.point, hook.name) in seen:
                raise InvalidInput("hooks", f"two are named {hook.name!r} at {hook.point}", hint="Rename one")
            seen.add((hook.point, hook.name))

    @property
    def hooks(self) -> tuple[Hook, ...]:
        return self._hooks

    def add(self, *hooks: Hook) -> AgentHookChain:
        """A chain with these as well. Raises InvalidInput for a name that is taken."""
        return AgentHookChain((*self._hooks, *hooks))

    def without(self, name: str) -> AgentHookChain:
        """A chain in which no hook has this name."""
        return AgentHookChain([each for each in self._hooks if each.name != name])

    async def run(self, point: Point, data: Data) -> Data:
        """The data once all hooks of a point had it, or until one settled it.

        Raises Abort, and the error of a required hook.
        """
        for hook in self._hooks:
            if hook.point != point:
                continue
            data = await _apply(hook, data)
            if data.is_settled:
                break
        return data


async def _apply(hook: Hook, data: Data) -> Data:
    """The data after one hook, which is noted in it."""
    try:
        changed = await hook.function(data)
        if type(changed) is not type(data):
            raise TypeError(f"it returned {type(changed).__name__}, not {type(data).__name__}")
    except Abort:
        raise
    except Exception as error:  # a hook may be anybody's code
        return _passed_over(hook, data, error)
    return msgspec.structs.replace(changed, trace=(*data.trace, hook.name))


def _passed_over(hook: Hook, data: Data, error: Exception) -> Data:
    """Raises what a required hook raised: as it is where Clew raised it on purpose, else as Abort."""
    if hook.required and isinstance(error, ClewError):
        raise error
    _log.warning("the hook %s failed at %s", hook.name, hook.point, exc_info=error)
    reason = f"{hook.name}: {describe(error)}"
    if hook.required:
        raise Abort(f"the hook {reason}", hint="Nothing was done; see the log, or take the hook out") from error
    return msgspec.structs.replace(data, failures=(*data.failures, reason))
