"""Runs agents, tools and workflows in the same way: find the subscription that matches an event, gather its context,
execute, and return the outputs. The executor keeps no state between two events.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from clew.context.definition import Subscription
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.event import Event, RetryPolicy
from clew.trail.work.claims import is_meant
from clew.trail.work.correlation import RUN_TAG, inherited_tags
from clew.trail.work.handlers import Handler

Gathered = Mapping[str, Sequence[Breadcrumb]]
"""The records of each subscription by its key. `trigger` is always there."""

Execute = Callable[[Breadcrumb, Gathered, Event], Awaitable[Sequence[Draft]]]
"""The function of a runner that handles a trigger."""

OnGone = Callable[[Event], Awaitable[Sequence[Draft]]]
"""The function of a runner for a trigger that was deleted before it was handled."""

Gather = Callable[[Sequence[Subscription], Breadcrumb], Awaitable[Gathered]]
"""Reads subscriptions of the role `context`, each by its own method."""

TRIGGER = "trigger"


class UniversalExecutor:
    """Handles the events of one agent, tool or workflow. Outputs inherit the session and the run of their trigger."""

    def __init__(
        self,
        subscriptions: Sequence[Subscription],
        execute: Execute,
        gather: Gather | None = None,
        on_gone: OnGone | None = None,
    ) -> None:
        self._subscriptions = tuple(sorted(subscriptions, key=lambda each: each.role != "trigger"))
        self._execute = execute
        self._gather = gather
        self._on_gone = on_gone

    async def __call__(self, event: Event, deps: Any = None) -> Sequence[Draft]:
        trigger = event.breadcrumb
        met = self.find_subscription(event)
        if met is None or met.role != "trigger":
            return ()
        if trigger is None:
            return await self._on_gone(event) if self._on_gone is not None else ()
        gathered = {TRIGGER: (trigger,), **({met.key: (trigger,)} if met.key else {}), **await self._context(trigger)}
        outputs = await self._execute(trigger, gathered, event)
        return [inherit(draft, trigger) for draft in outputs]

    def find_subscription(self, event: Event) -> Subscription | None:
        """The first subscription that matches an event; triggers come first."""
        return next((each for each in self._subscriptions if is_meant(each.selector, event)), None)

    async def _context(self, trigger: Breadcrumb) -> Gathered:
        wanted = [each for each in self._subscriptions if each.role == "context"]
        return await self._gather(wanted, trigger) if wanted and self._gather is not None else {}

    def handlers(
        self,
        name: str,
        *,
        after: int | None = None,
        ordered: bool = True,
        retry: RetryPolicy | None = None,
        agent_id: str | None = None,
    ) -> list[Handler]:
        """A durable handler for each trigger. The first one is named `name`, the others `name/1`, `name/2` and so
        on."""
        triggers = [each for each in self._subscriptions if each.role == "trigger"]
        return [
            Handler(
                name=name if at == 0 else f"{name}/{at}",
                selector=trigger.selector,
                function=self,
                retry=retry or RetryPolicy(),
                after=after,
                ordered=ordered,
                agent_id=agent_id,
                takes_gone=self._on_gone is not None,
            )
            for at, trigger in enumerate(triggers)
        ]


def inherit(draft: Draft, trigger: Breadcrumb) -> Draft:
    """The draft with the session, the run and the scopes of its trigger, unless the draft names its own. An output
    without scopes of its own is therefore visible only to callers who may see its trigger. A bare run tag means that
    the draft starts a new run."""
    own = {tag.partition(":")[0] for tag in draft.tags}
    missing = [tag for tag in inherited_tags(trigger) if tag.partition(":")[0] not in own]
    tags = tuple(tag for tag in (*draft.tags, *missing) if tag != RUN_TAG)
    scopes = draft.scopes or trigger.scopes
    is_same = tags == tuple(draft.tags) and scopes == draft.scopes
    return draft if is_same else msgspec.structs.replace(draft, tags=tags, scopes=scopes)
