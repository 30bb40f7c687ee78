"""Limits on runs that start other runs. A record of one run may trigger other agents and workflows, up to a limit of
hops and a limit of runs. It never triggers an agent or workflow that took part in the same run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from clew.access import Principal
from clew.agents.runs.requests import find_author
from clew.agents.runs.stop_records import Stop, stopped_draft
from clew.errors import ToolFailure
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.event import Event
from clew.trail.model.flow import Flow
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import (
    CONSUMER_TAG,
    HOP_TAG,
    ROOT_TAG,
    find_root,
    find_run,
    hop_tags,
    is_of_another_run,
    next_hop,
    run_tag,
)
from clew.trail.work.handlers import Handler

MAX_HOPS = 16
"""The hop limit: a run this many hops from the first one does not start."""
MAX_RUNS = 100
"""How many runs may descend from one message."""
BEGUN_TAG = "begun:"
"""Tag on the first record of a run that another run started: the root of the chain."""
ENDED_EARLY = ("stopped", "cancelled")
"""Statuses of runs that ended early: their answers trigger nothing unless they are addressed."""

_HOW = "Change what starts it, so that no answer leads back to it"


class StartVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a breadcrumb may start a run. A refusal with a `reason` is recorded; one without is silent."""

    may: bool
    reason: str = ""


YES = StartVerdict(may=True)
NO = StartVerdict(may=False)


class RunLimits:
    """Checks the limits for the agents and workflows of one owner."""

    def __init__(self, trail: Trail, flow: Flow, *, by: Principal) -> None:
        self._trail = trail
        self._flow = flow
        self._by = by

    async def check_agent(self, trigger: Breadcrumb, agent: str) -> StartVerdict:
        """Whether a breadcrumb that matches the trigger of an agent may start a run of it."""
        is_addressed = CONSUMER_TAG + agent in trigger.tags
        if is_addressed and trigger.schema_name in (self._flow.context, self._flow.response, self._flow.cancel):
            return NO
        if find_author(trigger) == agent:
            return NO
        if not is_addressed and is_early_end(trigger, self._flow):
            return NO
        return await self.judge(trigger, agent)

    async def judge(self, trigger: Breadcrumb, name: str) -> StartVerdict:
        """Whether a breadcrumb may start a run of the agent or workflow of this name."""
        if not is_of_another_run(trigger):
            return YES
        if await self._took_part(find_run(trigger) or "", name):
            return NO
        return await self.check_hops(trigger)

    async def check_hops(self, trigger: Breadcrumb) -> StartVerdict:
        """Whether a run may start within the hop limit and the limit of runs."""
        if not is_of_another_run(trigger):
            return YES
        hop = next_hop(trigger)
        if hop > MAX_HOPS:
            return NO
        if hop == MAX_HOPS:
            return StartVerdict(may=False, reason=f"the limit of {MAX_HOPS} runs that start one another is reached")
        if await self._runs_of(find_root(trigger)) >= MAX_RUNS:
            return StartVerdict(may=False, reason=f"the limit of {MAX_RUNS} runs from one message is reached")
        return YES

    async def _took_part(self, run: str, name: str) -> bool:
        """Whether an agent or workflow made a request or gave an answer in a run."""
        asked = Selector(
            schema_name=self._flow.request,
            all_tags=(run_tag(run),),
            context_match=(ContextMatch(path="requestedBy", value=name),),
        )
        answered = Selector(
            schema_name=self._flow.answer,
            all_tags=(run_tag(run),),
            context_match=(ContextMatch(path="creator.agent_id", value=name),),
        )
        for selector in (asked, answered):
            if (await self._trail.records.list(selector, by=self._by, limit=1)).items:
                return True
        return False

    async def _runs_of(self, root: str) -> int:
        selector = Selector(schema_names=(self._flow.context, self._flow.request), all_tags=(BEGUN_TAG + root,))
        return len((await self._trail.records.list(selector, by=self._by, limit=MAX_RUNS)).items)


def bounded(
    handler: Handler,
    flow: Flow,
    judge: Callable[[Breadcrumb], Awaitable[StartVerdict]],
    name_of: Callable[[Breadcrumb], str],
) -> Handler:
    """Wrap a handler so that `judge` decides whether it may start a run. A refusal with a reason is recorded under the
    name that `name_of` returns."""

    async def handle(event: Event, deps: Any) -> Sequence[Draft] | None:
        trigger = event.breadcrumb
        if trigger is None:
            return ()
        verdict = await judge(trigger)
        if verdict.may:
            return begun(list(await handler.function(event, deps) or ()), trigger)
        if not verdict.reason:
            return ()
        stop = Stop(why="no_progress", detail=f"it did not start: {verdict.reason}", how_to_go_on=_HOW)
        return [refused(stopped_draft(flow, stop, agent=name_of(trigger)), trigger, name_of(trigger))]

    return replace(handler, function=handle)


def require_hop(record: Breadcrumb) -> None:
    """Raises ToolFailure if a request is at the hop limit."""
    if next_hop(record) >= MAX_HOPS:
        raise ToolFailure(
            "permission",
            f"the limit of {MAX_HOPS} runs that start one another is reached",
            hint="Do it without another agent",
        )


def is_early_end(record: Breadcrumb, flow: Flow) -> bool:
    """Whether a breadcrumb is the answer of a run that was stopped or cancelled."""
    return record.schema_name == flow.answer and record.context.get("status") in ENDED_EARLY


def begun(drafts: list[Draft], trigger: Breadcrumb) -> list[Draft]:
    """The first drafts of a run, tagged with the run that started it."""
    tags = hop_tags(trigger)
    if not tags or not drafts:
        return drafts
    first, *others = drafts
    mark = BEGUN_TAG + find_root(trigger)
    return [_with_tags(first, (*tags, mark)), *(_with_tags(each, tags) for each in others)]


def refused(draft: Draft, trigger: Breadcrumb, name: str) -> Draft:
    """The record of a refused run. It is written once for each agent or workflow and root."""
    root = find_root(trigger)
    key = hashlib.blake2b(f"{name}\0{root}".encode(), digest_size=16).hexdigest()
    told = _with_tags(draft, (run_tag(trigger.id), f"{HOP_TAG}{MAX_HOPS}", ROOT_TAG + root, *trigger.session_tags))
    return msgspec.structs.replace(told, idempotency_key=f"hops/{key}")


def _with_tags(draft: Draft, tags: tuple[str, ...]) -> Draft:
    return msgspec.structs.replace(draft, tags=tuple(dict.fromkeys((*draft.tags, *tags))))
