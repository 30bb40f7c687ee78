"""The digest of a skill: names and contents of its files, their executable bits, and the targets of refused links.

The user's consent is bound to the digest. A folder that cannot be read completely has none.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping

import msgspec

from clew.errors import FormatError
from clew.skills.files.tree_walk import SKILL_FILES, TreeWalk
from clew.skills.formats.safe_open import Root
from clew.trust import MAX_BYTES, digest_parts

MAX_FILES = 5_000
PARTS = ("scripts", "references", "assets")
"""If the root itself is a skill, only these of its folders belong to the skill."""


class Bundle(msgspec.Struct, frozen=True):
    """The files of a skill by their paths within its folder, with their real paths, and its refused links."""

    files: tuple[tuple[str, str], ...]
    refused: tuple[tuple[str, str], ...] = ()
    is_whole: bool = True


def bundle_of(walk: TreeWalk, path: str) -> Bundle:
    """Return all files of the folder at `path`, sorted by name."""
    begins = [path] if path else PARTS
    skipped = len(path) + 1 if path else 0
    files: list[tuple[str, str]] = []
    refused: list[tuple[str, str]] = []
    for folder in (each for begin in begins for each in walk.below(begin)):
        files += [(folder.at(name)[skipped:], real) for name, real in folder.files.items()]
        refused += [(folder.at(name)[skipped:], says) for name, says in folder.refused.items()]
    if not path:
        files += [(name, real) for name, real in walk.folders[""].files.items() if name in SKILL_FILES]
    is_whole = not any(f"{each}/".startswith(f"{begin}/") for each in walk.left_out for begin in begins)
    return Bundle(tuple(sorted(files)), tuple(sorted(refused)), is_whole)


class HashedFile(msgspec.Struct, frozen=True):
    """A file of a bundle: its path within the folder, its real path, SHA-256 and size, and whether it is executable."""

    name: str
    real: str
    sha256: bytes
    size: int
    is_program: bool = False


def digest_bundle(root: Root, bundle: Bundle, known: Mapping[str, bytes]) -> str:
    """Read the files of a bundle and return its digest. Raises FormatError."""
    return digest_hashed(bundle, hash_files(root, bundle, known))


def digest_hashed(bundle: Bundle, hashed: Iterable[HashedFile]) -> str:
    """Return the digest of a bundle whose files are hashed already. Without executables it is the same on every
    system."""
    parts: list[bytes] = []
    for each in hashed:
        parts += [b"program" if each.is_program else b"file", os.fsencode(each.name), each.sha256]
    for name, says in bundle.refused:
        parts += [b"link", os.fsencode(name), os.fsencode(says)]
    return digest_parts(parts)


def hash_files(root: Root, bundle: Bundle, known: Mapping[str, bytes]) -> tuple[HashedFile, ...]:
    """Hash each file of a bundle. For files in `known`, hash the given content and do not read them again.

    Raises FormatError if a file cannot be read, or if there are too many.
    """
    if not bundle.is_whole:
        raise FormatError("", "has folders that cannot be read")
    if len(bundle.files) > MAX_FILES:
        raise FormatError("", f"has more than {MAX_FILES:,} files")
    hashed: list[HashedFile] = []
    room = MAX_BYTES
    for name, real in bundle.files:
        if real in known:
            found, size = hashlib.sha256(known[real]).digest(), len(known[real])
        else:
            found, size = root.digest(real, room)
            room -= size
        hashed.append(HashedFile(name, real, found, size, root.is_program(real)))
    return tuple(hashed)
