"""Files of skills for clients that read them: addresses, digests and bytes. Only trusted skills are served, and only
while their files are as the user agreed to them."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from clew.catalog.skills.definitions import FolderDefinitions
from clew.errors import FormatError, NotFound
from clew.skills.files.document import MAX_BYTES, read_document
from clew.skills.files.tree_walk import is_plain, walk
from clew.skills.formats.digests import Bundle, HashedFile, bundle_of, digest_hashed, hash_files
from clew.skills.formats.safe_open import Root
from clew.skills.manifest import Skill
from clew.tools.files.folder import is_secret_path

SCHEME = "skill://"
MAIN = "SKILL.md"
MAX_FILES, MAX_TOTAL = 512, 16 * 1_048_576
"""The limits of one served skill, as set by the MCP extension."""

_NAME = re.compile(r"(?!-)(?!.*--)[a-z0-9-]{1,64}(?<!-)")
_MAX_DESCRIPTION, _MAX_COMPATIBILITY = 1_024, 500


class ServedFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file at its address. `path` is the real one, relative to the root."""

    uri: str
    sha256: str
    size: int
    path: str


class ServedSkill(msgspec.Struct, frozen=True, kw_only=True):
    """A skill with its front matter as it is written, and all its files, SKILL.md among them."""

    uri: str
    name: str
    description: str
    frontmatter: dict[str, Any]
    files: tuple[ServedFile, ...]


class SkillFiles:
    """Skills whose names and front matter follow the rules of agentskills.io, in the order of their addresses. `ask`
    finds other skills too."""

    def __init__(self, definitions: FolderDefinitions) -> None:
        self._definitions = definitions
        self._known: dict[str, tuple[str, ServedSkill]] = {}

    async def all(self) -> list[ServedSkill]:
        """Return all skills that are served."""
        found = await asyncio.to_thread(lambda: [self._served(each) for each in self._free()])
        return sorted((each for each in found if each is not None), key=lambda each: each.uri)

    async def get(self, uri: str) -> ServedSkill:
        """The skill whose SKILL.md is at this address. Raises NotFound."""
        found = await self._of(uri)
        if found is None or found.uri != uri:
            raise NotFound("skill", uri[:200])
        return found

    async def read(self, uri: str) -> bytes:
        """The bytes of a file, which match its digest. Raises NotFound if it does not exist or the file has changed
        since."""
        skill = await self._of(uri)
        file = next((each for each in skill.files if each.uri == uri), None) if skill is not None else None
        if file is None:
            raise NotFound("skill file", uri[:200])
        try:
            content = await asyncio.to_thread(self._root().read, file.path, MAX_TOTAL)
        except FormatError:
            raise NotFound("skill file", uri[:200]) from None
        if hashlib.sha256(content).hexdigest() != file.sha256:
            raise NotFound("skill file", uri[:200])
        return content

    async def _of(self, uri: str) -> ServedSkill | None:
        """The skill that an address is within."""
        name = uri.removeprefix(SCHEME).partition("/")[0] if uri.startswith(SCHEME) else ""
        skill = next((each for each in self._free() if quote(each.name, safe="") == name), None)
        return await asyncio.to_thread(self._served, skill) if skill is not None else None

    def _free(self) -> list[Skill]:
        skills = self._definitions.manifest.skills.values()
        return [each for each in skills if not self._definitions.withhold(each)]

    def _root(self) -> Root:
        return Root(os.fspath(self._definitions.source.root))

    def _served(self, skill: Skill) -> ServedSkill | None:
        known = self._known.get(skill.name)
        if known is not None and known[0] == skill.digest:
            return known[1]
        found = _serve(self._root(), skill)
        if found is not None:
            self._known[skill.name] = (skill.digest, found)
        return found


def _serve(root: Root, skill: Skill) -> ServedSkill | None:
    """Return the served skill, or None if it breaks a rule of the extension or changed since the user agreed to it."""
    try:
        real = root.resolve(skill.path)
        raw = root.read(real, MAX_BYTES)
        bundle = _bundle(root, skill, real)
        hashed = hash_files(root, bundle, {real: raw})  # the served bytes are the hashed bytes
        digest = digest_hashed(bundle, hashed) if skill.folder else hashed[0].sha256.hex()
        meta = _plain(read_document(raw, skill.path).meta)
        is_small = len(hashed) <= MAX_FILES and sum(each.size for each in hashed) <= MAX_TOTAL
        if digest != skill.digest or not is_small or not _is_sound(meta):
            return None
        return _described(skill, meta, hashed, real)
    except FormatError:
        return None


def _bundle(root: Root, skill: Skill, real: str) -> Bundle:
    if not skill.folder:
        return Bundle(((MAIN, real),))
    return bundle_of(walk(root, (skill.folder,), is_kept=True), skill.folder)


def _described(skill: Skill, meta: dict[str, Any], hashed: Sequence[HashedFile], real: str) -> ServedSkill | None:
    """The description of a served file. The last part of the path to SKILL.md is the name in the file; the first part
    distinguishes skills of the same name."""
    own = quote(skill.name, safe="")
    base = f"{SCHEME}{own}" if skill.name == meta["name"] else f"{SCHEME}{own}/{meta['name']}"
    files = []
    for each in hashed:
        if is_secret_path(each.name):
            continue
        if not is_plain(each.name):
            return None
        shown = MAIN if each.real == real else each.name
        uri = f"{base}/{quote(shown, safe='/')}"
        files.append(ServedFile(uri=uri, sha256=each.sha256.hex(), size=each.size, path=each.real))
    about = str(meta["description"])
    return ServedSkill(uri=f"{base}/{MAIN}", name=skill.name, description=about, frontmatter=meta, files=tuple(files))


def _plain(meta: dict[str, Any]) -> dict[str, Any]:
    """The front matter as JSON values; empty if it has a value that JSON cannot represent."""
    try:
        found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(meta))
    except (TypeError, ValueError, RecursionError):
        return {}
    return found


def _is_sound(meta: dict[str, Any]) -> bool:
    """Whether front matter follows the rules, so that a client accepts it."""
    name, about = meta.get("name"), meta.get("description")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return False
    if not isinstance(about, str) or not about.strip() or len(about) > _MAX_DESCRIPTION:
        return False
    texts = [meta[key] for key in ("license", "allowed-tools", "compatibility") if key in meta]
    if not all(isinstance(each, str) for each in texts) or len(meta.get("compatibility", " ")) > _MAX_COMPATIBILITY:
        return False
    notes = meta.get("metadata", {})
    return isinstance(notes, dict) and all(isinstance(each, str) for each in notes.values())
