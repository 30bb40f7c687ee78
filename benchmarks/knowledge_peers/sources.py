"""A contender that gets only source files: no tests, no documents, and no other files beside the product. All expected
files are of that kind. Clew distinguishes kinds, so its peers get the same advantage here."""

from __future__ import annotations

from clew.knowledge.code.files import kind_of
from knowledge_peers.contender import Contender


class SourcesAlone:
    def __init__(self, contender: Contender) -> None:
        self._contender = contender

    def put(self, path: str, body: bytes) -> None:
        if not kind_of(path):
            self._contender.put(path, body)

    def drop(self, path: str) -> None:
        if not kind_of(path):
            self._contender.drop(path)

    def settle(self) -> None:
        self._contender.settle()

    def search(self, question: str) -> list[str]:
        return self._contender.search(question)

    def close(self) -> None:
        self._contender.close()
