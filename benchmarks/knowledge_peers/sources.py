"""A contender that is given source files alone: no tests, no documents, nothing that lies beside the product. The
files that are asked for are of that kind, and Clew tells the kinds apart; so may its peers."""

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
