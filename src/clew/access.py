"""The principal that accompanies every call, and the table of roles and verbs."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from clew.errors import AccessDenied, InvalidInput
from clew.lazy_pattern import lazy_pattern

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
    )
)
"""Schemas of the catalog and of rules. Clew writes these records itself and relies on them."""

RUN_SCHEMAS = frozenset(("system.flow.v1", "system.reliability.v1", "tool.fix.v1", "runtime.worker.v1"))
"""Schemas that decide how runs work, beyond those that the flow names."""

TEAM_SCHEMAS = frozenset(("team.message.v1", "team.timer.v1", "team.status.v1", "team.lock.v1"))
"""Schemas of the team. Only Clew writes them. Interfaces and agents' tools send messages through the Guide instead."""

HEARTBEAT_CONSUMERS = ("worker/", "model-host/")
"""Prefixes of heartbeat consumers, by which processes report that they are alive. They read no events, so they are
never behind."""

OWN_CONSUMERS = ("agent/", "context/", "workflow/", "team/", "models-runner", "tools-runner", *HEARTBEAT_CONSUMERS)
"""Prefixes of Clew's own consumers: those that run agents, without which runs never end, and the heartbeat consumers of
its processes."""

_TEAM_CONVERSATION = lazy_pattern(r"session:[^.]+\..+\.[^.]+", re.DOTALL)
_NAME = lazy_pattern(r"[^\s\x00-\x1f\x7f]{1,200}")


class GuardedSchemas(msgspec.Struct, frozen=True, kw_only=True):
    """Schema names of an owner's flow with restricted write access. Records of `own` schemas control what runs do with
    the owner's permissions. With records of `steering` schemas, people allow and cancel."""

    own: frozenset[str]
    steering: frozenset[str]


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Owner, agent, roles, scopes and session of a caller. It cannot see records of other owners, or records that need
    a scope it lacks."""

    owner_id: str
    agent_id: str = ""
    roles: frozenset[str] = ROLES
    scopes: frozenset[str] = frozenset()
    session: str | None = None
    steers: bool = True
    """Whether the principal may steer agents. The tools of agents may not, whatever their roles."""

    def may(self, verb: str) -> bool:
        return not VERBS[verb].isdisjoint(self.roles)

    def require(self, verb: str) -> None:
        """Raise AccessDenied unless one of the roles allows the verb."""
        if VERBS[verb].isdisjoint(self.roles):
            raise AccessDenied(verb, sorted(VERBS[verb]))

    def require_schema(self, name: str | None, flow: GuardedSchemas) -> None:
        """Raise AccessDenied for a schema that only Clew and curators write. The tool of an agent may not steer, even
        as a curator: it would answer its own permission questions."""
        is_steering = name in flow.steering or name in TEAM_SCHEMAS
        if is_steering and not self.steers:
            raise AccessDenied(f"write {name} as the tool of an agent", ["a person"])
        is_guarded = is_steering or name in OWN_SCHEMAS or name in RUN_SCHEMAS or name in flow.own
        if is_guarded and not self.may("administer"):
            raise AccessDenied(f"write {name}, which is Clew's own", sorted(VERBS["administer"]))

    def require_tags(self, tags: Iterable[str]) -> None:
        """Raise AccessDenied for the tag of a conversation of the team, as `session:ID.main.architect`: a message in
        it starts a member with the tools of that session."""
        is_team = any(_TEAM_CONVERSATION.fullmatch(each) for each in tags)
        if is_team and not self.may("administer"):
            raise AccessDenied("write to a conversation of the team", sorted(VERBS["administer"]))

    @property
    def may_write_all(self) -> bool:
        """Whether no schema is guarded from this caller."""
        return self.steers and self.may("administer")

    def require_id_choice(self) -> None:
        """Raise AccessDenied unless the caller may choose the id of a record. The choice is restricted because Clew
        finds some of its own records by id."""
        if not self.may("administer"):
            raise AccessDenied("choose the id of a breadcrumb", sorted(VERBS["administer"]))

    def require_consumer(self, name: str) -> None:
        """Raise AccessDenied for one of Clew's own consumers, unless the caller is a curator. Clew itself runs as a
        curator."""
        if name.startswith(OWN_CONSUMERS) and not self.may("administer"):
            raise AccessDenied(f"change {name}, which is Clew's own", sorted(VERBS["administer"]))

    def require_scopes(self, scopes: Iterable[str]) -> None:
        """Raise AccessDenied if a record would get a scope that the caller does not hold, because the record would be
        hidden from its writer. Curators may do this, because they manage the access of others."""
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
