"""Skills and their references as resources, so that `ask` finds them: `skills://resources/NAME`.

Of what is not trusted only the name is there: nothing that it says gets onto the trail.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from clew.catalog.indexing.document_nodes import digest
from clew.catalog.resource import DocumentListing, RawContent, RawDocument, ResourceNode
from clew.catalog.route import path_part
from clew.catalog.skills.definitions import FolderDefinitions
from clew.catalog.skills.references import OwnReferences, path_of
from clew.errors import FormatError, NotFound, ValidationError
from clew.skills.manifest import ONLY_BY_NAME, Skill, SkillLink

CONTENT_TYPE = "application/vnd.clew.skill"
SOURCE = "skills:definitions"
SKILL_TYPE, REFERENCE_TYPE = "skill", "reference"
UNSOUGHT_TYPE = "skill-by-name"
"""A skill of the third tier: no question finds it by its words."""
MAX_REFERENCES = 200
"""The most references of one skill that search finds."""


class SkillSource:
    """See `ContentSource`. Listing looks at the files again. A document is a skill, or a reference of one."""

    name = "skills"
    is_local = True

    def __init__(self, definitions: FolderDefinitions) -> None:
        self._definitions = definitions
        self._references = OwnReferences(definitions.definers.root)
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
        if withheld := self._definitions.withhold(skill):
            about = {"type": _type_of(skill), "description": f"({withheld})"}
            return _content(id, skill.name, f"This skill is {withheld}.", about)
        keywords = f" Keywords: {', '.join(skill.keywords)}" if skill.keywords else ""
        about = {"type": _type_of(skill), "description": f"{skill.description}{keywords}"}
        return _content(id, skill.name, skill.content, about)

    async def close(self) -> None:
        """Holds nothing."""

    def _known(self) -> dict[str, tuple[Skill, SkillLink | None]]:
        """Return skills and references by id, without references of skills that are withheld or load only by name."""
        found: dict[str, tuple[Skill, SkillLink | None]] = {}
        for skill in self._definitions.manifest.skills.values():
            name = path_part(skill.name)
            found[name] = (skill, None)
            is_closed = skill.tier == ONLY_BY_NAME or self._definitions.withhold(skill)
            references = () if is_closed else skill.references[:MAX_REFERENCES]
            for each in references:
                found.setdefault(f"{name}/{path_of(each)}", (skill, each))
        return found

    def _document(self, id: str, skill: Skill) -> RawDocument:
        withheld = self._definitions.withhold(skill)
        told = (f"only its name: {withheld}",) if withheld else (skill.digest, "", skill.description, *skill.keywords)
        version = digest("\n".join((_type_of(skill), *told)))
        return RawDocument(id=id, name=skill.name, content_type=CONTENT_TYPE, version=version)

    async def _reference(self, id: str, skill: Skill, reference: SkillLink) -> RawContent:
        try:
            text = await asyncio.to_thread(self._references.read, skill, reference)
        except (FormatError, ValidationError):
            text = ""  # it is still found by what the skill says of it
        about = {"type": REFERENCE_TYPE, "description": f"{reference.text}: a reference of the skill {skill.name}"}
        return _content(id, reference.text or id, text, about)


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


def _type_of(skill: Skill) -> str:
    return UNSOUGHT_TYPE if skill.tier == ONLY_BY_NAME else SKILL_TYPE


def _content(id: str, name: str, text: str, about: dict[str, str]) -> RawContent:
    body = text.encode("utf-8", "replace")
    return RawContent(id=id, name=name, content_type=CONTENT_TYPE, body=body, metadata=about)
