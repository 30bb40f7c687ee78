"""The rules of a place, given to an agent with the first file that it uses there, once a conversation."""

from __future__ import annotations

from collections.abc import Sequence

from clew.access import Principal
from clew.clock import Clock
from clew.skills.exposure import Exposures
from clew.skills.rules.interception import Operation, RuleInterceptor
from clew.skills.rules.texts import render
from clew.skills.rules.tree import Rules
from clew.trust import Trust


class PlaceRules:
    """What file tools put before their answers. Rules that the user has not agreed to are named, without their text."""

    def __init__(self, rules: Rules, exposures: Exposures, clock: Clock) -> None:
        self._rules = rules
        self._exposures = exposures
        self._clock = clock

    async def before(self, operation: Operation, path: str, *, by: Principal) -> Sequence[str]:
        """Nothing where there is no conversation to remember it for."""
        if by.session is None:
            return ()
        giving = RuleInterceptor(self._rules, self._exposures, self._clock, by=by, trust=Trust.open())
        texts = [*await giving.begin(), *await giving.before(operation, path)]
        return [render(texts)] if texts else ()
