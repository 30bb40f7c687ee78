"""Documentation of installed packages: descriptions, READMEs and docstrings. A package is read on demand, and again
when its version changes; its code is parsed, never imported."""

from __future__ import annotations

import ast
import asyncio
import csv
import inspect
import os
from collections.abc import Iterator, Sequence
from email import message_from_string
from email.message import Message
from pathlib import Path

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.errors import NotFound
from clew.fences import clean
from clew.knowledge.code.file_content import Content, blob_id, read_content, readable_text
from clew.knowledge.documents.sections import MAX_PIECES, Piece, markdown_pieces, plain_pieces, restructured_pieces
from clew.knowledge.documents.store import Document, Saved, find_saved, save_version
from clew.knowledge.project.manifests import (
    Declared,
    Manifest,
    Place,
    find_npm,
    find_python,
    normal_name,
    read_manifests,
)
from clew.secrecy import mask_document
from clew.trail.kinds import NodeType, Trust, Verification
from clew.trail.store import Trail

COLLECTION = "packages"
MAX_MODULES, MAX_NAMES = 200, 1_000
MAX_SOURCE, MAX_DOC = 500_000, 8_000
"""Bytes of a module that is parsed, and characters of a docstring."""
_ECOSYSTEMS = ("npm", "python")
_Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Packages:
    """The packages that the manifests of a project declare."""

    def __init__(self, trail: Trail, clock: Clock, root: Path, *, by: Principal) -> None:
        self._trail, self._clock, self._root, self._by = trail, clock, root, by

    async def names(self) -> list[Declared]:
        """The declared packages, sorted, each once."""
        return _named(await asyncio.to_thread(read_manifests, self._root))

    async def mentioned(self, text: str) -> list[Declared]:
        """The packages that a text names as a whole word."""
        words = {normal_name(word.strip(".,;:!?()`'\"")) for word in text.split()}
        return [each for each in await self.names() if normal_name(each.name) in words]

    async def learn(self, name: str) -> Saved:
        """Store the documentation of a package; a version that is stored already is not written again.

        Raises NotFound for a package that no manifest declares or that is not installed.
        """
        wanted = await self._find_declared(name)
        place, version = await asyncio.to_thread(_find_installed, self._root, wanted)
        key = f"package:{wanted.ecosystem}:{wanted.name}"
        if saved := await find_saved(self._trail, key, version, by=self._by):
            return saved
        title, read = f"{wanted.name} {version}", _read_npm if wanted.ecosystem == "npm" else _read_python
        pieces, home = await asyncio.to_thread(read, wanted.name, title, place)
        document = Document(
            key=key,
            collection=COLLECTION,
            state=version,
            node_type=NodeType.DOCUMENTATION,
            pieces=pieces or plain_pieces(f"{title} has no documentation.", title),
            fields={
                "package": wanted.name,
                "source": title,
                "timestamp": self._clock.now(),
                "verification": Verification.CODE,
                "trust": Trust.STANDARD,
                "metadata": {
                    "package_version": version,
                    "ecosystem": wanted.ecosystem,
                    **({"home": home} if home else {}),
                },
            },
        )
        return await save_version(self._trail, document, by=self._by, keep_earlier=False)

    async def _find_declared(self, name: str) -> Declared:
        manifests = await asyncio.to_thread(read_manifests, self._root)
        for spelling in (name, normal_name(name)):
            for each in _named(manifests):
                if spelling in (each.name, normal_name(each.name)):
                    return each
        broken = "; ".join(f"{each.path} {each.problem}" for each in manifests if each.problem)
        hint = f"Mend these first: {broken}" if broken else ""
        raise NotFound("package in the manifests of this project", name, hint=hint)


def _named(manifests: Sequence[Manifest]) -> list[Declared]:
    found = [each for manifest in manifests for each in manifest.packages if each.ecosystem in _ECOSYSTEMS]
    once = {(each.ecosystem, each.name): each for each in reversed(found)}
    return [once[key] for key in sorted(once)][:MAX_NAMES]


def _find_installed(root: Path, wanted: Declared) -> Place:
    found = find_npm(root, wanted.name) if wanted.ecosystem == "npm" else find_python(root, wanted.name)
    if found is None:
        raise NotFound("package installed in this project", wanted.name)
    return Place(found.path, found.version[:50] or "0")


def _read_npm(name: str, title: str, place: str) -> tuple[list[Piece], str]:
    """The sections of the README of an npm package."""
    names = ("README.md", "readme.md", "Readme.md", "README.markdown", "README")
    found = next((content for each in names if (content := read_content(place, each)) is not None), None)
    if found is None or found.left_out:
        return [], ""
    file, hash = f"node_modules/{name}/{found.path}", blob_id(found.body)
    pieces = markdown_pieces(readable_text(found.body), title)
    return [msgspec.structs.replace(each, hash=hash, metadata={"file": file}) for each in pieces], ""


# -- Python ----------------------------------------------------------------------------------------------------


def _read_python(name: str, title: str, place: str) -> tuple[list[Piece], str]:
    """The description of a Python package, then its docstrings; and its address."""
    site, _, info = place.rpartition("/")
    found = read_content(site, f"{info}/METADATA")
    metadata = message_from_string(readable_text(found.body) if found is not None else "")
    pieces = [*_description(metadata, title, f"{info}/METADATA"), *_docstrings(site, info)]
    home = next((url for url in _addresses(metadata) if url.startswith(("https://", "http://"))), "")
    unique = {piece.key: piece for piece in reversed(pieces[:MAX_PIECES])}
    return list(reversed(unique.values())), home


def _description(metadata: Message, title: str, file: str) -> list[Piece]:
    """The summary and the long description, without line numbers."""
    body = metadata.get_payload()
    text = body if isinstance(body, str) and body.strip() else str(metadata.get("Description", ""))
    form = str(metadata.get("Description-Content-Type", "")).lower()
    cut = markdown_pieces if "markdown" in form else plain_pieces if "plain" in form else restructured_pieces
    pieces = cut(text, title) if text.strip() else []
    if summary := str(metadata.get("Summary", "")).strip():
        pieces = [Piece(key="summary", name=title, text=f"{title}: {summary}"), *pieces]
    return [msgspec.structs.replace(each, first=0, last=0, metadata={"file": file}) for each in pieces]


def _addresses(metadata: Message) -> list[str]:
    """The addresses of a package, documentation and home page first."""
    labelled = [str(each).partition(",") for each in metadata.get_all("Project-URL", [])]
    ranked = sorted(labelled, key=lambda each: not each[0].strip().lower().startswith(("doc", "home")))
    return [*(each[2].strip() for each in ranked), str(metadata.get("Home-page", ""))]


def _docstrings(site: str, info: str) -> Iterator[Piece]:
    """The docstrings of public modules, top-level modules first. Names that a package re-exports from a private module
    are shown under the name of the package."""
    recorded = sorted(_recorded(site, info), key=lambda path: (path.count("/"), path))
    public = [path for path in recorded if all(map(_is_public, path.split("/")))]
    for path in public[:MAX_MODULES]:
        module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        inner = _private_imports(site, path) if path == f"{module}/__init__.py" else []
        for file in (path, *(each for each in inner if each in recorded)):
            yield from _module_pieces(site, file, module)


def _recorded(site: str, info: str) -> list[str]:
    """The modules in a package's RECORD. Paths that lead outside of the package folder are ignored."""
    record = read_content(site, f"{info}/RECORD")
    text = record.body.decode("utf-8", "replace") if record is not None else ""
    paths = [row[0] for row in csv.reader(text.splitlines()) if row and row[0].endswith(".py")]
    return [path for path in paths if not os.path.isabs(path) and ".." not in path.split("/")]


def _is_public(part: str) -> bool:
    return part == "__init__.py" or (not part.startswith(("_", ".", "test")) and part != "conftest.py")


def _parse(content: Content | None) -> ast.Module | None:
    if content is None or content.left_out or len(content.body) > MAX_SOURCE:
        return None
    try:
        return ast.parse(content.body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _private_imports(site: str, path: str) -> list[str]:
    """The files of private sibling modules that an `__init__` imports from."""
    tree = _parse(read_content(site, path))
    imports = [each for each in tree.body if isinstance(each, ast.ImportFrom) and each.level == 1] if tree else []
    names = dict.fromkeys(each.module or "" for each in imports)
    folder = path.rpartition("/")[0]
    return [f"{folder}/{name}.py" for name in names if name.startswith("_") and "." not in name]


def _module_pieces(site: str, path: str, module: str) -> Iterator[Piece]:
    content = read_content(site, path)
    tree = _parse(content)
    if tree is None or content is None:
        return
    if doc := ast.get_docstring(tree):
        yield _piece(module, f"module {module}", doc, tree.body[0], content)
    for name, node in _public_definitions(tree.body, module):
        if doc := ast.get_docstring(node):
            yield _piece(name, _signature(node, name), doc, node, content)


def _public_definitions(body: list[ast.stmt], within: str) -> Iterator[tuple[str, _Definition]]:
    for node in body:
        if isinstance(node, _Definition) and not node.name.startswith("_"):
            name = f"{within}.{node.name}"
            yield name, node
            if isinstance(node, ast.ClassDef):
                yield from _public_definitions([each for each in node.body if not isinstance(each, ast.ClassDef)], name)


def _signature(node: _Definition, name: str) -> str:
    if isinstance(node, ast.ClassDef):
        return f"class {name}({', '.join(ast.unparse(base) for base in node.bases)})" if node.bases else f"class {name}"
    prefix = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{prefix} {name}({ast.unparse(node.args)}){returns}"


def _piece(name: str, signature: str, doc: str, node: ast.stmt, content: Content) -> Piece:
    text = clean(mask_document(f"{signature[:1_000]}\n\n{inspect.cleandoc(doc)}"))[:MAX_DOC]
    return Piece(
        key=f"doc:{name}",
        name=name[:200],
        text=text,
        first=node.lineno,
        last=node.end_lineno or node.lineno,
        hash=content.blob,
        metadata={"file": content.path},
    )
