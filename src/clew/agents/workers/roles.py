"""The roles of a process: which part of the work it does. Each consumer belongs to one role."""

from __future__ import annotations

from collections.abc import Iterable

from clew.errors import ConfigError

ROLES = {
    "server": "REST, MCP and the delivery of webhooks",
    "context": "builds the contexts of agents",
    "agents": "steps of agents, workflows and the team, and calls of models",
    "tools": "calls of tools",
    "knowledge": "keeps the index of files, sources and definitions fresh",
    "hygiene": "removes expired records",
}
ALL = "all"
EVERY_ROLE = frozenset(ROLES)

CONSUMERS = (
    ("context/", "context"),
    ("tools-runner", "tools"),
    ("models-runner", "agents"),
    ("agent/", "agents"),
    ("workflow/", "agents"),
    ("team/", "agents"),
)
"""The role that handles the events of a consumer, by the beginning of its name."""
RUNTIME_ROLES = frozenset(role for _, role in CONSUMERS)
"""The roles that need the runtime of agents."""


def role_of(consumer: str) -> str:
    """The role that handles the events of a consumer; `agents` for one that is not in the table."""
    return next((role for prefix, role in CONSUMERS if consumer.startswith(prefix)), "agents")


def read_roles(names: Iterable[str]) -> frozenset[str]:
    """The roles of a list of names, which may be separated by commas; all of them for `all` and for none. Raises
    ConfigError."""
    given = [part.strip() for name in names for part in name.split(",") if part.strip()]
    for name in given:
        if name != ALL and name not in ROLES:
            raise ConfigError(f"there is no role {name!r}", choices=(ALL, *ROLES))
    return EVERY_ROLE if ALL in given or not given else frozenset(given)
