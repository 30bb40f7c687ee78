"""The definitions of a folder that need consent before they are loaded."""

from __future__ import annotations

from pathlib import Path

import msgspec

from clew.catalog.workspace.repository import has_repository
from clew.config import FOLDER, Config
from clew.skills.definitions.manifest_builder import Built, build
from clew.skills.definitions.own_format import BuildMemory
from clew.skills.formats.collection import Collected, collect, wishes
from clew.skills.formats.definition_reader import Memory
from clew.skills.manifest import Manifest, Skill
from clew.trust import Wish, digest_parts, printable

SKILL, AGENT = "skill", "agent"


class Definers(msgspec.Struct, frozen=True, kw_only=True):
    """Where definitions are read from: only what stands below the folder `.clew`, or all that agents keep in a project
    as well."""

    root: Path
    is_repository: bool

    def read(self, memory: Memory | None = None, built: BuildMemory | None = None) -> Built:
        """All of them, and what is wrong. Never raises for what is there; what is remembered is not read again."""
        if not self.root.is_dir():
            return Built(manifest=Manifest())
        found = collect(self.root, memory=memory) if self.is_repository else None
        return build(self.root, (), found, memory=built)


def definers_of(config: Config) -> Definers:
    """Those of a configuration. A folder of another name than `.clew` is no part of a project, and stands alone."""
    folder = config.folder.absolute()
    return Definers(root=folder.parent if folder.name == FOLDER else folder, is_repository=has_repository(config))


def definers_at(place: Path) -> Definers:
    """Those of a folder that is named: a project, or a folder that holds `agents`, `toolsets` and the like itself."""
    is_team = any((place / name).is_dir() for name in ("agents", "toolsets", "tools"))
    return Definers(root=place, is_repository=(place / FOLDER).is_dir() or not is_team)


def definition_wishes(manifest: Manifest, root: Path) -> list[Wish]:
    """The wishes that need the user's consent, agents first. A skill is agreed to together with its toolsets: these
    decide what it opens. What has no digest cannot be agreed to, and is left out."""
    found = Collected(agents=tuple(manifest.agents.values()), skills=tuple(manifest.skills.values()))
    return [
        _with_toolsets(each, manifest.skills[each.name], manifest) if each.kind == SKILL else each
        for each in wishes(found, root)
    ]


def _with_toolsets(wish: Wish, skill: Skill, manifest: Manifest) -> Wish:
    """The wish of a skill with what its toolsets open."""
    toolsets = [manifest.toolsets[name] for name in skill.toolsets if name in manifest.toolsets]
    if not toolsets:
        return wish
    digest = digest_parts([skill.digest.encode(), *(msgspec.json.encode(each, order="sorted") for each in toolsets)])
    tools = ", ".join(dict.fromkeys(tool for each in toolsets for tool in each.tools)) or "no tools"
    about = printable(f"{wish.summary}; opens {tools} (by {', '.join(each.name for each in toolsets)})")
    return msgspec.structs.replace(wish, digest=digest, summary=about)
