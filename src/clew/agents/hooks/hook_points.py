"""The points at which hooks of agents run: before and after a prompt, before and after a tool call, and before a skill
is loaded; and the data that a hook gets at each point.

A hook may change the data, answer in the model's place (`cached_result`), or add drafts that are written together with
those of the runner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from clew.access import Principal
from clew.context.definition import AgentDefinition
from clew.llm.messages import Message, ToolSpec
from clew.tools.hook_chain import Hook, HookChain, HookData
from clew.tools.tool import Tool
from clew.trail.model.breadcrumb import Breadcrumb, Draft

Point = Literal["pre_prompt", "post_prompt", "pre_tool", "post_tool", "pre_skill"]
POINTS: tuple[Point, ...] = ("pre_prompt", "post_prompt", "pre_tool", "post_tool", "pre_skill")


class PromptData(HookData, frozen=True, kw_only=True):
    """A prompt on its way to a model, and the response.

    Before the call it has `system`, `tools` and the new messages of this `turn`, counted from 0; after it, the
    `response` and the `text` of the answer. `budget` is the name of the budget that pays.
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

    @property
    def is_settled(self) -> bool:
        """Whether a hook has already supplied the answer, so that the model is not called."""
        return self.response is None and self.cached_result is not None

    @property
    def is_first(self) -> bool:
        """Whether this is the first prompt of its run."""
        return self.turn == 0


class ToolData(HookData, frozen=True, kw_only=True):
    """A call on its way to a tool, and its result.

    `record` is the breadcrumb that the tool was built from, None for a tool of the program. `permitted` is the user's
    answer if the user was asked. A call that `is_waiting` is not made now, because the user has to answer first. After
    the call it has the `result`, and `tags` for the response.
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

    @property
    def is_settled(self) -> bool:
        """Whether the rest of the chain is skipped, because the call waits for the user."""
        return self.is_waiting


class SkillData(HookData, frozen=True, kw_only=True):
    """A skill before the model of an agent sees it: its name, the reason for it, and its text. A hook that raises
    `Abort` refuses it; the run goes on without it."""

    agent_id: str
    session: str
    run: str
    skill: str
    why: str
    text: str


def agent_hooks(hooks: Sequence[Hook] = ()) -> HookChain:
    """Return a chain of hooks around the prompts, tools and skills of agents. Raises InvalidInput."""
    return HookChain(hooks, points=POINTS)
