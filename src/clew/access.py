"""Who is asking: the principal that accompanies every call, and the one table of who may do what."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

import msgspec

from clew.errors import AccessDenied, InvalidInput

VERBS: dict[str, frozenset[str]] = {
    "create": frozenset({"curator", "emitter"}),
    "read": frozenset({"curator", "subscriber"}),
    "subscribe": frozenset({"curator", "subscriber"}),
    "update": frozenset({"curator"}),
    "delete": frozenset({"curator"}),
    "administer": frozenset({"curator"}),
}
"""Verb → roles that may do it. A curator may do everything within its owner."""

ROLES = frozenset({"curator", "emitter", "subscriber"})

OWN_SCHEMAS = frozenset(
    (
        "tool.v1",
        "domain.v1",
        "resource.v1",
        "document.v1",
        "source.v1",
        "exposure.v1",
        "mcp.server.v1",
        "mcp.tool.v1",
        "mcp.resource.v1",
        "mcp.prompt.v1",
        "rule.v1",
        "rule.reference.v1",
        "skill.v1",
        "skill.reference.v1",
        "skill.shelf.v1",
    )
)
"""Schemas of records that Clew itself writes and believes: what is known, what can be done, who was shown what."""

STEERING_SCHEMAS = frozenset(("permission.request.v1", "permission.answer.v1", "run.cancel.v1"))
"""Schemas of records by which people steer agents. The doors write them once they know who asks, so that neither an
agent's tool nor another writer of the same owner can put a question or an answer there."""

RUN_SCHEMAS = frozenset(
    (
        *(
            "agent.def.v1",
            "tool.code.v1",
            "tool.config.v1",
            "workflow.def.v1",
            "system.flow.v1",
            "system.reliability.v1",
        ),
        *(
            "agent.context.v1",
            "context.request.v1",
            "tool.request.v1",
            "tool.response.v1",
            "tool.error.v1",
            "tool.fix.v1",
        ),
        *("agent.response.v1", "agent.delta.v1", "agent.stopped.v1", "context.checkpoint.v1", "tool.started.v1"),
        *("toolset.snapshot.v1", "usage.v1", "budget.v1", "workflow.result.v1", "runtime.host.v1"),
    )
)
"""Schemas of what runs, and of what runs believe: whoever writes them decides what is done with the owner's rights."""

OWN_CONSUMERS = ("agent/", "context/", "workflow/", "models-runner", "tools-runner")
"""How the names of the consumers begin by which Clew runs agents: without them runs never end."""

_NAME = re.compile(r"[^\s\x00-\x1f\x7f]{1,200}")


_GUARDED = OWN_SCHEMAS | STEERING_SCHEMAS | RUN_SCHEMAS


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Owner, agent, roles, scopes and session of a caller. Records of other owners do not exist for it, nor
    do records that need a scope it lacks."""

    owner_id: str
    agent_id: str = ""
    roles: frozenset[str] = ROLES
    scopes: frozenset[str] = frozenset()
    session: str | None = None
    steers: bool = True
    """Whether it may steer agents. Their own tools may not, whatever their roles."""

    def may(self, verb: str) -> bool:
        return not VERBS[verb].isdisjoint(self.roles)

    def require(self, verb: str) -> None:
        """Raise AccessDenied unless one of the roles allows the verb."""
        if VERBS[verb].isdisjoint(self.roles):
            raise AccessDenied(verb, sorted(VERBS[verb]))

    def require_schema(self, name: str | None, further: Collection[str] = ()) -> None:
        """Raise AccessDenied for a record that only looks like one of Clew's own; `further` are names of such schemas
        too. A curator may write them."""
        if name in STEERING_SCHEMAS and not self.steers:
            raise AccessDenied(f"write {name} as the tool of an agent", ["a person"])
        if (name in _GUARDED or name in further) and not self.may("administer"):
            raise AccessDenied(f"write {name}, which is Clew's own", sorted(VERBS["administer"]))

    def require_id_choice(self) -> None:
        """Raise AccessDenied unless the caller may choose the id of a record: by some ids Clew finds its own."""
        if not self.may("administer"):
            raise AccessDenied("choose the id of a breadcrumb", sorted(VERBS["administer"]))

    def require_consumer(self, name: str) -> None:
        """Raise AccessDenied for a consumer of Clew's own, unless the caller is a curator, as which Clew runs."""
        if name.startswith(OWN_CONSUMERS) and not self.may("administer"):
            raise AccessDenied(f"change {name}, which is Clew's own", sorted(VERBS["administer"]))

    def require_scopes(self, scopes: Iterable[str]) -> None:
        """Raise AccessDenied for a scope to be put on a record that the caller does not hold: the record would be
        hidden from its own writer. A curator may, since it orders what others see."""
        lacking = sorted(set(scopes) - self.scopes)
        if lacking and not self.may("administer"):
            raise AccessDenied(f"put scopes on a breadcrumb that it does not hold: {', '.join(lacking)}", ["curator"])


def check_principal(principal: Principal) -> Principal:
    """Refuse names that are empty, over 200 characters or contain spaces, and roles that do not exist."""
    named = {"owner_id": principal.owner_id, **({"agent_id": principal.agent_id} if principal.agent_id else {})}
    for field, value in named.items():
        if not _NAME.fullmatch(value):
            raise InvalidInput(field, "must be 1 to 200 characters without spaces")
    for role in principal.roles - ROLES:
        raise InvalidInput("roles", f"{role!r} is not a role", hint=f"Roles are {', '.join(sorted(ROLES))}")
    for scope in principal.scopes:
        if not _NAME.fullmatch(scope):
            raise InvalidInput("scopes", "each must be 1 to 200 characters without spaces")
    return principal
