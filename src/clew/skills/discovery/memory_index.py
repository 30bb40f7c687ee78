"""The skills of a manifest on a trail in memory, for programs that use the library without a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from uuid import UUID, uuid5

from clew.access import Principal
from clew.llm.embedders import open_embedder
from clew.skills.discovery.skill_records import DOMAIN, SCHEMA, record_tags, skill_document, skill_path
from clew.skills.discovery.skill_search import SkillSearch
from clew.skills.library import SkillSuggestion
from clew.skills.manifest import Manifest, Skill
from clew.trail import open_trail
from clew.trail.bootstrap import bootstrap
from clew.trail.mirror import mirror_files, searchable_text
from clew.trail.model.breadcrumb import NEVER, Draft
from clew.trail.model.selector import Selector
from clew.trail.store import Embedder, Trail

OWNER = Principal(owner_id="local")
_ALL = Selector(schema_name=SCHEMA, all_tags=(f"domain:{DOMAIN}",))
_NAMESPACE = UUID("7a0a1f0e-92a5-5b7e-8f0b-6f8f5c2f41d3")


class MemoryIndex:
    """A search index of skills in memory: see `SkillFinder`. `open_index` opens one; close it to free its memory."""

    withheld: Mapping[str, str] = MappingProxyType({})

    def __init__(self, trail: Trail, embedder: Embedder | None) -> None:
        self.manifest = Manifest()
        self.trail = trail
        self._search = SkillSearch(self, trail, OWNER.owner_id, embedder)

    async def use(self, manifest: Manifest) -> None:
        """Index the skills of a manifest, and no others."""
        await mirror_files(self.trail, [_draft(each) for each in manifest.skills.values()], _ALL, by=OWNER)
        self.manifest = manifest

    async def suggest(
        self, query: str, *, among: Sequence[str] | None = None, limit: int = 10
    ) -> list[SkillSuggestion]:
        """Return the skills that match, best first, of those in `among` or of all; none if no match is close."""
        skills = self.manifest.skills
        names = [name for name in skills if among is None or name in among]
        found = await self._search.find_skills(query, names, limit, by=OWNER)
        return [
            SkillSuggestion(skill=name, description=skills[name].description, relevance=round(close, 3))
            for name, close in found
        ]

    async def close(self) -> None:
        """Free the index. Calling it twice is harmless."""
        await self.trail.close()


async def open_index(manifest: Manifest) -> MemoryIndex:
    """Open an index of these skills."""
    embedder = open_embedder("wordllama")
    trail = await open_trail("sqlite://:memory:", embedder=embedder)
    await bootstrap(trail, OWNER)
    index = MemoryIndex(trail, embedder)
    await index.use(manifest)
    return index


def _draft(skill: Skill) -> Draft:
    text = skill_document(skill)
    return Draft(
        id=str(uuid5(_NAMESPACE, skill_path(skill.name))),
        title=text.name,
        schema_name=SCHEMA,
        context={
            "path": skill_path(skill.name),
            "name": text.name,
            "description": searchable_text(text.description),
            "content": searchable_text(text.content),
        },
        tags=record_tags(text.type, skill.name),
        ttl=NEVER,
    )
