"""The record of a skill: a `resource.v1` of the domain `skills`. The catalog writes it to the trail of a folder, the
library to a trail in memory; `skill_search` reads both."""

from __future__ import annotations

import posixpath
from collections.abc import Collection

import msgspec

from clew.skills.manifest import ONLY_BY_NAME, Skill, SkillLink
from clew.trail.model.selector import MAX_TERMS, Selector
from clew.trail.model.tags import path_part, tag_of

SCHEMA = "resource.v1"
DOMAIN = "skills"
SKILL_TYPE, REFERENCE_TYPE = "skill", "reference"
BY_NAME_TYPE = "skill-by-name"
"""A skill of the third tier: search never returns it."""


class SkillDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The searchable text of a skill or a reference."""

    type: str
    name: str
    description: str
    content: str


def skill_document(skill: Skill, withheld: str = "") -> SkillDocument:
    """Return the searchable text of a skill. For a withheld skill, it has only the name and the reason."""
    type = BY_NAME_TYPE if skill.tier == ONLY_BY_NAME else SKILL_TYPE
    if withheld:
        about, content = f"({withheld})", f"This skill is {withheld}."
        return SkillDocument(type=type, name=skill.name, description=about, content=content)
    words = search_words(skill)
    keywords = f" Keywords: {', '.join(words)}" if words else ""
    about = f"{skill.description}{keywords}"
    return SkillDocument(type=type, name=skill.name, description=about, content=skill.content)


def search_words(skill: Skill) -> list[str]:
    """Return the keywords of a skill and the words that trigger it, each once."""
    return list(dict.fromkeys((*skill.keywords, *skill.triggers.words)))


def reference_document(skill: Skill, reference: SkillLink, id: str, content: str) -> SkillDocument:
    """Return the searchable text of a reference."""
    about = f"{reference.text}: a reference of the skill {skill.name}"
    return SkillDocument(type=REFERENCE_TYPE, name=reference.text or id, description=about, content=content)


def skill_path(name: str) -> str:
    """Return the path of a skill below `skills://resources/`; its references are below it."""
    return path_part(name)


def reference_path(reference: SkillLink) -> str:
    """Return the path of a reference, relative to the file of its skill."""
    return posixpath.normpath(reference.path)


def record_tags(type: str, name: str) -> tuple[str, str, str]:
    """Return the tags of the record of a skill, or of a reference of this skill."""
    return f"domain:{DOMAIN}", tag_of("type", type), tag_of("segment", skill_path(name))


def select_records(type: str, names: Collection[str] | None) -> Selector:
    """Select the records of one type, of these skills; of all skills for None and for more than MAX_TERMS names."""
    domain, kind, _ = record_tags(type, "")
    few = sorted(names) if names is not None and len(names) <= MAX_TERMS else []
    return Selector(schema_name=SCHEMA, all_tags=(domain, kind), any_tags=[record_tags(type, name)[2] for name in few])
