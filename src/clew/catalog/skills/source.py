"""Skills and their references as resources, so that `ask` finds them: `skills://resources/NAME`. Only the name of an
untrusted skill is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from clew.catalog.resource import DocumentListing, RawContent, RawDocument, ResourceNode
from clew.catalog.skills.definitions import FolderDefinitions
from clew.catalog.skills.references import OwnReferences
from clew.errors import FormatError, NotFound, ValidationError
from clew.skills.discovery.skill_records import (
    SkillDocument,
    reference_document,
    reference_path,
    search_words,
    skill_document,
    skill_path,
)
from clew.skills.manifest import ONLY_BY_NAME, Skill, SkillLink
from clew.trail.model.tags import digest

CONTENT_TYPE = "application/vnd.clew.skill"
SOURCE = "skills:definitions"
MAX_REFERENCES = 200
"""The most references of one skill that search finds."""


class SkillSource:
    """See `ContentSource`. Listing looks at the files again. A document is a skill, or a reference of one."""

    name = "skills"
    is_local = True

    def __init__(self, definitions: FolderDefinitions) -> None:
        self._definitions = definitions
        self._references = OwnReferences(definitions.source.root)
        self.id = SOURCE

    async def list_documents(self) -> DocumentListing:
        await self._definitions.refresh()
        known = self._known()
        return DocumentListing(documents=[self._document(id, skill) for id, (skill, _) in known.items()])

    async def fetch_content(self, id: str) -> RawContent:
        skill, reference = self._known().get(id, (None, None))
        if skill is None:
            raise NotFound("document", id)
        if reference is not None:
            return await self._reference(id, skill, reference)
        return _content(id, skill_document(skill, self._definitions.withhold(skill)))

    async def close(self) -> None:
        """Holds nothing."""

    def _known(self) -> dict[str, tuple[Skill, SkillLink | None]]:
        """Return skills and references by id, without references of skills that are withheld or load only by name."""
        found: dict[str, tuple[Skill, SkillLink | None]] = {}
        for skill in self._definitions.manifest.skills.values():
            name = skill_path(skill.name)
            found[name] = (skill, None)
            is_closed = skill.tier == ONLY_BY_NAME or self._definitions.withhold(skill)
            references = () if is_closed else skill.references[:MAX_REFERENCES]
            for each in references:
                found.setdefault(f"{name}/{reference_path(each)}", (skill, each))
        return found

    def _document(self, id: str, skill: Skill) -> RawDocument:
        withheld = self._definitions.withhold(skill)
        text = skill_document(skill, withheld)
        parts = ("withheld", withheld) if withheld else (skill.digest, skill.description, *search_words(skill))
        version = digest("\n".join((text.type, *parts)))
        return RawDocument(id=id, name=skill.name, content_type=CONTENT_TYPE, version=version)

    async def _reference(self, id: str, skill: Skill, reference: SkillLink) -> RawContent:
        try:
            text = await asyncio.to_thread(self._references.read, skill, reference)
        except (FormatError, ValidationError):
            text = ""  # it is still found by the skill's description of it
        return _content(id, reference_document(skill, reference, id, text))


class SkillFormat:
    """See `ContentFormat`: one node a document."""

    name = "skill"

    def can_handle(self, content_type: str) -> bool:
        return content_type == CONTENT_TYPE

    def parse(self, content: RawContent, base_path: str) -> Sequence[ResourceNode]:
        about, kind = str(content.metadata["description"]), str(content.metadata["type"])
        node = ResourceNode(
            id=content.id, name=content.name, path=content.id, content=content.text, description=about, type=kind
        )
        return (node,)


def _content(id: str, document: SkillDocument) -> RawContent:
    body = document.content.encode("utf-8", "replace")
    about = {"type": document.type, "description": document.description}
    return RawContent(id=id, name=document.name, content_type=CONTENT_TYPE, body=body, metadata=about)
