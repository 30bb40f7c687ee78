"""Paths that a policy denies to tools that find files themselves: searches and commands."""

from __future__ import annotations

import os

from clew.errors import ToolFailure
from clew.tools.permissions.policy import DEFAULT, Policy, narrow
from clew.tools.permissions.rules import Facet, PermissionRule, wild_matches
from clew.tools.search.gitignore import NEVER_READ, TOOLS_OWN

MOST = 1_000
"""The limit for paths that the sandbox hides from one command."""


class Denials:
    """The paths that a policy denies to these tools, without the default rules, which the working folder and the
    sandbox enforce."""

    def __init__(self, policy: Policy, *tools: str) -> None:
        self._policy = policy
        self._tools = tools
        self._rules = tuple(dict.fromkeys(_rules(policy, tools)))

    def beside(self, policy: Policy | None) -> Denials:
        """Return these denials together with the denials of another policy."""
        return self if policy is None else Denials(narrow(self._policy, policy), *self._tools)

    def __call__(self, path: str) -> bool:
        """Whether a path from the working folder is denied."""
        return any(rule.matches(Facet(tool=tool, path=path)) for rule in self._rules for tool in self._tools)

    def existing(self, root: str) -> tuple[str, ...]:
        """Return the denied paths below a folder as whole paths, a denied folder instead of its files.

        Folders that tools fill are skipped. Raises ToolFailure if there are too many to mask.
        """
        if not self._rules:
            return ()
        found: list[str] = []
        for place, folders, names in os.walk(root):
            kept = [name for name in folders if name not in NEVER_READ and name not in TOOLS_OWN]
            inner = {name: os.path.relpath(os.path.join(place, name), root) for name in (*kept, *names)}
            denied = [
                name for name in inner if self(inner[name]) or (name in kept and self._is_denied_whole(inner[name]))
            ]
            found += [os.path.join(place, name) for name in denied]
            folders[:] = [name for name in kept if name not in denied]
            if len(found) > MOST:
                hint = "Ask the user to deny their folders instead"
                raise ToolFailure(
                    "permission", f"rules deny more than {MOST:,} files, too many for the sandbox to hide", hint=hint
                )
        return tuple(found)

    def _is_denied_whole(self, folder: str) -> bool:
        """Whether everything in a folder is denied."""
        inside = [Facet(tool=tool, path=f"{folder}/{name}") for tool in self._tools for name in ("x", "x/y")]
        whole = [rule for rule in self._rules if rule.path is not None and rule.path.endswith("/**")]
        return any(all(rule.matches(each) for each in inside if wild_matches(rule.tool, each.tool)) for rule in whole)


def _rules(policy: Policy, tools: tuple[str, ...]) -> list[PermissionRule]:
    own = [
        rule
        for rule in policy.rules
        if rule.verdict == "deny" and rule.path is not None and rule.command is None and rule.domain is None
    ]
    above = [rule for each in policy.above for rule in _rules(each, tools)]
    named = [rule for rule in own if any(wild_matches(rule.tool, tool) for tool in tools)]
    return [*(rule for rule in named if rule not in DEFAULT.rules), *above]
