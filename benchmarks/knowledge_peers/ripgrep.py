"""ripgrep: one search for all words of the question; files are ranked by the words that they contain, rare words
first."""

from __future__ import annotations

import math
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

from knowledge_peers.contender import FOUND
from knowledge_peers.words import names_of, words_of

OPTIONS = ("--only-matching", "--ignore-case", "--word-regexp", "--fixed-strings", "--no-ignore", "--hidden")
SHOWN = ("--no-line-number", "--with-filename", "--null", "--no-messages")


class Ripgrep:
    """Over a folder that the benchmark keeps up to date; only files that were added count."""

    def __init__(self, tree: Path) -> None:
        self._tree = tree
        self._files: set[str] = set()

    def put(self, path: str, body: bytes) -> None:
        self._files.add(path)

    def drop(self, path: str) -> None:
        self._files.discard(path)

    def settle(self) -> None:
        pass

    def search(self, question: str) -> list[str]:
        held = self._count(dict.fromkeys([*words_of(question), *(name.lower() for name in names_of(question))]))
        holders = Counter(word for words in held.values() for word in words)
        weights = {word: math.log(1 + len(self._files) / number) for word, number in holders.items()}
        scores = {
            path: sum(weights[word] * number / (number + 1) for word, number in words.items())
            for path, words in held.items()
        }
        return sorted(scores, key=lambda path: (-scores[path], path))[:FOUND]

    def _count(self, words: dict[str, None]) -> dict[str, Counter[str]]:
        """How often each file has each word."""
        if not words:
            return {}
        patterns = [part for word in words for part in ("-e", word)]
        command = ["rg", *OPTIONS, *SHOWN, *patterns, "."]
        done = subprocess.run(command, cwd=self._tree, capture_output=True, check=False)
        found: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for line in done.stdout.decode("utf-8", errors="replace").splitlines():
            path, _, word = line.removeprefix("./").partition("\0")
            if path in self._files:
                found[path][word.lower()] += 1
        return found

    def close(self) -> None:
        pass
