"""The text of a reference, a script or an asset, read when it is asked for: a file of the skill's own folder, and no
other."""

from __future__ import annotations

import hashlib
import os
import posixpath
from pathlib import Path

from clew.decode_errors import suggest
from clew.errors import FormatError, ValidationError
from clew.skills.discovery.reference_search import ReferencePlace, read_reference
from clew.skills.files.document import MAX_BYTES
from clew.skills.files.tree_walk import walk
from clew.skills.formats.digests import bundle_of, digest_hashed, hash_files
from clew.skills.formats.safe_open import Root
from clew.skills.manifest import Skill, SkillLink


def path_of(reference: SkillLink) -> str:
    """Its path from the skill's file, as references are named."""
    return posixpath.normpath(reference.path)


def find_reference(skill: Skill, wanted: str) -> SkillLink:
    """The reference with this path, or this text. Raises ValidationError with those that there are."""
    for each in skill.references:
        if wanted in (path_of(each), each.path, each.text):
            return each
    known = tuple(path_of(each) for each in skill.references)
    hint = suggest(wanted, known, "Its references are") if known else "It has none"
    raise ValidationError(f"skill {skill.name} has no reference {wanted[:200]!r}", allowed=known, hint=hint)


class OwnReferences:
    """The references of skills below one root, as the digests of the skills say. Safe to use from several threads."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, tuple[str, dict[str, bytes]]] = {}

    def read(self, skill: Skill, reference: SkillLink) -> str:
        """The text of a reference. Only bytes that make up the skill's digest are given: consent goes no further.

        Raises ValidationError where the skill has no folder of its own, or the file is no part of it or has changed,
        and as `read_reference`.
        """
        if not skill.folder:
            raise ValidationError(f"the reference {reference.path!r} is not in a folder of the skill's own")

        def check(real: str, raw: bytes) -> None:
            found = hashlib.sha256(raw).digest()
            if self._members(skill).get(real) != found:
                self._known.pop(skill.name, None)
                message = f"the reference {reference.path!r} is no part of skill {skill.name} as the user agreed to it"
                raise ValidationError(message, hint="Read it again, or look at the folder of the skill")

        place = ReferencePlace(skill=skill.name, source=skill.path, home=skill.folder, path=reference.path)
        return read_reference(self._root, place, check)

    def read_file(self, skill: Skill, path: str) -> str:
        """The text of a script or an asset, whose path is from the skill's folder. Raises ValidationError where it is
        no part of the skill as the user agreed to it, and FormatError where it cannot be read or is no text."""
        root = Root(os.fspath(self._root))
        real = root.resolve(f"{skill.folder}/{path}")
        raw = root.read(real, MAX_BYTES)
        if self._members(skill).get(real) != hashlib.sha256(raw).digest():
            self._known.pop(skill.name, None)
            raise ValidationError(f"the file {path!r} is no part of skill {skill.name} as the user agreed to it")
        try:
            return raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise FormatError(path, "is not UTF-8 text") from None

    def _members(self, skill: Skill) -> dict[str, bytes]:
        """The hashes of its files by their real paths; none where they are not what its digest says."""
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
