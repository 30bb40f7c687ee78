"""Documentation of installed packages: descriptions, READMEs and docstrings. A package is read on demand, and again
when its version changes; its code is parsed, never imported."""

from __future__ import annotations

import ast
import asyncio
import csv
import inspect
import os
import re
from collections.abc import Iterator
from email import message_from_string
from pathlib import Path

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.errors import NotFound
from clew.fences import clean
from clew.knowledge.code.file_content import FileContent, blob_id, read_content, readable_text
from clew.knowledge.documents.readers import MAX_PIECES, DocumentPiece, text_pieces
from clew.knowledge.documents.store import CutDocument, find_saved, save_document
from clew.knowledge.nodes.kinds import NodeType, TrustLevel, Verification
from clew.knowledge.project.manifests import DeclaredPackage, find_npm, find_python, normal_name, read_manifests
from clew.secrecy import mask_document
from clew.trail.store import Trail

_IN_TESTS = re.compile(r"\.\..*|tests?|testing|test_.*|conftest\.py")
MAX_MODULES = 200
MAX_SOURCE, MAX_DOC = 500_000, 8_000
"""Bytes of a module that is parsed, and characters of a docstring."""
_Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
_Documented = ast.Module | _Definition


class PackageDocs:
    """The packages that the manifests of a project declare."""

    def __init__(self, trail: Trail, clock: Clock, root: Path, *, by: Principal) -> None:
        self._trail, self._clock, self._root, self._by = trail, clock, root, by

    async def mentioned(self, text: str) -> list[DeclaredPackage]:
        """The declared packages that a text names as a whole word, each once."""
        words = {normal_name(word.strip(".,;:!?()`'\"")) for word in text.split()}
        manifests = await asyncio.to_thread(read_manifests, self._root)
        found = [each for manifest in manifests for each in manifest.packages if each.ecosystem in ("npm", "python")]
        return list({each.name: each for each in found if normal_name(each.name) in words}.values())

    async def learn(self, package: DeclaredPackage) -> tuple[str, ...]:
        """Store the documentation of a package and return the ids of its nodes; a version that is stored already is not
        written again. Raises NotFound for a package that is not installed."""
        is_npm = package.ecosystem == "npm"
        found = await asyncio.to_thread(find_npm if is_npm else find_python, self._root, package.name)
        if found is None:
            raise NotFound("package installed in this project", package.name)
        key, version = f"package:{package.ecosystem}:{package.name}", found.version[:50] or "0"
        if saved := await find_saved(self._trail, key, version, by=self._by):
            return tuple(each.id for each in saved)
        title = f"{package.name} {version}"
        pieces = await asyncio.to_thread(_read_npm if is_npm else _read_python, package.name, title, found.path)
        document = CutDocument(
            key=key,
            state=version,
            node_type=NodeType.DOCUMENTATION,
            pieces=pieces or text_pieces("none", f"{title} has no documentation.", title),
            fields={
                "package": package.name,
                "source": title,
                "timestamp": self._clock.now(),
                "verification": Verification.CODE,
                "trust": TrustLevel.STANDARD,
            },
        )
        return (await save_document(self._trail, document, by=self._by)).ids


def _read_npm(name: str, title: str, place: str) -> list[DocumentPiece]:
    """The sections of the README of an npm package."""
    names = ("README.md", "readme.md", "Readme.md", "README.markdown", "README")
    found = next((content for each in names if (content := read_content(place, each)) is not None), None)
    if found is None or found.left_out:
        return []
    file, hash = f"node_modules/{name}/{found.path}", blob_id(found.body)
    pieces = text_pieces("readme.md", readable_text(found.body), title)
    return [msgspec.structs.replace(each, hash=hash, metadata={"file": file}) for each in pieces]


# -- Python ----------------------------------------------------------------------------------------------------


def _read_python(name: str, title: str, place: str) -> list[DocumentPiece]:
    """The description of a Python package, then its docstrings."""
    site, _, info = place.rpartition("/")
    pieces = [*_description(site, f"{info}/METADATA", title), *_docstrings(site, info)]
    unique = {piece.key: piece for piece in reversed(pieces[:MAX_PIECES])}
    return list(reversed(unique.values()))


def _description(site: str, file: str, title: str) -> list[DocumentPiece]:
    """The summary and the long description, without line numbers."""
    found = read_content(site, file)
    metadata = message_from_string(readable_text(found.body) if found is not None else "")
    body = metadata.get_payload()
    text = body if isinstance(body, str) and body.strip() else str(metadata.get("Description", ""))
    form = str(metadata.get("Description-Content-Type", "")).lower()
    path = "description.md" if "markdown" in form else "description.rst"
    pieces = text_pieces(path, text, title) if text.strip() else []
    if summary := str(metadata.get("Summary", "")).strip():
        pieces = [DocumentPiece(key="summary", name=title, text=f"{title}: {summary}"), *pieces]
    return [msgspec.structs.replace(each, first=0, last=0, metadata={"file": file}) for each in pieces]


def _docstrings(site: str, info: str) -> Iterator[DocumentPiece]:
    """The docstrings of modules, classes and functions, top-level modules first. Private parts of a module's name are
    left out: packages re-export the names of private modules."""
    modules = sorted(_recorded(site, info), key=lambda path: (path.count("/"), path))
    for path in modules[:MAX_MODULES]:
        content = read_content(site, path)
        if content is None or content.left_out or len(content.body) > MAX_SOURCE:
            continue
        module = ".".join(part for part in path.removesuffix(".py").split("/") if not part.startswith("_"))
        try:
            documented = list(_documented(ast.parse(content.body), module))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for name, node, doc in documented:
            yield _piece(name, node, doc, content)


def _recorded(site: str, info: str) -> list[str]:
    """The modules in a package's RECORD without tests. Paths that lead outside of the package folder are ignored."""
    record = read_content(site, f"{info}/RECORD")
    text = record.body.decode("utf-8", "replace") if record is not None else ""
    paths = [row[0] for row in csv.reader(text.splitlines()) if row and row[0].endswith(".py")]
    return [
        path
        for path in paths
        if not os.path.isabs(path) and not any(_IN_TESTS.fullmatch(part) for part in path.split("/"))
    ]


def _documented(node: _Documented, name: str) -> Iterator[tuple[str, _Documented, str]]:
    """A node and the public definitions in it, with their names and docstrings."""
    if doc := ast.get_docstring(node):
        yield name, node, doc
    for inner in node.body if isinstance(node, ast.Module | ast.ClassDef) else ():
        if isinstance(inner, _Definition) and not inner.name.startswith("_"):
            yield from _documented(inner, f"{name}.{inner.name}")


def _signature(node: _Documented, name: str) -> str:
    if isinstance(node, ast.Module):
        return f"module {name}"
    if isinstance(node, ast.ClassDef):
        return f"class {name}({', '.join(map(ast.unparse, node.bases))})"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"def {name}({ast.unparse(node.args)}){returns}"


def _piece(name: str, node: _Documented, doc: str, content: FileContent) -> DocumentPiece:
    text = clean(mask_document(f"{_signature(node, name)[:1_000]}\n\n{inspect.cleandoc(doc)}"))[:MAX_DOC]
    place = node.body[0] if isinstance(node, ast.Module) else node
    return DocumentPiece(
        key=f"doc:{name}",
        name=name[:200],
        text=text,
        first=place.lineno,
        last=place.end_lineno or place.lineno,
        hash=content.blob,
        metadata={"file": content.path},
    )
