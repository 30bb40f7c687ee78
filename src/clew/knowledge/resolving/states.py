"""The state of what is known, as a word that changes whenever code, history or literature are known otherwise: an
answer that was given in another state is worked out anew."""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol

from clew.access import Principal
from clew.trail.nodes import SCHEMA
from clew.trail.selector import Selector
from clew.trail.store import Trail

REMEMBERED = 500
"""So many audiences; one that is forgotten only has to ask again."""
_NODES = Selector(schema_name=SCHEMA)


class CodeState(Protocol):
    """What is needed of the graph of code."""

    async def state(self) -> str:
        """Another word once files are known otherwise. Looks at them first, unless that was done just now."""
        ...


class States:
    """Tells the state as far as each audience can see it, at the price of one look at the head of the log."""

    def __init__(self, trail: Trail, code: CodeState | None = None) -> None:
        self._trail = trail
        self._code = code
        self._seen: OrderedDict[str, tuple[int, int]] = OrderedDict()

    async def read(self, by: Principal) -> str:
        """What is written after this is another state."""
        code = await self._code.state() if self._code is not None else ""
        return f"{code}:{await self._newest(by)}"

    async def _newest(self, by: Principal) -> int:
        """A place in the log after which no node that the caller may see was written, changed or removed."""
        audience, head = audience_of(by), await self._trail.log.head()
        looked, newest = self._seen.pop(audience, (0, 0)) if audience in self._seen else (head, head)
        if looked < head:
            events, _ = await self._trail.log.read(looked, by=by, selector=_NODES, limit=1)
            newest = head if events else newest
        self._seen[audience] = (head, newest)
        while len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        return newest


def audience_of(by: Principal) -> str:
    """Who may see the same: what one may see, another may not."""
    return "\n".join((by.owner_id, *sorted(by.scopes)))
