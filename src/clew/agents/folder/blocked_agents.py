"""Agents of a folder's markdown that do not run: they wait for the user's consent, or their files are broken."""

from __future__ import annotations

from pathlib import PurePosixPath

import msgspec

from clew.catalog.skills.definitions import FolderDefinitions
from clew.catalog.skills.wishes import AGENT
from clew.trust import Trust

FOLDER = "agents"
"""Agents are in folders of this name."""


class BlockedAgent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that does not run, with the reason and a hint."""

    name: str
    reason: str
    hint: str


def find_blocked_agents(definitions: FolderDefinitions | None, trust: Trust | None = None) -> list[BlockedAgent]:
    """All blocked agents by name, as of the last time the files were read."""
    if definitions is None:
        return []
    agreed = {each.name for each in (trust or Trust.open()).grants(definitions.source.root) if each.kind == AGENT}
    found = {each.name: each for each in _broken(definitions)}
    for name in definitions.manifest.agents:
        if definitions.is_waiting(name):
            reason = "it has changed since you agreed to it" if name in agreed else "you have not agreed to it yet"
            found[name] = BlockedAgent(name=name, reason=reason, hint="Look at it and agree: `clew trust`")
    return [found[name] for name in sorted(found)]


def _broken(definitions: FolderDefinitions) -> list[BlockedAgent]:
    return [
        BlockedAgent(
            name=PurePosixPath(each.path).stem,
            reason=f"{each.path}{f':{each.line}' if each.line else ''}: {each.message}",
            hint="`clew skills lint` shows the details",
        )
        for each in reversed(definitions.problems)
        if each.severity == "error" and FOLDER in PurePosixPath(each.path).parts[:-1]
    ]
