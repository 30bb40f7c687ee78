"""Files of one kind, such as changelogs, parsed as they are on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from clew.knowledge.code.file_content import FileContent, read_content
from clew.knowledge.code.graph import CodeGraph

Parsed = TypeVar("Parsed")


class ParsedFiles(Generic[Parsed]):
    """The files of a folder that `is_wanted` chooses by their paths, and the items that `parse` finds in each. A
    changed file is parsed again; one that cannot be read has no items."""

    def __init__(
        self, code: CodeGraph, is_wanted: Callable[[str], bool], parse: Callable[[FileContent], Sequence[Parsed]]
    ) -> None:
        self._code, self._is_wanted, self._parse = code, is_wanted, parse
        self._blobs: dict[str, str] = {}
        self._items: dict[str, Sequence[Parsed]] = {}
        self._found: list[Parsed] = []

    async def read(self) -> list[Parsed]:
        """The items of all files in the order of their paths; the same list until one of them changes."""
        await self._code.state(self._blobs)
        blobs = {file.path: file.blob for file in await self._code.files() if self._is_wanted(file.path)}
        if blobs != self._blobs:
            self._items = await asyncio.to_thread(self._parse_changed, blobs)
            self._blobs = blobs
            self._found = [item for path in sorted(blobs) for item in self._items[path]]
        return self._found

    def _parse_changed(self, blobs: dict[str, str]) -> dict[str, Sequence[Parsed]]:
        items = {path: self._items[path] for path, blob in blobs.items() if self._blobs.get(path) == blob}
        for path in blobs.keys() - items.keys():
            content = read_content(self._code.tree.root, path)
            items[path] = self._parse(content) if content is not None else ()
        return items
