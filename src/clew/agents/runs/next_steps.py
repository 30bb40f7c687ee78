"""The step of an agent together with the response that it follows from: the answer of a model leads to requests for
tools or to the answer of the agent, the result of a tool to the next request, all in one transaction. So most steps of
a run need no event, claim and commit of their own.

A response that an agent takes in this way says so, and the handler of the agent passes it by. That takes every other
one: results of several calls at once, a run that is being cancelled, and responses of processes without the agent.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import msgspec

from clew.access import Principal
from clew.agents.runs.agent_runner import TAKEN, AgentDeps, AgentRunner
from clew.agents.runs.executor import inherit
from clew.clock import Clock
from clew.context.definition import AgentDefinition
from clew.errors import ClewError
from clew.trail.model.breadcrumb import NEVER, Breadcrumb, Draft
from clew.trail.work.correlation import CONSUMER_TAG

_log = logging.getLogger(__name__)

FindOwn = Callable[[str], AgentDefinition | None]
"""The agent of a name whose steps this process does."""


class NextSteps:
    """Adds the next steps of agents to the outputs of handlers."""

    def __init__(self, deps: AgentDeps, find_own: FindOwn) -> None:
        self._deps = deps
        self._find_own = find_own

    async def complete(self, outputs: Sequence[Draft]) -> Sequence[Draft]:
        """The outputs with what follows from them."""
        return [more for each in outputs for more in await self._with_next(each)]

    async def _with_next(self, draft: Draft) -> Sequence[Draft]:
        agent = self._addressed(draft)
        if agent is None:
            return (draft,)
        id = draft.id or self._deps.clock.new_id()
        taken = msgspec.structs.replace(draft, id=id, context={**draft.context, TAKEN: True})
        trigger = as_written(taken, id, self._deps.clock, self._deps.by)
        try:
            further = await AgentRunner(agent, self._deps).follow(trigger)
        except ClewError as error:
            _log.info("%s takes its step later: %s", agent.agent_id, error)
            further = None
        if further is None:
            return (draft,)
        return (taken, *(inherit(each, trigger) for each in further))

    def _addressed(self, draft: Draft) -> AgentDefinition | None:
        """The agent here that a response of a call that ended by itself is addressed to."""
        is_ended = draft.schema_name == self._deps.flow.response and draft.context.get("status") in ("success", "error")
        if not is_ended or draft.idempotency_key is not None:
            return None
        names = [tag.removeprefix(CONSUMER_TAG) for tag in draft.tags if tag.startswith(CONSUMER_TAG)]
        return self._find_own(names[0]) if len(names) == 1 else None


def as_written(draft: Draft, id: str, clock: Clock, by: Principal) -> Breadcrumb:
    """The record that a draft is about to become, as far as the step of an agent reads it."""
    now = clock.now()
    return Breadcrumb(
        id=id,
        owner_id=by.owner_id,
        title=draft.title,
        context=draft.context,
        tags=tuple(draft.tags),
        schema_name=draft.schema_name,
        version=1,
        scopes=tuple(draft.scopes),
        llm_hints=draft.llm_hints,
        ttl=draft.ttl or NEVER,
        entities=draft.entities,
        entity_keywords=(),
        checksum="",
        created_at=now,
        updated_at=now,
        created_by=by.agent_id,
        updated_by=by.agent_id,
    )
