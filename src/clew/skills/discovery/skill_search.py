"""Search for skills and their references in names, descriptions and texts. A question does not have to name a skill."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import NamedTuple, Protocol
from urllib.parse import unquote

from clew.access import Principal
from clew.skills.discovery.relevance import (
    SkillFit,
    Vocabulary,
    has_content_words,
    known_share,
    open_background,
    read_vocabulary,
    select_close,
)
from clew.skills.discovery.skill_records import (
    REFERENCE_TYPE,
    SKILL_TYPE,
    reference_path,
    select_records,
    skill_path,
)
from clew.skills.manifest import ONLY_BY_NAME, Manifest, Skill, SkillLink
from clew.trail.model.query import Hit, SearchRequest
from clew.trail.model.selector import MAX_TERMS
from clew.trail.search.closeness import EXACT, NEAR, closeness
from clew.trail.search.text import MAX_QUERY_CHARS
from clew.trail.store import Embedder, Trail

CANDIDATES = 50
"""The number of hits that the search scores."""
MAX_CANDIDATES = 1_000
"""The number of hits that the search scores if there are too many names for a selector."""
MIN_SHARE = 0.6
"""The share of a need's words that the name and description of a withheld skill must have."""
JUST_CLOSE = 1.0


class KnownSkills(Protocol):
    """The skills that are searched. `withheld` has the reason for each that may not be loaded."""

    @property
    def manifest(self) -> Manifest: ...

    @property
    def withheld(self) -> Mapping[str, str]: ...


class SkillMatch(NamedTuple):
    """The name of a skill and its closeness; 1 is just close enough."""

    skill: str
    closeness: float


class SkillSearch:
    """Searches the records of `skills` that `owner_id` has on a trail. `embedder` is the embedder of the trail. Without
    it, words alone decide."""

    def __init__(self, skills: KnownSkills, trail: Trail, owner_id: str, embedder: Embedder | None) -> None:
        self._skills = skills
        self._trail = trail
        self._owner_id = owner_id
        self._background = open_background(embedder)
        self._cached = _CachedWords(Manifest(), {}, Vocabulary())

    async def find_skills(self, need: str, among: Collection[str], limit: int, *, by: Principal) -> list[SkillMatch]:
        """Return the skills of `among` that fit, the best first; none if nothing is close.

        A skill of the third tier comes only if the need is its name. Withheld skills come last, because only their
        names are on the trail.
        """
        if not need.strip() or not among or limit < 1:
            return []
        paths = {skill_path(name): name for name in among}
        hits = [hit for hit in await self._search(need, SKILL_TYPE, among, by) if _path(hit) in paths]
        fit = await asyncio.to_thread(self._fit, need) if hits else None
        close = select_close(hits, fit.closeness, limit) if fit is not None else []
        found = {paths[_path(hit)]: value for hit, value in close}
        named = {name: EXACT for name in self._named(need) if name in among}
        withheld = {name: JUST_CLOSE for name in self._withheld(need) if name in among and name not in found}
        return [SkillMatch(*each) for each in {**named, **found, **withheld}.items()][:limit]

    async def find_nearest(self, need: str, among: Collection[str], limit: int, *, by: Principal) -> list[str]:
        """Return the names of the skills that are nearly close, the nearest first, for a need that none is close to.
        Skills of the third tier and withheld ones are never among them."""
        open_ones = [name for name in among if name not in self._skills.withheld]
        paths = {skill_path(name): name for name in open_ones}
        hits = [hit for hit in await self._search(need, SKILL_TYPE, open_ones, by) if _path(hit) in paths]
        if not hits:
            return []
        fit = await asyncio.to_thread(self._fit, need)
        scored = sorted(((fit.closeness(hit), paths[_path(hit)]) for hit in hits), key=lambda each: -each[0])
        skills = self._skills.manifest.skills
        return [name for close, name in scored if close >= NEAR and skills[name].tier != ONLY_BY_NAME][:limit]

    async def find_references(
        self, need: str, among: Collection[str], limit: int, *, by: Principal
    ) -> list[tuple[Skill, SkillLink]]:
        """Return the references of the skills of `among` that fit, the best first; none if nothing is close. A withheld
        skill has none."""
        if not has_content_words(need) or not among:
            return []
        open_ones = [name for name in among if name not in self._skills.withheld]
        hits = await self._search(need, REFERENCE_TYPE, open_ones, by)
        found = (self._reference(_path(hit), open_ones) for hit, _ in select_close(hits, closeness, CANDIDATES))
        return [each for each in found if each is not None][:limit]

    async def _search(self, need: str, type: str, among: Collection[str], by: Principal) -> list[Hit]:
        reader = Principal(owner_id=self._owner_id, agent_id=by.agent_id, scopes=by.scopes)
        names = among if set(among) != self._skills.manifest.skills.keys() else None
        most = CANDIDATES if names is None or len(names) <= MAX_TERMS else MAX_CANDIDATES
        request = SearchRequest(text=need[:MAX_QUERY_CHARS], selector=select_records(type, names), limit=most)
        return list((await self._trail.index.search(request, by=reader)).hits)

    def _reference(self, path: str, among: Collection[str]) -> tuple[Skill, SkillLink] | None:
        first, _, rest = path.partition("/")
        for skill in (self._skills.manifest.skills[name] for name in among if skill_path(name) == first):
            for link in skill.references:
                if reference_path(link) == unquote(rest):
                    return skill, link
        return None

    def _fit(self, need: str) -> SkillFit:
        return SkillFit(need, self._words() if self._background is not None else Vocabulary(), self._background)

    def _withheld(self, need: str) -> list[str]:
        """Return the withheld skills whose names and descriptions have most words of a need."""
        skills = [self._skills.manifest.skills[name] for name in self._skills.withheld]
        return [each.name for each in skills if each.tier != ONLY_BY_NAME and _mentions(each, need)]

    def _named(self, need: str) -> list[str]:
        """Return the skill of the third tier that a need names, as a word or as a command with a slash."""
        skill = self._skills.manifest.skills.get(need.strip().removeprefix("/"))
        return [skill.name] if skill is not None and skill.tier == ONLY_BY_NAME else []

    def _words(self) -> Vocabulary:
        """Return the words of all skills. A withheld skill has only the words of its name."""
        manifest, withheld = self._skills.manifest, self._skills.withheld
        if (self._cached.manifest, self._cached.withheld) != (manifest, withheld):
            free = [each for each in manifest.skills.values() if each.name not in withheld]
            heads = [*withheld, *(f"{each.name}\n{each.description}" for each in free)]
            bodies = [each.content for each in free]
            self._cached = _CachedWords(manifest, withheld, read_vocabulary(heads, bodies))
        return self._cached.vocabulary


class _CachedWords(NamedTuple):
    """The words of skills, with the skills that they were read from."""

    manifest: Manifest
    withheld: Mapping[str, str]
    vocabulary: Vocabulary


def _mentions(skill: Skill, need: str) -> bool:
    said = read_vocabulary([skill.name, skill.description, *skill.keywords], ())
    return has_content_words(need) and known_share(need, said.words) >= MIN_SHARE


def _path(hit: Hit) -> str:
    return str(hit.breadcrumb.context.get("path", ""))
