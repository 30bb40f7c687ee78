"""The kind of a definition file, by its path and name."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

import msgspec

from clew.skills.files.tree_walk import RULE_FILES, SKILL_FILES

Kind = Literal["skill", "agent", "command", "rule"]

PLUGIN_MARK = ".claude-plugin"
"""The folder that marks its parent as a plugin of Claude Code, so that `agents` and `commands` in it are
definitions."""

_PLACES: dict[tuple[str, str], tuple[Kind, str]] = {
    (".claude", "agents"): ("agent", "claude"),
    (".claude", "commands"): ("command", "claude"),
    (".codex", "agents"): ("agent", "codex"),
    (".codex", "prompts"): ("command", "codex"),
    (".opencode", "agent"): ("agent", "opencode"),
    (".opencode", "agents"): ("agent", "opencode"),
    (".opencode", "mode"): ("agent", "opencode"),
    (".opencode", "modes"): ("agent", "opencode"),
    (".opencode", "command"): ("command", "opencode"),
    (".opencode", "commands"): ("command", "opencode"),
}
_PLUGIN_PLACES: dict[str, tuple[Kind, str]] = {"agents": ("agent", "claude"), "commands": ("command", "claude")}
_GENERIC = frozenset(
    {"skill", "skills", "agent", "agents", "command", "commands", "prompts", "mode", "modes", "plugins"}
)


class DefinitionPlace(msgspec.Struct, frozen=True):
    """A kind of definition, and the program whose format it has."""

    kind: Kind
    origin: str


_SKILL = DefinitionPlace("skill", "agentskills")
_CODEX_AGENT = DefinitionPlace("agent", "codex")


def place_of(folder: str, name: str, plugins: Collection[str] = ()) -> DefinitionPlace | None:
    """Return the kind of the file `name` in a folder, or None if it is not a definition. `plugins` are plugin
    folders."""
    if name in SKILL_FILES:
        return _SKILL
    if name in RULE_FILES:
        return DefinitionPlace("rule", name)
    if not name.endswith((".md", ".toml")) or name.lower() == "readme.md":
        return None
    found = _definition_place(folder, plugins)
    is_toml = name.endswith(".toml")
    return None if is_toml and found != _CODEX_AGENT else found


def qualifiers(folder: str) -> list[str]:
    """Return words that distinguish definitions of one name: the folders above with a specific name, nearest first."""
    parts = [part.strip(".") for part in reversed(folder.split("/"))]
    return [part for part in parts if part and part not in _GENERIC]


def _definition_place(folder: str, plugins: Collection[str]) -> DefinitionPlace | None:
    parts = folder.split("/")
    for at in range(len(parts) - 1, 0, -1):
        if (found := _PLACES.get((parts[at - 1], parts[at]))) is not None:
            return DefinitionPlace(*found)
    for at, part in enumerate(parts):
        if part in _PLUGIN_PLACES and "/".join(parts[:at]) in plugins:
            return DefinitionPlace(*_PLUGIN_PLACES[part])
    return None
