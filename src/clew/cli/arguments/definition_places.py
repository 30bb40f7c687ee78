"""The definitions that a path names: a project, a part of one, a team of its own, or one file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from clew.config import FOLDER, Config
from clew.errors import InvalidInput

if TYPE_CHECKING:
    from clew.catalog.skills.wishes import DefinitionRoot
    from clew.skills.checks.problems import Problem
    from clew.skills.definitions.manifest_builder import BuildResult

_TEAM = ("agents", "skills", "toolsets", "tools")


class DefinitionPart(msgspec.Struct, frozen=True, kw_only=True):
    """A root of definitions, and the selected part of it: a path below the root, empty for the whole root."""

    source: DefinitionRoot
    below: str = ""

    def read(self) -> BuildResult:
        """Build the manifest of the whole root, with only the problems of this part. A file has the same problems
        whether it is named by itself or as part of a folder."""
        built = self.source.read()
        return msgspec.structs.replace(built, problems=self.narrow(built.problems))

    def narrow(self, problems: Iterable[Problem]) -> tuple[Problem, ...]:
        """The problems in this part."""
        return tuple(each for each in problems if self._has(each.path))

    def has_definitions(self, built: BuildResult) -> bool:
        """Whether the part has any definitions, including broken ones."""
        manifest = built.manifest
        records = (manifest.agents, manifest.skills, manifest.toolsets, manifest.tools)
        paths = (each.path for kind in records for each in kind.values())
        return bool(built.problems) or any(map(self._has, paths))

    def _has(self, path: str) -> bool:
        return not self.below or path == self.below or path.startswith(f"{self.below}/")


def find_parts(place: Path, config: Config) -> list[DefinitionPart]:
    """The ways to read a path, in order of preference: as a part of the project or team that contains it, then by
    itself. The caller uses the first with definitions. Raises InvalidInput if the path does not exist."""
    from clew.catalog.skills.wishes import definers_at, find_definition_root  # the catalog takes long to load

    if not os.path.lexists(place):
        raise InvalidInput("PLACE", f"there is no folder {str(place)[:200]}")
    path = Path(os.path.abspath(place))
    own = find_definition_root(config)
    parts = [
        DefinitionPart(source=definers_at(each), below=_below(path, each)) for each in _homes(path) if each != own.root
    ]
    if path.is_relative_to(own.root) and (own.is_repository or path.is_relative_to(own.root / FOLDER)):
        mine = DefinitionPart(source=own, below=_below(path, own.root))
        parts = [mine, *parts] if not parts or mine.below.startswith(FOLDER) else [*parts, mine]
    folder = path if path.is_dir() else path.parent
    return [*parts, DefinitionPart(source=definers_at(folder), below=_below(path, folder))]


def _homes(path: Path) -> Iterable[Path]:
    """The folders that a path may be a part of, nearest first: the parents of a `.clew` or `.claude` on the path, and
    team folders with `agents`, `skills` and so on."""
    if path.is_dir() and not path.name.startswith(".") and _is_home(path):
        yield path
    for below in (path, *path.parents[:-1]):
        above = below.parent
        is_part = below.name in _TEAM and not above.name.startswith(".") and _is_home(above)
        if is_part or (below.name.startswith(".") and below.is_dir() and (above / FOLDER).is_dir()):
            yield above


def _is_home(folder: Path) -> bool:
    return (folder / FOLDER).is_dir() or any((folder / name).is_dir() for name in _TEAM if name != "skills")


def _below(path: Path, root: Path) -> str:
    below = path.relative_to(root).as_posix()
    return "" if below == "." else below
