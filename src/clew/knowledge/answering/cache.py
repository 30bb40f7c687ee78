"""Answers of this process by exact key: the words of the question, the audience, and the state of all sources."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

from clew.access import Principal
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.nodes.node_store import SCHEMA
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

MAX_ENTRIES = 500
_NODES = Selector(schema_name=SCHEMA)
T = TypeVar("T")


class AnswerCache(Generic[T]):
    """An LRU cache. A key holds while no file changed and no node that the caller may see was written."""

    def __init__(self, trail: Trail, code: CodeGraph) -> None:
        self._trail, self._code = trail, code
        self._answers: OrderedDict[str, T] = OrderedDict()
        self._seen: OrderedDict[str, tuple[int, int]] = OrderedDict()

    async def key(self, question: str, by: Principal, session_id: str) -> str:
        """The key of a question, asked now by a caller."""
        words = " ".join(question.casefold().split()).strip(" ?.!")
        audience = audience_of(by)
        return "\0".join((words, audience, session_id, await self._code.state(), str(await self._newest(audience, by))))

    def get(self, key: str) -> T | None:
        found = self._answers.get(key)
        if found is not None:
            self._answers.move_to_end(key)
        return found

    def put(self, key: str, answer: T) -> None:
        self._answers[key] = answer
        while len(self._answers) > MAX_ENTRIES:
            self._answers.popitem(last=False)

    def clear(self) -> None:
        self._answers.clear()

    async def _newest(self, audience: str, by: Principal) -> int:
        """A place in the log after which no node that the caller may see was written, changed or removed."""
        head = await self._trail.log.head()
        looked, newest = self._seen.pop(audience, (head, head))
        if looked < head:
            events, _ = await self._trail.log.read(looked, by=by, selector=_NODES, limit=1)
            newest = head if events else newest
        self._seen[audience] = (head, newest)
        while len(self._seen) > MAX_ENTRIES:
            self._seen.popitem(last=False)
        return newest


def audience_of(by: Principal) -> str:
    """Callers with the same owner and scopes see the same."""
    return "\n".join((by.owner_id, *sorted(by.scopes)))
