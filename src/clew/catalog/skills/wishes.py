"""The definitions of a folder that need consent before they are loaded."""

from __future__ import annotations

import posixpath
from pathlib import Path

import msgspec

from clew.access import Principal
from clew.catalog.workspace.repository import has_repository
from clew.config import FOLDER, Config, SkillsConfig
from clew.skills.definitions.manifest_builder import BuildResult, build
from clew.skills.definitions.own_format import BuildMemory
from clew.skills.files.tree_walk import TreeWalk
from clew.skills.formats.collection import Collected, collect, wishes
from clew.skills.formats.definition_reader import ParseCache
from clew.skills.manifest import Manifest, Skill
from clew.skills.rules.files import ROOT_FILE, RuleFiles
from clew.skills.rules.tree import Rules
from clew.trail.store import Trail
from clew.trust import Wish, digest_parts, printable

SKILL, AGENT = "skill", "agent"


class DefinitionRoot(msgspec.Struct, frozen=True, kw_only=True):
    """The place of definitions: only the folder `.clew`, or also the files of other agents in its project. `skills` is
    the folder of own skills below the root if it is not the usual one, `root_rules` the rules of the
    root."""

    root: Path
    is_repository: bool
    skills: str = ""
    root_rules: str = ROOT_FILE

    def read(
        self, memory: ParseCache | None = None, built: BuildMemory | None = None, tree: TreeWalk | None = None
    ) -> BuildResult:
        """Return all definitions and their problems. Never raises for broken files; cached files are not read again.
        `tree` is a walk of the root that was done just now."""
        if not self.root.is_dir():
            return BuildResult(manifest=Manifest())
        found = collect(self.root, memory=memory, tree=tree) if self.is_repository else None
        return build(self.root, (), found, memory=built, skills=self.skills)

    def rule_files(self) -> RuleFiles:
        """The rule files of the project."""
        return RuleFiles(str(self.root), root_file=self.root_rules)

    def rules(self, trail: Trail, by: Principal) -> Rules:
        """The rules of the project, with their search on a trail."""
        return Rules(self.root, trail, by=by, root_file=self.root_rules)


def find_definition_root(config: Config) -> DefinitionRoot:
    """Return the place of a configuration's definitions. A folder with another name than `.clew` is not part of a
    project."""
    folder = config.folder.absolute()
    chosen = posixpath.normpath(config.skills.root)
    return DefinitionRoot(
        root=folder.parent if folder.name == FOLDER else folder,
        is_repository=has_repository(config),
        skills="" if chosen == SkillsConfig().root else chosen,
        root_rules=config.rules.root,
    )


def skills_folder(config: Config) -> Path:
    """The folder of own skills, to which `clew skills` writes."""
    source = find_definition_root(config)
    return source.root / source.skills if source.skills else config.folder / "skills"


def definers_at(place: Path) -> DefinitionRoot:
    """The definitions of a named folder: a project, or a folder that holds `agents`, `toolsets` and the like itself."""
    is_team = any((place / name).is_dir() for name in ("agents", "toolsets", "tools"))
    return DefinitionRoot(root=place, is_repository=(place / FOLDER).is_dir() or not is_team)


def definition_wishes(manifest: Manifest, root: Path) -> list[Wish]:
    """Return the wishes that need the user's consent, agents first. Consent to a skill covers its toolsets, because
    they decide which routes it opens. Definitions without a digest are left out."""
    found = Collected(agents=tuple(manifest.agents.values()), skills=tuple(manifest.skills.values()))
    return [
        _with_toolsets(each, manifest.skills[each.name], manifest) if each.kind == SKILL else each
        for each in wishes(found, root)
    ]


def _with_toolsets(wish: Wish, skill: Skill, manifest: Manifest) -> Wish:
    """The wish of a skill with the routes that its toolsets open."""
    toolsets = [manifest.toolsets[name] for name in skill.toolsets if name in manifest.toolsets]
    if not toolsets:
        return wish
    digest = digest_parts([skill.digest.encode(), *(msgspec.json.encode(each, order="sorted") for each in toolsets)])
    tools = ", ".join(dict.fromkeys(tool for each in toolsets for tool in each.tools)) or "no tools"
    about = printable(f"{wish.summary}; opens {tools} (by {', '.join(each.name for each in toolsets)})")
    return msgspec.structs.replace(wish, digest=digest, summary=about)
