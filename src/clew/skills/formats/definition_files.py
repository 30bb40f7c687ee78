"""Finds the definition files of a tree. Each real file counts once."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from clew.skills.checks.problems import Problem
from clew.skills.files.tree_walk import HOMES, SKILL_FILES, TreeWalk, is_plain, show
from clew.skills.formats.digests import PARTS
from clew.skills.formats.file_kinds import PLUGIN_MARK, Kind, place_of

_ORDER = (*HOMES, ".github", "skills", "plugins")


class DefinitionFile(msgspec.Struct, frozen=True):
    """One definition file: the path on which it was reached, and its real path."""

    kind: Kind
    origin: str
    folder: str
    name: str
    real: str

    @property
    def path(self) -> str:
        return f"{self.folder}/{self.name}" if self.folder else self.name

    @property
    def above(self) -> str:
        """The folders that distinguish it from others of the same name. A skill's own folder only repeats its name."""
        return self.folder.rpartition("/")[0] if self.kind == "skill" else self.folder

    def rank(self) -> tuple[object, ...]:
        """The sort key: real files before links, known folders before others, skills before commands, then by depth."""
        home = self.folder.split("/", 1)[0]
        known = _ORDER.index(home) if home in _ORDER else len(_ORDER)
        return self.path != self.real, known, self.kind == "command", self.folder.count("/"), self.path


def find_definitions(walk: TreeWalk, problems: list[Problem]) -> tuple[list[DefinitionFile], list[DefinitionFile]]:
    """Return the skills, agents and commands of a tree, and its rule files. A linked rule file counts in each
    folder."""
    everything = sorted(_candidates(walk, problems), key=DefinitionFile.rank)
    links = {each.path for each in walk.links}
    definitions: dict[tuple[Kind, str], DefinitionFile] = {}
    rules: list[DefinitionFile] = []
    seen: set[str] = set()
    for each in everything:
        if each.kind != "rule":
            definitions.setdefault((each.kind, each.real), each)
        elif each.path in links or each.real not in seen:
            rules.append(each)
            seen.add(each.real)
    return list(definitions.values()), rules


def _candidates(walk: TreeWalk, problems: list[Problem]) -> Iterator[DefinitionFile]:
    plugins = {folder.path for folder in walk.folders.values() if PLUGIN_MARK in folder.folders}
    skills = {folder.path for folder in walk.folders.values() if not folder.files.keys().isdisjoint(SKILL_FILES)}
    for folder in walk.folders.values():
        for name in (*folder.files, *folder.odd):
            place = place_of(folder.path, name, plugins)
            if place is None or (name == "skill.md" and "SKILL.md" in folder.files):
                continue
            if place.kind != "rule" and _belongs_to_skill(folder.path, place.kind, skills):
                continue
            found = DefinitionFile(place.kind, place.origin, folder.path, name, folder.files.get(name, ""))
            if (problem := _problem_of(found)) is None:
                yield found
            else:
                problems.append(problem)


def _problem_of(found: DefinitionFile) -> Problem | None:
    if not found.real:
        return Problem(kind="parse", path=show(found.path), message="is not a regular file: Clew does not read it")
    if not is_plain(found.path):
        message = "has a name with control characters or invalid bytes: Clew does not read it"
        return Problem(kind="parse", path=show(found.path), message=message, hint="Rename it")
    return None


def _belongs_to_skill(path: str, kind: Kind, skills: set[str]) -> bool:
    """Whether a file is a template or an example inside a skill."""
    parts = path.split("/") if path else []
    for at in range(len(parts)):
        is_part = parts[at] in PARTS or (kind != "skill" and at > 0)
        if is_part and "/".join(parts[:at]) in skills:
            return True
    return False
