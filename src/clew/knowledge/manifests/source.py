"""The text of a manifest, and where in it a package stands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property

import msgspec

from clew.knowledge.lines import clip
from clew.knowledge.manifests.records import Declared, Ecosystem, PackageType
from clew.secrecy import mask_keys

MAX_VERSION = 100
_PART = re.compile(r"[\w@/-]")
_TRIES = 50


class ManifestText(msgspec.Struct, frozen=True, dict=True):
    """A manifest before it is parsed; its lines are counted from 1."""

    path: str
    text: str

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    def line_at(self, position: int) -> int:
        return self.text.count("\n", 0, position) + 1

    def line_of(self, name: str, start: int) -> int:
        """The line where a name stands by itself, from a position on; that of the position where it does not."""
        start = max(0, start)
        found = self.text.find(name, start)
        for _ in range(_TRIES):
            end = found + len(name)
            if found < 0 or not (_PART.match(self.text[found - 1 : found]) or _PART.match(self.text[end : end + 1])):
                break
            found = self.text.find(name, end)
        return self.line_at(max(found, start))

    def declare(self, ecosystem: Ecosystem, name: str, version: str, type: PackageType, line: int) -> Declared:
        """A package of this manifest; its version is cut and without keys."""
        said = mask_keys(clip(version, MAX_VERSION))
        return Declared(ecosystem=ecosystem, name=name, version=said, type=type, source=f"{self.path}:{line}")


Parser = Callable[[ManifestText], Iterator[Declared]]
"""Yields what a manifest declares, in the order of its text; never raises."""
