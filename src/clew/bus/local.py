"""The bus within one process, for trails that are opened more than once in it and for configurations without a
server."""

from __future__ import annotations

from collections.abc import Sequence

from clew.bus.notice import Hear, Notice


class LocalBus:
    """See `clew.bus.notice.Bus`. Every listener receives every notice at once."""

    is_shared = False

    def __init__(self) -> None:
        self._listeners: list[Hear] = []

    def publish(self, notices: Sequence[Notice]) -> None:
        for notice in notices:
            for hear in self._listeners:
                hear(notice)

    def listen(self, hear: Hear) -> None:
        self._listeners.append(hear)

    async def check(self) -> None:
        """Do nothing, because there is no connection."""

    async def close(self) -> None:
        self._listeners.clear()
