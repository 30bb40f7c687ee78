"""References of skills: found by the text that is shown, read from their files when they are asked for."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import msgspec

from clew.errors import ConfigError, FormatError, ValidationError
from clew.skills.discovery.mirror import to_kept
from clew.skills.files.document import MAX_BYTES
from clew.skills.files.tree_walk import is_left_out, show
from clew.skills.formats.rules import resolve_beside
from clew.skills.formats.safe_open import Root
from clew.skills.manifest import Skill
from clew.trail.model.breadcrumb import Breadcrumb

REFERENCE_SCHEMA = "skill.reference.v1"
MAX_KEY = 500
ENDING = ".md"
_NAMESPACE = UUID("7a0a1f0e-92a5-5b7e-8f0b-6f8f5c2f41d3")


class SkillReference(msgspec.Struct, frozen=True, kw_only=True):
    """A link from a skill to another markdown file. `path` is as it is written, relative to the skill's file."""

    skill: str
    text: str
    path: str
    line: int = 0


class ReferencePlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where a reference leads: `path` as it is written in the file `source`. Only what is below `home` is read; where
    that is empty, all that is below the root."""

    skill: str
    source: str
    home: str
    path: str


class SkillReferenceMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A reference that may help. `relevance` is 1 where it is just close enough."""

    reference: SkillReference
    relevance: float


def record_id(*parts: str) -> str:
    """The id of what stands for a skill or a reference: the same parts, the same id."""
    return str(uuid5(_NAMESPACE, "\n".join(part.encode("utf-8", "backslashreplace").decode() for part in parts)))


def reference_contexts(skill: Skill) -> Iterator[dict[str, Any]]:
    """The records of all references to markdown files, in order. Two links to one file are one."""
    known = set()
    home = skill.folder or posixpath.dirname(skill.path)
    for number, each in enumerate(skill.references):
        if each.path in known or not each.path.lower().endswith(ENDING):
            continue
        known.add(each.path)
        text = to_kept(" ".join(show(each.text).split()), MAX_KEY)
        yield {
            "skill": skill.name,
            "text": text or posixpath.basename(show(each.path)),
            "path": show(each.path),
            "line": each.line,
            "number": number,
            "source": show(skill.path),
            "home": show(home),
        }


def to_reference(record: Breadcrumb) -> SkillReference:
    return msgspec.convert(record.context, SkillReference)


def to_place(record: Breadcrumb) -> ReferencePlace:
    return msgspec.convert(record.context, ReferencePlace)


def read_reference(root: Path | None, place: ReferencePlace, check: Callable[[str, bytes], None] | None = None) -> str:
    """The text of the file, as it is now. `check` gets its real path and its bytes before, and may raise.

    Raises ConfigError where there is no folder to read from, ValidationError for what leads out of the place's home or
    is no markdown, and FormatError for what cannot be read: nothing there, no regular file, too large, no text.
    """
    if root is None:
        raise ConfigError("this shelf has no folder to read references from")
    target = resolve_beside(place.source, place.path)
    base = Root(os.fspath(root))
    real = base.resolve(target) if target is not None else None
    inside = f"{base.resolve(place.home)}/" if place.home else ""
    if real is None or not real.startswith(inside) or is_left_out(real) or not real.lower().endswith(ENDING):
        raise ValidationError(
            f"the reference {place.path!r} leads out of the folder of its skill",
            hint="Put the file into the folder of the skill",
            skillName=place.skill,
        )
    raw = base.read(real, MAX_BYTES)
    if check is not None:
        check(real, raw)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FormatError(place.path, "is not UTF-8 text") from None
