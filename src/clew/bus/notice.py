"""The notices of the bus, and the subjects that they are sent under."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from clew.lazy_pattern import lazy_pattern
from clew.trail.model.breadcrumb import Breadcrumb

RECORDS, AGENTS = "bc.*.updated", "agents.*.events"
"""The subjects of all records and of all agents."""
_UNSAFE = lazy_pattern(r"[^A-Za-z0-9_-]")


class Notice(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A committed change of one record: enough to see whether it may concern a waiting consumer, and never its content.
    `agents` are the agents whose subscriptions match the record."""

    id: str
    owner_id: str
    schema_name: str | None = None
    tags: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()

    @property
    def subjects(self) -> list[str]:
        """`bc.{id}.updated`, and `agents.{agent_id}.events` for each agent."""
        return [f"bc.{as_token(self.id)}.updated", *(f"agents.{as_token(each)}.events" for each in self.agents)]


Hear = Callable[[Notice | None], object]
"""A listener. It is called with a notice of another process, or with None if notices may have been lost."""


class Bus(Protocol):
    """Carries notices between processes, at most once and in no order. It connects in the background; writing never
    fails because of it and never waits for it. While a connection is lost, notices are dropped."""

    @property
    def is_shared(self) -> bool:
        """Whether other processes are connected to this bus."""
        ...

    def publish(self, notices: Sequence[Notice]) -> None:
        """Queue notices to be sent soon. This process does not receive them."""
        ...

    def listen(self, hear: Hear) -> None:
        """Have `hear` called with every notice of another process, on the event loop that opened the bus."""
        ...

    async def check(self) -> None:
        """Return when the first attempt to connect has ended, whether it succeeded or not. Raises ConfigError if
        the server refuses this client."""
        ...

    async def close(self) -> None:
        """Send the pending notices, as far as that is possible at once, and close the bus."""
        ...


def notice_of(record: Breadcrumb, agents: Sequence[str] = ()) -> Notice:
    return Notice(
        id=record.id,
        owner_id=record.owner_id,
        schema_name=record.schema_name,
        tags=tuple(record.tags),
        agents=tuple(agents),
    )


def as_token(text: str) -> str:
    """A text as one token of a subject: dots, spaces and wildcards become `=` and their hexadecimal code."""
    return _UNSAFE.sub(lambda found: "".join(f"={byte:02X}" for byte in found[0].encode()), text) or "="
