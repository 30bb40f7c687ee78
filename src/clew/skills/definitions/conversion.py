"""Converts a skill of another program to Clew's own format: invalid front matter is rewritten, the text stays."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from clew.skills.checks.problems import Problem
from clew.skills.definitions.fields import FIELDS, Fields, spellings
from clew.skills.definitions.own_format import check_skill
from clew.skills.files.document import MarkdownDocument, read_document
from clew.skills.formats.skill_folders import read_skill
from clew.skills.formats.source import DefinitionSource
from clew.skills.manifest import Skill

_TAKEN = ("name", "description", "tier", "triggers", "parameters", "allowed_tools", "metadata")
"""Fields that other formats have too, under other keys."""


class ConvertedSkill(msgspec.Struct, frozen=True, kw_only=True):
    """A SKILL.md in Clew's own format, with `notes` about the changes; or the `problem` that prevents the
    conversion."""

    raw: bytes = b""
    notes: tuple[str, ...] = ()
    problem: str = ""


def conform(raw: bytes, folder: str, name: str) -> ConvertedSkill:
    """Convert the SKILL.md of the folder `folder` for a folder called `name`. A valid file stays unchanged."""
    if not _problems_of(raw, name):
        return ConvertedSkill(raw=raw)
    document = read_document(raw, "SKILL.md")
    text = raw.decode("utf-8-sig", "replace")
    skill = read_skill(DefinitionSource(path="SKILL.md", named=folder, raw=text, document=document), folder, ())
    if skill is None:
        return ConvertedSkill(problem="its SKILL.md is empty")
    values, moved = _values(skill, document, name)
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    written = "\n".join(["---", *lines, "---", document.body]).encode()
    wrong = _problems_of(written, name)
    if wrong:
        return ConvertedSkill(problem=f"its SKILL.md is not valid: {wrong[0].message}")
    kept = [f"moved to `metadata`, where they have no effect: {', '.join(moved)}"] if moved else []
    return ConvertedSkill(raw=written, notes=("its front matter was rewritten", *kept))


def _problems_of(raw: bytes, name: str) -> list[Problem]:
    return [each for each in check_skill(raw, name) if each.severity == "error"]


def _values(skill: Skill, document: MarkdownDocument, name: str) -> tuple[dict[str, Any], list[str]]:
    """Return the values of the front matter by key, and the keys that moved to the metadata. A valid value of Clew's
    own format takes precedence over a converted one."""
    fields = Fields(document, "skill")
    own = {field: msgspec.to_builtins(value) for field, value in fields.values.items()}
    meant = {field: msgspec.to_builtins(getattr(skill, field)) for field in _TAKEN}
    values = {**{field: value for field, value in meant.items() if value}, **own, "name": name}
    values["description"] = own.get("description", "").strip() or skill.description
    known = {fields.keys[field] for field in own}
    notes = {key: value for key, value in skill.metadata.items() if key not in known}
    values["metadata"] = notes
    moved = sorted(key for key in notes if key in document.meta)
    order = [field for field in FIELDS["skill"] if values.get(field)]
    return {spellings(field)[0]: values[field] for field in order}, moved
