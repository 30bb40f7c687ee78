"""Decisions about tool calls: the policy of the program, narrowed by the policies of the agent and of its callers.
If no rule matches a tool, its effects decide: a tool that only reads, or runs confined, needs no permission.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import msgspec

from clew.access import Principal
from clew.agents.folder.registry import AgentRegistry
from clew.agents.runs.callers import walk_callers
from clew.agents.tools.toolbox import SPAWN, Toolbox
from clew.context.definition import AgentDefinition
from clew.tools.permissions.permission_patterns import Place, quoted
from clew.tools.permissions.policy import DEFAULT, PermissionDecision, Policy, decide, narrow, read_policy
from clew.trail.model.breadcrumb import Breadcrumb, encode_canonical

QUIET = "it only reads, or runs confined"
RESOURCES = "://resources/"
GET = "get"


class PermissionDecider:
    """Decides for the agents of one owner. `is_isolated` says whether the sandbox confines every language; otherwise
    only JavaScript runs without permission, because its runtime confines it."""

    def __init__(
        self,
        registry: AgentRegistry,
        toolbox: Toolbox,
        *,
        by: Principal,
        policy: Policy | None = None,
        place: Place | None = None,
        is_isolated: bool = True,
    ) -> None:
        self._registry = registry
        self._toolbox = toolbox
        self._by = by
        self._policy = policy if policy is not None else DEFAULT
        self._place = place
        self._is_isolated = is_isolated

    async def __call__(
        self,
        agent: AgentDefinition | None,
        tool: str,
        arguments: Mapping[str, Any],
        record: Breadcrumb | None = None,
    ) -> PermissionDecision:
        """Decide on a call of a tool: by the `record` that it was made of, else by the newest record of its name.

        Raises InvalidInput if a definition's permissions cannot be read.
        """
        found = decide(await self.policy_of(agent), tool, arguments, place=self._place)
        record = record or await self._toolbox.find_record(tool, by=self._by)
        if found.verdict == "ask" and found.rule is None and self._is_quiet(tool, arguments, record):
            return msgspec.structs.replace(found, verdict="allow", reason=QUIET, pattern="")
        return msgspec.structs.replace(found, pattern=_of_this_tool(record, found.pattern))

    async def policy_of(self, agent: AgentDefinition | None) -> Policy:
        """The policy of an agent, narrowed by those of its callers. Raises InvalidInput if the permissions of a
        definition cannot be read."""
        if agent is None:
            return self._policy
        callers = [each async for each in walk_callers(agent, self._registry.find_agent)]
        policy = self._policy
        for each in (agent, *callers):
            if each is not None and each.permissions:
                policy = narrow(policy, read_policy(each.permissions))
        return policy

    def _is_quiet(self, name: str, arguments: Mapping[str, Any], record: Breadcrumb | None) -> bool:
        """Whether a call needs no permission if no rule matches its tool."""
        built_in = self._toolbox.find_built_in(name)
        if built_in is None:
            return record is not None and self._is_confined(record)
        if name == GET:
            return _only_reads(arguments.get("routes"))
        return name == SPAWN or built_in.effects.reads_only or not built_in.searchable

    def _is_confined(self, record: Breadcrumb) -> bool:
        """Whether the code of a record runs in a sandbox without any exception."""
        is_held = self._is_isolated or record.context.get("language") != "python"
        return is_held and not _reaches(record.context.get("permissions"))


def _of_this_tool(record: Breadcrumb | None, pattern: str) -> str:
    """The pattern of a lasting permission. For a tool that is a record it includes the code and the permissions, so
    that another record of the name, or other code, needs a new permission."""
    if record is None or not pattern:
        return pattern
    code = sha256(encode_canonical(record.context, "context")).hexdigest()[:32]
    permissions = quoted(encode_canonical(record.context.get("permissions") or {}, "permissions").decode())
    return f"{pattern}; as it is now: record {record.id}, code {code}, permissions {permissions}"


def _reaches(permissions: Any) -> bool:
    """Whether code has exceptions from its sandbox: network, files, variables."""
    return not isinstance(permissions, dict) or any(permissions.values()) if permissions is not None else False


def _only_reads(routes: Any) -> bool:
    """Whether all routes lead to documents."""
    if not isinstance(routes, list):
        return False
    named = [each.get("route") if isinstance(each, dict) else getattr(each, "route", None) for each in routes]
    return all(isinstance(route, str) and RESOURCES in route for route in named)
