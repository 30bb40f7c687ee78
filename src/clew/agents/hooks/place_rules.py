"""Rules of the folder for agents that run: with the first prompt of a run, and with the first file used in a folder."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from clew.access import Principal
from clew.agents.hooks.hook_points import PromptData
from clew.agents.hooks.prompt_hooks import find_message
from clew.clock import Clock
from clew.llm.messages import Message
from clew.skills.exposure import Exposures
from clew.skills.rules.interception import Operation, RuleInterceptor
from clew.skills.rules.texts import render
from clew.skills.rules.tree import Rules
from clew.tools.hook_chain import Hook
from clew.trail.store import Trail
from clew.trust import Trust

PRIORITY = 60
"""The hook runs after those for history and skills. Each hook prepends its messages, so the rules come first in the
prompt."""


class PlaceRules:
    """The rules of one folder. A rule without the user's consent appears by name only, without its text."""

    def __init__(self, rules: Rules, exposures: Exposures, clock: Clock) -> None:
        self._rules = rules
        self._exposures = exposures
        self._clock = clock
        self._indexed: tuple[object, ...] | None = None

    def prompt_hook(self, trail: Trail, by: Principal) -> Hook:
        """A hook that puts the rules of the root, and the documents that fit the message, before a run's first prompt.

        `by` owns the agents, and reads their messages on the trail.
        """

        async def add(data: PromptData) -> PromptData:
            if not data.is_first or not data.session:
                return data
            intent = await find_message(trail, by, data) or ""
            agent = Principal(owner_id=by.owner_id, agent_id=data.agent_id, session=data.session)
            text = await self._start(intent, agent)
            rules = (Message(role="user", content=text),) if text else ()
            return msgspec.structs.replace(data, messages=(*rules, *data.messages))

        return Hook(name="rule_loading", point="pre_prompt", function=add, priority=PRIORITY)

    async def before(self, operation: Operation, path: str, *, by: Principal) -> Sequence[str]:
        """Return the rules for a path that the conversation has not received yet; nothing outside of a conversation."""
        if by.session is None:
            return ()
        giving = self._giving(by)
        texts = [*await giving.begin(), *await giving.before(operation, path)]
        return [render(texts)] if texts else ()

    async def _start(self, intent: str, by: Principal) -> str:
        await self._index_documents()
        return render(await self._giving(by).start(intent))

    async def _index_documents(self) -> None:
        """Read the rules of the tree into the search index: on the first call, and again if the rules of the root have
        changed."""
        found = tuple((each.path, each.digest, each.documents) for each in await self._rules.get_root_rules())
        if found != self._indexed:
            await self._rules.refresh()
            self._indexed = found

    def _giving(self, by: Principal) -> RuleInterceptor:
        return RuleInterceptor(self._rules, self._exposures, self._clock, by=by, trust=Trust.open())
