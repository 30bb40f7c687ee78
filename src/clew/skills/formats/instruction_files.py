"""Files of a tree that instruct agents: rules, skills, agents and commands. They have doors of their own, where consent
is asked for, and are no documents like others."""

from __future__ import annotations

import os

from clew.skills.files.tree_walk import SKILL_FILES
from clew.skills.formats.digests import PARTS
from clew.skills.formats.file_kinds import PLUGIN_MARK, place_of


class Telling:
    """The definitions below a root, which is a real path, by their paths from it. It looks for folders of skills and
    plugins and remembers those: for one look at a tree."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._seen: dict[str, bool] = {}

    def tells(self, path: str) -> bool:
        """Whether a file is a definition, or lies in the folder of a skill."""
        parts = path.split("/")
        return self.is_file(path) or any(self.is_skill("/".join(parts[:at])) for at in range(1, len(parts)))

    def is_file(self, path: str) -> bool:
        """Whether agents take this file for a definition, by its place and name."""
        folder, _, name = path.rpartition("/")
        return place_of(folder, name, self._plugins_above(folder)) is not None

    def is_skill(self, folder: str) -> bool:
        """Whether a folder below the root is that of a skill, or a part of a root that is one itself."""
        return self._holds_skill(folder) or (folder in PARTS and self._holds_skill(""))

    def _holds_skill(self, folder: str) -> bool:
        if folder not in self._seen:
            place = os.path.join(self._root, folder)
            self._seen[folder] = any(os.path.lexists(os.path.join(place, name)) for name in SKILL_FILES)
        return self._seen[folder]

    def _plugins_above(self, folder: str) -> list[str]:
        """Those of the folders on the way that are plugins."""
        parts = folder.split("/") if folder else []
        ways = ("/".join(parts[:at]) for at, part in enumerate(parts) if part in ("agents", "commands"))
        return [way for way in ways if os.path.isdir(os.path.join(self._root, way, PLUGIN_MARK))]
