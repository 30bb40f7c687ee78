"""Agents and skills that the files of a folder define, and the user's consent to them."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Awaitable, Callable
from pathlib import PurePosixPath
from typing import Any

import msgspec

from clew.catalog.consent.consent import NOT_TRUSTED, FolderConsent
from clew.catalog.skills.wishes import AGENT, SKILL, DefinitionRoot, definition_wishes
from clew.skills.checks.problems import Problem
from clew.skills.definitions.manifest_builder import BuildResult
from clew.skills.definitions.own_format import BuildMemory
from clew.skills.files.file_watch import FileWatch, homes_of
from clew.skills.files.tree_walk import SKILL_FILES, walk
from clew.skills.formats.definition_reader import ParseCache
from clew.skills.manifest import AgentSpec, Manifest, Skill
from clew.trust import Wish

NOT_AGREED = "not trusted yet, it waits for the user's consent"
AGENT_NOT_AGREED = "the definition of this agent is not what was agreed to, it waits for the user's consent"
MAX_NAMED = 5
NOT_WHOLE = "not all of its files can be read, so nobody can agree to it"


class FolderDefinitions:
    """The definitions of one folder. `manifest` has all of them; `usable` has no toolset that only untrusted skills
    bring."""

    def __init__(self, source: DefinitionRoot, consent: FolderConsent) -> None:
        self.source = source
        self.manifest = self.usable = Manifest()
        self.problems: tuple[Problem, ...] = ()
        self.withheld: dict[str, str] = {}
        """Why a skill may not be loaded, by name."""
        self._consent = consent
        self._agents: frozenset[str] = frozenset()
        self._waiting: frozenset[str] = frozenset()
        self._rules: list[Wish] = []
        self._state: tuple[int, ...] = ()
        self._memory, self._built = ParseCache(), BuildMemory()
        self._looking = asyncio.Lock()

    async def read(self) -> None:
        """As `refresh` and `look_at_rules`, with one walk of the folder."""
        async with self._looking:
            built, self._rules = await asyncio.to_thread(self._read)
            self._take(built)

    def _read(self) -> tuple[BuildResult, list[Wish]]:
        if not self.source.is_repository or not self.source.root.is_dir():
            return self.source.read(self._memory, self._built), []
        rules = self.source.rule_files()
        tree = walk(rules.root)
        return self.source.read(self._memory, self._built, tree), rules.wishes(tree)

    async def refresh(self) -> None:
        """Read changed definition files again. This is cheap if nothing changed."""
        async with self._looking:
            built = await asyncio.to_thread(self.source.read, self._memory, self._built)
            self._take(built)

    def notice_consent(self) -> bool:
        """Whether the set of withheld skills has changed, because the user granted or revoked consent."""
        if self._consent.state() == self._state:
            return False
        before = self.withheld
        self._decide()
        return before != self.withheld

    def withhold(self, skill: Skill) -> str:
        """Why a skill may not be loaded; empty if it may."""
        return self.withheld.get(skill.name, "")

    def agent(self, name: str) -> AgentSpec:
        """The definition of an agent if the user agreed to it; otherwise an agent without skills."""
        return self.manifest.agents[name] if name in self._agents else AgentSpec(name=name)

    def tell_broken(self, name: str) -> str:
        """A sentence that the skill has errors, with the place of the first; empty if no broken skill has this name."""
        found = self.broken_skills().get(name)
        return f"Skill {name} has errors, first in {found}: `clew skills lint` shows them." if found else ""

    def broken_skills(self) -> dict[str, str]:
        """The place of the first error of each skill that was left out because of errors, by the name of its file or
        folder."""
        found: dict[str, str] = {}
        for each in self.problems:
            name = _skill_at(PurePosixPath(each.path))
            if each.severity == "error" and name and name not in self.manifest.skills:
                found.setdefault(name, f"{each.path}:{each.line}" if each.line else each.path)
        return found

    def is_waiting(self, name: str) -> bool:
        """Whether an agent may load nothing, because its definition is not the one that the user agreed to. This
        includes definitions that are gone or broken now."""
        return name in self._waiting

    def told(self) -> list[str]:
        """Return one line about definitions that wait for consent, or none."""
        agents = [name for name in self.manifest.agents if name not in self._agents]
        rules = [each.name for each in self._rules if not self._consent.allows(each)]
        counted = [("agent", agents), ("skill", list(self.withheld)), ("rule file", rules)]
        told = ", ".join(_count(noun, names) for noun, names in counted if names)
        return [f"{told}: {self._consent.problem or NOT_TRUSTED}"] if told else []

    async def look_at_rules(self) -> None:
        """Read the rule files again, so that `told` can list those that wait for consent."""
        if self.source.is_repository:
            self._rules = await asyncio.to_thread(self.source.rule_files().wishes)

    def watch(self, changed: Callable[[], Awaitable[Any]]) -> FileWatch:
        """A context manager that calls `changed` after each change of a skill, an agent or a rule file. The caller
        opens and closes it."""
        return FileWatch(self.source.root, changed, self._homes, self._rule_homes)

    def _homes(self) -> set[str]:
        homes = homes_of((*self.manifest.skills.values(), *self.manifest.agents.values()))
        return homes | ({self.source.skills} if self.source.skills else set())

    def _rule_homes(self) -> set[str]:
        return {posixpath.dirname(each.name) for each in self._rules}

    def _take(self, built: BuildResult) -> None:
        is_same = built.manifest == self.manifest
        self.manifest, self.problems = built.manifest, built.problems
        if not is_same or self._consent.state() != self._state:
            self._decide()

    def _decide(self) -> None:
        wishes = definition_wishes(self.manifest, self.source.root)
        known = {each.name for each in wishes if each.kind == SKILL}
        held = {(each.kind, each.name) for each in wishes if self._consent.allows(each)}
        self._state = self._consent.state()
        self._agents = frozenset(name for kind, name in held if kind == AGENT)
        once = self._consent.granted(AGENT, self.source.root)
        self._waiting = (once | self.manifest.agents.keys()) - self._agents
        self.withheld = {
            name: NOT_AGREED if name in known else NOT_WHOLE
            for name in self.manifest.skills
            if (SKILL, name) not in held
        }
        free = [each for name, each in self.manifest.skills.items() if name not in self.withheld]
        brought = {toolset for skill in free for toolset in skill.toolsets}
        toolsets = {name: each for name, each in self.manifest.toolsets.items() if name in brought}
        self.usable = msgspec.structs.replace(self.manifest, toolsets=toolsets)


def _skill_at(path: PurePosixPath) -> str:
    """The name of the skill that a file at this path would define; empty if it is not a skill file."""
    if path.name in SKILL_FILES:
        return path.parent.name
    return path.stem if path.parent.name == "skills" else ""


def _count(noun: str, names: list[str]) -> str:
    shown = ", ".join((*names[:MAX_NAMED], *("…" for _ in names[MAX_NAMED : MAX_NAMED + 1])))
    return f"{len(names):,} {noun}{'' if len(names) == 1 else 's'} ({shown})"
