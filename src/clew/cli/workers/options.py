"""The options of `clew up` that say what its processes do."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from clew.agents.workers.roles import EVERY_ROLE, RUNTIME_ROLES
from clew.errors import ConfigError

MAX_WORKERS = 256
MAX_DRAIN = 86_400.0


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Roles and tags of a process, how many processes there are, and how long they may drain. An `attached` process
    ends with its standard input. `is_heard` is True if a port was requested."""

    roles: frozenset[str] = EVERY_ROLE
    tags: tuple[str, ...] = ()
    workers: int = 1
    drain: float = 10.0
    attached: bool = False
    is_heard: bool = False

    @property
    def listens(self) -> bool:
        return "server" in self.roles or self.is_heard

    def __post_init__(self) -> None:
        if not 1 <= self.workers <= MAX_WORKERS:
            raise ConfigError(f"--workers must be from 1 to {MAX_WORKERS}, not {self.workers}")
        if not 0.0 <= self.drain <= MAX_DRAIN:
            raise ConfigError(f"--drain must be from 0 to {MAX_DRAIN:,.0f} seconds, not {self.drain:g}")
        if self.workers > 1 and not self.roles & RUNTIME_ROLES:
            roles = ", ".join(sorted(RUNTIME_ROLES))
            raise ConfigError(f"--workers {self.workers} needs a role that several processes share: {roles}")


def read_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """The tags of a worker. Raises ConfigError for one that is not NAME:VALUE."""
    for tag in tags:
        name, colon, value = tag.partition(":")
        if not (name and colon and value) or not tag.isprintable() or " " in tag:
            raise ConfigError(f"--tag {tag!r} is not NAME:VALUE, such as place:shop")
    return tuple(dict.fromkeys(tags))
