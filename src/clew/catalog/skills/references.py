"""Reads the text of a reference, a script or an asset on demand. Only files in the skill's own folder are read."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from clew.decode_errors import suggest
from clew.errors import FormatError, ValidationError
from clew.skills.discovery.skill_records import reference_path
from clew.skills.files.document import MAX_BYTES
from clew.skills.files.tree_walk import is_left_out, walk
from clew.skills.formats.digests import bundle_of, digest_hashed, hash_files
from clew.skills.formats.rules import resolve_beside
from clew.skills.formats.safe_open import Root
from clew.skills.manifest import Skill, SkillLink

ENDING = ".md"


def find_reference(skill: Skill, wanted: str) -> SkillLink:
    """The reference with this path, or this text. Raises ValidationError with the existing references."""
    for each in skill.references:
        if wanted in (reference_path(each), each.path, each.text):
            return each
    known = tuple(reference_path(each) for each in skill.references)
    hint = suggest(wanted, known, "Its references are") if known else "It has none"
    raise ValidationError(f"skill {skill.name} has no reference {wanted[:200]!r}", allowed=known, hint=hint)


class OwnReferences:
    """The references of skills below one root, as the digests of the skills say. Safe to use from several threads."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, tuple[str, dict[str, bytes]]] = {}

    def read(self, skill: Skill, reference: SkillLink) -> str:
        """Return the text of a reference. It must be part of the skill's digest, because consent covers nothing else.

        Raises ValidationError for a skill without a folder, for a file that is outside of the folder, is not markdown,
        or changed since the user agreed to the skill, and FormatError for a file that cannot be read.
        """
        if not skill.folder:
            raise ValidationError(f"the reference {reference.path!r} is not in a folder of the skill's own")
        base = Root(os.fspath(self._root))
        target = resolve_beside(skill.path, reference.path)
        real = base.resolve(target) if target is not None else None
        inside = f"{base.resolve(skill.folder)}/"
        if real is None or not real.startswith(inside) or is_left_out(real) or not real.lower().endswith(ENDING):
            message = f"the reference {reference.path!r} leads out of the folder of its skill"
            raise ValidationError(message, hint="Put the file into the folder of the skill", skillName=skill.name)
        return self._read(base, skill, real, f"the reference {reference.path!r}")

    def read_file(self, skill: Skill, path: str) -> str:
        """Return the text of a script or an asset, by its path in the skill's folder. Raises ValidationError if it
        changed since the user agreed to the skill, and FormatError if it cannot be read or is not text."""
        root = Root(os.fspath(self._root))
        return self._read(root, skill, root.resolve(f"{skill.folder}/{path}"), f"the file {path!r}")

    def _read(self, root: Root, skill: Skill, real: str, shown: str) -> str:
        raw = root.read(real, MAX_BYTES)
        if self._members(skill).get(real) != hashlib.sha256(raw).digest():
            self._known.pop(skill.name, None)
            message = f"{shown} is not part of skill {skill.name} as the user agreed to it"
            raise ValidationError(message, hint="Read it again, or look at the folder of the skill")
        try:
            return raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise FormatError(real, "is not UTF-8 text") from None

    def _members(self, skill: Skill) -> dict[str, bytes]:
        """The hashes of the skill's files by real path; empty if the files do not match the skill's digest."""
        known = self._known.get(skill.name)
        if known is not None and known[0] == skill.digest:
            return known[1]
        root = Root(os.fspath(self._root))
        bundle = bundle_of(walk(root, (skill.folder,), is_kept=True), skill.folder)
        hashed = hash_files(root, bundle, {})
        if digest_hashed(bundle, hashed) != skill.digest:
            return {}
        members = {each.real: each.sha256 for each in hashed}
        self._known[skill.name] = (skill.digest, members)
        return members
