"""What the packages of a project say of themselves: their description and docstrings, as they are installed in the
project's own environment. One package at a time, when it is asked for, and again when its version changes."""

from __future__ import annotations

import asyncio
import csv
import os
from collections.abc import Iterator, Sequence
from email import message_from_string
from email.message import Message
from pathlib import Path

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.errors import NotFound
from clew.knowledge.code.file_content import blob_id, read_content, readable_text
from clew.knowledge.manifests.installed import Place, find_npm, find_python
from clew.knowledge.manifests.reading import read_manifests
from clew.knowledge.manifests.records import Declared, Manifest, normal_name
from clew.knowledge.references.docstrings import docstring_pieces, offered_modules
from clew.knowledge.references.keeping import Document, Kept, keep, read_heads
from clew.knowledge.references.sections import (
    MAX_PIECES,
    Piece,
    markdown_pieces,
    plain_pieces,
    restructured_pieces,
)
from clew.trail.kinds import NodeType, Trust, Verification
from clew.trail.store import Trail

COLLECTION = "packages"
MAX_MODULES = 200
MAX_NAMES = 1_000
_READ = ("npm", "python")
"""The ecosystems whose installed packages say something of themselves."""


class Installed(msgspec.Struct, frozen=True, kw_only=True):
    """A package as it is installed. `place` is the folder that its files are below, `home` its address."""

    named: Declared
    version: str
    place: str
    home: str = ""
    pieces: Sequence[Piece] = ()


class Packages:
    """The packages that the manifests of a project name."""

    def __init__(self, trail: Trail, clock: Clock, root: Path, *, by: Principal) -> None:
        self._trail, self._clock, self._root, self._by = trail, clock, root, by

    async def names(self) -> list[Declared]:
        """What the manifests name, in order, each once."""
        return _named(await asyncio.to_thread(read_manifests, self._root))

    async def mentioned(self, text: str) -> list[Declared]:
        """The packages that a text names as a whole word."""
        words = {normal_name(word.strip(".,;:!?()`'\"")) for word in text.split()}
        return [each for each in await self.names() if normal_name(each.name) in words]

    async def learn(self, name: str) -> Kept:
        """Let the trail have what a package says of itself; nothing is written for a version that is there.

        Raises NotFound for a package that no manifest names or that is not installed.
        """
        wanted = await self._find_named(name)
        place, version = await asyncio.to_thread(_find, self._root, wanted)
        key = f"package:{wanted.ecosystem}:{wanted.name}"
        head = (await read_heads(self._trail, COLLECTION, by=self._by)).get(key)
        if head is not None and head.state == version:
            return Kept(ids=head.ids)
        installed = await asyncio.to_thread(read_package, wanted, version, place)
        return await keep(self._trail, self._document(key, installed), by=self._by)

    async def _find_named(self, name: str) -> Declared:
        manifests = await asyncio.to_thread(read_manifests, self._root)
        for spelling in (name, normal_name(name)):
            for each in _named(manifests):
                if spelling in (each.name, normal_name(each.name)):
                    return each
        broken = "; ".join(f"{each.path} {each.problem}" for each in manifests if each.problem)
        hint = f"Mend these first: {broken}" if broken else ""
        raise NotFound("package in the manifests of this project", name, hint=hint)

    def _document(self, key: str, installed: Installed) -> Document:
        source = f"{installed.named.name} {installed.version}"
        return Document(
            key=key,
            collection=COLLECTION,
            state=installed.version,
            node_type=NodeType.DOCUMENTATION,
            pieces=installed.pieces or plain_pieces(f"{source} says nothing of itself.", source),
            fields={
                "package": installed.named.name,
                "source": source,
                "timestamp": self._clock.now(),
                "verification": Verification.CODE,
                "trust": Trust.STANDARD,
                "metadata": {
                    "package_version": installed.version,
                    "ecosystem": installed.named.ecosystem,
                    **({"home": installed.home} if installed.home else {}),
                },
            },
        )


def _named(manifests: Sequence[Manifest]) -> list[Declared]:
    found = [each for manifest in manifests for each in manifest.packages if each.ecosystem in _READ]
    once = {(each.ecosystem, each.name): each for each in reversed(found)}
    return [once[key] for key in sorted(once)][:MAX_NAMES]


def read_package(named: Declared, version: str, place: str) -> Installed:
    """What a package says of itself, in pieces: its description first, then its docstrings."""
    if named.ecosystem == "npm":
        return _read_npm(named, version, place)
    site, _, info = place.rpartition("/")
    told = _metadata(site, info)
    pieces = [*_description(told, f"{named.name} {version}", f"{info}/METADATA"), *_docstrings(site, info)]
    home = next((url for url in _addresses(told) if url.startswith(("https://", "http://"))), "")
    unique = {piece.key: piece for piece in reversed(pieces[:MAX_PIECES])}
    return Installed(named=named, version=version, place=place, home=home, pieces=list(reversed(unique.values())))


def _find(root: Path, wanted: Declared) -> Place:
    """Where a package is installed and in which version. Raises NotFound."""
    found = find_npm(root, wanted.name) if wanted.ecosystem == "npm" else find_python(root, wanted.name)
    if found is None:
        raise NotFound("package installed in this project", wanted.name)
    return Place(found.path, found.version[:50] or "0")


def _metadata(site: str, info: str) -> Message:
    found = read_content(site, f"{info}/METADATA")
    return message_from_string(readable_text(found.body) if found is not None else "")


def _description(told: Message, title: str, file: str) -> list[Piece]:
    """The summary and the long description. Lines are not those of a file that anybody would open."""
    body = told.get_payload()
    text = body if isinstance(body, str) and body.strip() else str(told.get("Description", ""))
    form = str(told.get("Description-Content-Type", "")).lower()
    cut = markdown_pieces if "markdown" in form else plain_pieces if "plain" in form else restructured_pieces
    summary = str(told.get("Summary", "")).strip()
    pieces = cut(text, title) if text.strip() else []
    if summary:
        pieces = [Piece(key="summary", name=title, text=f"{title}: {summary}"), *pieces]
    return [msgspec.structs.replace(each, first=0, last=0, metadata={"file": file}) for each in pieces]


def _docstrings(site: str, info: str) -> Iterator[Piece]:
    """The docstrings of the public modules, those nearest to the top first. What a package brings in from a private
    module of its own is shown under the name of the package."""
    recorded = sorted(_recorded(site, info), key=lambda path: (path.count("/"), path))
    modules = {path: _module_name(path) for path in recorded if all(map(_is_public, path.split("/")))}
    for path in list(modules)[:MAX_MODULES]:
        content = read_content(site, path)
        if content is None or content.left_out:
            continue
        yield from _of_module(modules[path], content.body, content.blob, path)
        if path.endswith("/__init__.py") and path.count("/") == 1:
            folder = path.rpartition("/")[0]
            for name in offered_modules(content.body):
                inner = read_content(site, f"{folder}/{name}.py") if f"{folder}/{name}.py" in recorded else None
                if inner is not None and not inner.left_out:
                    yield from _of_module(folder, inner.body, inner.blob, inner.path)


def _of_module(module: str, body: bytes, blob: str, path: str) -> Iterator[Piece]:
    for piece in docstring_pieces(module, body, blob):
        yield msgspec.structs.replace(piece, metadata={"file": path})


def _recorded(site: str, info: str) -> list[str]:
    """The modules that a package installed. A record may name any path; those that lead elsewhere are none of it."""
    record = read_content(site, f"{info}/RECORD")
    text = record.body.decode("utf-8", "replace") if record is not None else ""
    paths = [row[0] for row in csv.reader(text.splitlines()) if row and row[0].endswith(".py")]
    return [path for path in paths if not os.path.isabs(path) and ".." not in path.split("/")]


def _module_name(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _is_public(part: str) -> bool:
    return part == "__init__.py" or (not part.startswith(("_", ".", "test")) and part != "conftest.py")


def _addresses(told: Message) -> list[str]:
    """The addresses that a package gives, that of its documentation first."""
    labelled = [str(each).partition(",") for each in told.get_all("Project-URL", [])]
    ranked = sorted(labelled, key=lambda each: not each[0].strip().lower().startswith(("doc", "home")))
    return [*(each[2].strip() for each in ranked), str(told.get("Home-page", ""))]


def _read_npm(named: Declared, version: str, place: str) -> Installed:
    names = (name for name in ("README.md", "readme.md", "Readme.md", "README.markdown", "README"))
    found = next((content for name in names if (content := read_content(place, name)) is not None), None)
    if found is None or found.left_out:
        return Installed(named=named, version=version, place=place)
    file = f"node_modules/{named.name}/{found.path}"
    pieces = [
        msgspec.structs.replace(piece, hash=blob_id(found.body), metadata={"file": file})
        for piece in markdown_pieces(readable_text(found.body), f"{named.name} {version}")
    ]
    return Installed(named=named, version=version, place=place, pieces=pieces)
