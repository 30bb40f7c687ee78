"""The text of a reference, read when it is asked for: a markdown file of the skill's own folder, and no other."""

from __future__ import annotations

import os
import posixpath
from pathlib import Path

from clew.errors import FormatError, ValidationError
from clew.skills.document import MAX_BYTES
from clew.skills.formats.opening import Root
from clew.skills.formats.rules import resolve_beside
from clew.skills.manifest import Reference, Skill
from clew.wording import suggest


def path_of(reference: Reference) -> str:
    """Its path from the skill's file, as references are named."""
    return posixpath.normpath(reference.path)


def find_reference(skill: Skill, wanted: str) -> Reference:
    """The reference with this path, or this text. Raises ValidationError with those that there are."""
    for each in skill.references:
        if wanted in (path_of(each), each.path, each.text):
            return each
    known = tuple(path_of(each) for each in skill.references)
    hint = suggest(wanted, known, "Its references are") if known else "It has none"
    raise ValidationError(f"skill {skill.name} has no reference {wanted[:200]!r}", allowed=known, hint=hint)


def read_reference(root: Path, skill: Skill, reference: Reference) -> str:
    """The text of a reference of a skill. Only what is in the skill's folder is read: consent goes no further.

    Raises FormatError where it leads out of that folder, is no markdown, or cannot be read.
    """
    base, target = Root(os.fspath(root)), resolve_beside(skill.path, reference.path)
    if not skill.folder or target is None:
        raise FormatError(reference.path, "is not in a folder of the skill's own")
    if not target.lower().endswith(".md"):
        raise FormatError(reference.path, "is not a markdown file")
    real = base.resolve(target)
    if not real.startswith(f"{base.resolve(skill.folder)}/"):
        raise FormatError(reference.path, "leads out of the skill's folder")
    return base.read(real, MAX_BYTES).decode("utf-8-sig", "replace")
