"""Files of one kind, such as changelogs, parsed as they are on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from clew.knowledge.code.file_content import FileContent, read_content
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.models import FileInfo

Parsed = TypeVar("Parsed")


class ParsedFiles(Generic[Parsed]):
    """The files of a folder that `is_wanted` chooses by their paths, and the items that `parse` finds in each. A
    changed file is parsed again; one that cannot be read has no items."""

    def __init__(
        self, code: CodeGraph, is_wanted: Callable[[str], bool], parse: Callable[[FileContent], Sequence[Parsed]]
    ) -> None:
        self._code, self._is_wanted, self._parse = code, is_wanted, parse
        self._files: list[FileInfo] | None = None
        """All files as they were listed last; the same list means that none changed."""
        self._known: dict[str, tuple[str, Sequence[Parsed]]] = {}
        """The blob and the items of each file by its path."""
        self._found: list[Parsed] = []

    async def read(self) -> list[Parsed]:
        """The items of all files in the order of their paths; the same list until one of them changes."""
        await self._code.state(self._known)
        files = await self._code.files()
        if files is self._files:
            return self._found
        blobs = {file.path: file.blob for file in files if self._is_wanted(file.path)}
        if blobs != {path: blob for path, (blob, _) in self._known.items()}:
            self._known = await asyncio.to_thread(self._parse_changed, blobs, self._known)
            self._found = [item for path in sorted(blobs) for item in self._known[path][1]]
        self._files = files
        return self._found

    def _parse_changed(
        self, blobs: dict[str, str], known: dict[str, tuple[str, Sequence[Parsed]]]
    ) -> dict[str, tuple[str, Sequence[Parsed]]]:
        found = {path: each for path, each in known.items() if each[0] == blobs.get(path)}
        for path in blobs.keys() - found.keys():
            content = read_content(self._code.tree.root, path)
            found[path] = blobs[path], self._parse(content) if content is not None else ()
        return found
