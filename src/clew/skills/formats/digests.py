"""One digest for all that a skill holds: the names and contents of its files, which of them may be run as programs, and
what its refused links say.

Consent is bound to it. Where not all of a folder can be read, there is none.
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
"""Of a root that is a skill itself, only these folders belong to it."""


class Bundle(msgspec.Struct, frozen=True):
    """The files of a skill by their paths from its folder, with their real paths, and its refused links."""

    files: tuple[tuple[str, str], ...]
    refused: tuple[tuple[str, str], ...] = ()
    is_whole: bool = True


def bundle_of(walk: TreeWalk, path: str) -> Bundle:
    """All files of the folder that was reached as `path`, in the order of their names."""
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
    """A file of a bundle as it was read: its path from the folder, its real path, its SHA-256 and its size, and whether
    it may be run as a program."""

    name: str
    real: str
    sha256: bytes
    size: int
    is_program: bool = False


def digest_bundle(root: Root, bundle: Bundle, known: Mapping[str, bytes]) -> str:
    """The digest of a bundle as `hash_files` reads it. Raises FormatError."""
    return digest_hashed(bundle, hash_files(root, bundle, known))


def digest_hashed(bundle: Bundle, hashed: Iterable[HashedFile]) -> str:
    """The digest of a bundle whose files were read already; without programs, the same on every system."""
    parts: list[bytes] = []
    for each in hashed:
        parts += [b"program" if each.is_program else b"file", os.fsencode(each.name), each.sha256]
    for name, says in bundle.refused:
        parts += [b"link", os.fsencode(name), os.fsencode(says)]
    return digest_parts(parts)


def hash_files(root: Root, bundle: Bundle, known: Mapping[str, bytes]) -> tuple[HashedFile, ...]:
    """Each file, read once; those of `known` count as they were read already, whatever they are by now.

    Raises FormatError where a file cannot be read, or there is too much of them.
    """
    if not bundle.is_whole:
        raise FormatError("", "holds folders that were not read")
    if len(bundle.files) > MAX_FILES:
        raise FormatError("", f"holds more than {MAX_FILES:,} files")
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
