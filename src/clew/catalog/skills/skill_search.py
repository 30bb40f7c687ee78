"""Search for skills and references on the trail by a need."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import NamedTuple

from clew.access import Principal
from clew.catalog.indexing.resource_queries import select_resources
from clew.catalog.operations.discovery import is_sound
from clew.catalog.route import parse_route, path_part
from clew.catalog.skills.definitions import FolderDefinitions
from clew.catalog.skills.routes import NAME
from clew.catalog.skills.source import REFERENCE_TYPE, SKILL_TYPE
from clew.skills.discovery.relevance import (
    SkillFit,
    Vocabulary,
    close_ones,
    has_telling_words,
    known_share,
    open_background,
    read_vocabulary,
)
from clew.skills.manifest import ONLY_BY_NAME, Manifest, Skill
from clew.trail.model.query import Hit, SearchRequest
from clew.trail.search.closeness import closeness
from clew.trail.search.text import MAX_QUERY_CHARS
from clew.trail.store import Embedder, Trail

LOOKED_AT = 50
MOSTLY = 0.6
"""The share of a need's words that a skill which is withheld has to have in its name and description."""


class SkillSearch:
    """Looks for skills on a trail. `owner_id` is whose records they are; `embedder` is the trail's: without it, what
    fits is judged by words alone."""

    def __init__(self, definitions: FolderDefinitions, trail: Trail, owner_id: str, embedder: Embedder | None) -> None:
        self._definitions = definitions
        self._trail = trail
        self._owner_id = owner_id
        self._background = open_background(embedder)
        self._read = _ReadSkill(Manifest(), {}, Vocabulary())

    async def find_skills(self, need: str, among: Collection[str], limit: int, by: Principal) -> list[str]:
        """The paths of skills that fit, of those in `among`, the best first; none where nothing is close. One of the
        third tier comes only where it is named. Those that are withheld come last: nothing of them but their names is
        on the trail."""
        hits = [hit for hit in await self._search(need, SKILL_TYPE, by) if _path(hit) in among]
        fit = await asyncio.to_thread(self._fit, need) if hits else None
        close = [_path(hit) for hit, _ in close_ones(hits, fit.closeness, limit)] if fit is not None else []
        waiting = [path for path in self._withheld(need) if path in among and path not in close]
        return list(dict.fromkeys((*self._named(need, among), *close, *waiting)))[:limit]

    async def find_references(self, need: str, by: Principal) -> list[str]:
        """The paths of references whose text fits, the best first; none where nothing is close."""
        hits = await self._search(need, REFERENCE_TYPE, by) if has_telling_words(need) else []
        return [_path(hit) for hit, _ in close_ones(hits, closeness, LOOKED_AT)]

    async def _search(self, need: str, kind: str, by: Principal) -> list[Hit]:
        reader = Principal(owner_id=self._owner_id, agent_id=by.agent_id, scopes=by.scopes)
        selector = select_resources(domain=NAME, type=kind)
        request = SearchRequest(text=need[:MAX_QUERY_CHARS], selector=selector, limit=LOOKED_AT)
        return [hit for hit in (await self._trail.index.search(request, by=reader)).hits if is_sound(hit.breadcrumb)]

    def _fit(self, need: str) -> SkillFit:
        return SkillFit(need, self._known() if self._background is not None else Vocabulary(), self._background)

    def _withheld(self, need: str) -> list[str]:
        """The paths of skills that are withheld and whose names and descriptions have most words of a need."""
        skills = [self._definitions.manifest.skills[name] for name in self._definitions.withheld]
        return [path_part(each.name) for each in skills if each.tier != ONLY_BY_NAME and _says(each, need)]

    def _named(self, need: str, among: Collection[str]) -> list[str]:
        """The path of a skill of the third tier that a need is the name of, as one writes it or a command."""
        skill = self._definitions.manifest.skills.get(need.strip().removeprefix("/"))
        path = path_part(skill.name) if skill is not None and skill.tier == ONLY_BY_NAME else ""
        return [path] if path in among else []

    def _known(self) -> Vocabulary:
        """The words of all skills; of one that is withheld, those of its name."""
        manifest, withheld = self._definitions.manifest, self._definitions.withheld
        if (self._read.manifest, self._read.withheld) != (manifest, withheld):
            free = [each for each in manifest.skills.values() if each.name not in withheld]
            heads = [*withheld, *(f"{each.name}\n{each.description}" for each in free)]
            bodies = [each.content for each in free]
            self._read = _ReadSkill(manifest, withheld, read_vocabulary(heads, bodies))
        return self._read.vocabulary


class _ReadSkill(NamedTuple):
    """The words of skills as they were when they were read."""

    manifest: Manifest
    withheld: Mapping[str, str]
    vocabulary: Vocabulary


def _says(skill: Skill, need: str) -> bool:
    said = read_vocabulary([skill.name, skill.description, *skill.keywords], ())
    return has_telling_words(need) and known_share(need, said.words) >= MOSTLY


def _path(hit: Hit) -> str:
    return parse_route(hit.breadcrumb.context["uri"]).path
