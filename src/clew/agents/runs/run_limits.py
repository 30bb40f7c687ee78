"""What may begin a run. All that a run writes can begin further ones, of other agents and workflows: but not without
end, and never one of an agent or workflow that took part in the run it came from.
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
"""How many runs may begin one another; the run that would be this far from the first does not begin."""
MAX_RUNS = 100
"""How many runs may come of one, over however many hops."""
BEGUN_TAG = "begun:"
"""On the first record of a run that came of another: the run that began it all."""
ENDED_EARLY = ("stopped", "cancelled")
"""Answers that are none: nobody who was not asked takes them up."""

_HOW = "Change what starts it, so that no answer leads back to it"


class StartVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a breadcrumb begins a run. One that does not for a `reason` is told of; others are passed over."""

    may: bool
    reason: str = ""


YES = StartVerdict(may=True)
NO = StartVerdict(may=False)


class Beginnings:
    """Decides for the agents and workflows of an owner."""

    def __init__(self, trail: Trail, flow: Flow, *, by: Principal) -> None:
        self._trail = trail
        self._flow = flow
        self._by = by

    async def judge_agent(self, trigger: Breadcrumb, agent: str) -> StartVerdict:
        """Whether an agent takes a breadcrumb up that meets its trigger."""
        is_addressed = CONSUMER_TAG + agent in trigger.tags
        if is_addressed and trigger.schema_name in (self._flow.context, self._flow.response, self._flow.cancel):
            return NO
        if find_author(trigger) == agent:
            return NO
        if not is_addressed and is_early_end(trigger, self._flow):
            return NO
        return await self.judge(trigger, agent)

    async def judge(self, trigger: Breadcrumb, name: str) -> StartVerdict:
        """Whether a breadcrumb begins a run of whoever asks for tools under a name."""
        if not is_of_another_run(trigger):
            return YES
        if await self._took_part(find_run(trigger) or "", name):
            return NO
        return await self.judge_hops(trigger)

    async def judge_hops(self, trigger: Breadcrumb) -> StartVerdict:
        """Whether a breadcrumb begins a run of whomever: not where too many lie before it, or came of the same one."""
        if not is_of_another_run(trigger):
            return YES
        hop = next_hop(trigger)
        if hop > MAX_HOPS:
            return NO
        if hop == MAX_HOPS:
            return StartVerdict(may=False, reason=f"{MAX_HOPS} runs have begun one another, and it would be the next")
        if await self._runs_of(find_root(trigger)) >= MAX_RUNS:
            return StartVerdict(may=False, reason=f"{MAX_RUNS} runs have come of one, and it would be the next")
        return YES

    async def _took_part(self, run: str, name: str) -> bool:
        """Whether an agent or workflow asked for something, or answered, in a run."""
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
    """A handler that begins runs, for what may begin one. A run that does not begin for a reason is told of, under the
    name of whose it would have been."""

    async def handle(event: Event, deps: Any) -> Sequence[Draft] | None:
        trigger = event.breadcrumb
        if trigger is None:
            return ()
        verdict = await judge(trigger)
        if verdict.may:
            return begun(list(await handler.function(event, deps) or ()), trigger)
        if not verdict.reason:
            return ()
        stop = Stop(why="no_progress", detail=f"it did not begin: {verdict.reason}", how_to_go_on=_HOW)
        return [refused(stopped_draft(flow, stop, agent=name_of(trigger)), trigger, name_of(trigger))]

    return replace(handler, function=handle)


def require_hop(record: Breadcrumb) -> None:
    """Raises ToolFailure where a request may not begin another run."""
    if next_hop(record) >= MAX_HOPS:
        raise ToolFailure("permission", f"{MAX_HOPS} runs have begun one another", hint="Do it without another agent")


def is_early_end(record: Breadcrumb, flow: Flow) -> bool:
    """Whether a breadcrumb is the answer of a run that was stopped or cancelled."""
    return record.schema_name == flow.answer and record.context.get("status") in ENDED_EARLY


def begun(drafts: list[Draft], trigger: Breadcrumb) -> list[Draft]:
    """What a run that a breadcrumb begins writes first, with where it comes from."""
    tags = hop_tags(trigger)
    if not tags or not drafts:
        return drafts
    first, *others = drafts
    mark = BEGUN_TAG + find_root(trigger)
    return [_with_tags(first, (*tags, mark)), *(_with_tags(each, tags) for each in others)]


def refused(draft: Draft, trigger: Breadcrumb, name: str) -> Draft:
    """What says that a run does not begin: once for all that came of one run, and the last of it."""
    root = find_root(trigger)
    key = hashlib.blake2b(f"{name}\0{root}".encode(), digest_size=16).hexdigest()
    told = _with_tags(draft, (run_tag(trigger.id), f"{HOP_TAG}{MAX_HOPS}", ROOT_TAG + root, *trigger.session_tags))
    return msgspec.structs.replace(told, idempotency_key=f"hops/{key}")


def _with_tags(draft: Draft, tags: tuple[str, ...]) -> Draft:
    return msgspec.structs.replace(draft, tags=tuple(dict.fromkeys((*draft.tags, *tags))))
