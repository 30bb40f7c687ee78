"""The tools of an agent that a file defines: the listed ones without denied ones. The consent screen and the runtime
both use this module."""

from __future__ import annotations

from clew.lazy_pattern import lazy_pattern
from clew.skills.manifest import AgentPermissions, AgentSpec
from clew.tools.permissions.rules import parse_rule, wild_matches

ALWAYS = ("ask", "get")
USUAL = ("read-file", "write-file", "edit-file", "preview-edit", "glob", "grep", "exec", "fetch")
"""The tools of an agent whose definition lists none."""
WRITING = ("write-file", "edit-file")
ACTING = (*WRITING, "exec")
"""The tools that a read-only agent may not use."""
FOREIGN = {
    "read": "read-file",
    "write": "write-file",
    "edit": "edit-file",
    "multiedit": "edit-file",
    "bash": "exec",
    "shell": "exec",
    "glob": "glob",
    "grep": "grep",
    "webfetch": "fetch",
    "ls": "glob",
    "list": "glob",
}
"""Tool names of other programs, and Clew's names for them."""
_HEAD = lazy_pattern(r"[^(]*")


def clew_tool_name(name: str) -> str:
    """Return Clew's name of a tool; an unknown name stays as it is."""
    return FOREIGN.get(name.lower(), name)


def clew_rule(text: str) -> str:
    """Replace the tool name in a rule such as `Bash(git push*)` by Clew's name."""
    return _HEAD.sub(lambda found: clew_tool_name(found[0].strip()), text, count=1)


def permissions_of(agent: AgentSpec) -> AgentPermissions:
    """Return the permission rules of an agent, with Clew's tool names."""
    given = agent.permissions
    return AgentPermissions(
        allow=tuple(map(clew_rule, given.allow)),
        ask=tuple(map(clew_rule, given.ask)),
        deny=tuple(map(clew_rule, given.deny)),
    )


def tools_of(agent: AgentSpec) -> tuple[str, ...]:
    """Return the tools of an agent, with Clew's names and without duplicates. The agent finds further tools with `ask`.

    An agent that lists none has the usual ones; an agent with an empty list has none, not even `ask` and `get`. Tools
    that a rule denies completely are left out.
    """
    if agent.tools == ():
        return ()
    named = USUAL if agent.tools is None else map(clew_tool_name, agent.tools)
    rules = [parse_rule(text, "deny") for text in permissions_of(agent).deny]
    shut = [rule.tool for rule in rules if not rule.specificity[0]]
    return tuple(
        name for name in dict.fromkeys((*ALWAYS, *named)) if not any(wild_matches(pattern, name) for pattern in shut)
    )
