"""Files that instruct agents: rules, skills, agents and commands. They need consent, so Clew does not index them as
documents."""

from __future__ import annotations

import os

from clew.skills.files.tree_walk import SKILL_FILES
from clew.skills.formats.digests import PARTS
from clew.skills.formats.file_kinds import PLUGIN_MARK, place_of


class InstructionFiles:
    """Recognises instruction files below a real path. It caches folders of skills and plugins: use an instance for one
    pass over a tree only."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._seen: dict[str, bool] = {}

    def is_file(self, path: str) -> bool:
        """Whether the path and name of a file make it a definition."""
        folder, _, name = path.rpartition("/")
        return place_of(folder, name, self._plugins_above(folder)) is not None

    def is_skill(self, folder: str) -> bool:
        """Whether a folder below the root is a skill, or belongs to a root that is itself a skill."""
        return self._holds_skill(folder) or (folder in PARTS and self._holds_skill(""))

    def _holds_skill(self, folder: str) -> bool:
        if folder not in self._seen:
            place = os.path.join(self._root, folder)
            self._seen[folder] = any(os.path.lexists(os.path.join(place, name)) for name in SKILL_FILES)
        return self._seen[folder]

    def _plugins_above(self, folder: str) -> list[str]:
        """Return the plugin folders above."""
        parts = folder.split("/") if folder else []
        ways = ("/".join(parts[:at]) for at, part in enumerate(parts) if part in ("agents", "commands"))
        return [way for way in ways if os.path.isdir(os.path.join(self._root, way, PLUGIN_MARK))]
