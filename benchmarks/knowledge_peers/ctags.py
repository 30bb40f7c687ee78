"""Universal Ctags: the names in a question looked up among the tags of all files; files rank by the tags that they
define, rare ones first."""

from __future__ import annotations

import math
import subprocess
from collections import defaultdict
from pathlib import Path, PurePosixPath

from knowledge_peers.contender import FOUND
from knowledge_peers.words import names_of

COMMAND = ("ctags", "--quiet", "--options=NONE", "-x", "--_xformat=%N\t%F", "-L", "-")


class Ctags:
    """Over a folder that the benchmark keeps up to date. A file's own name is a tag of it, too."""

    def __init__(self, tree: Path) -> None:
        self._tree = tree
        self._changed: set[str] = set()
        self._tags: dict[str, set[str]] = {}
        self._files: defaultdict[str, set[str]] = defaultdict(set)

    def put(self, path: str, body: bytes) -> None:
        self._changed.add(path)

    def drop(self, path: str) -> None:
        self._changed.discard(path)
        for tag in self._tags.pop(path, ()):
            self._files[tag].discard(path)

    def settle(self) -> None:
        changed, self._changed = sorted(self._changed), set()
        for path in changed:
            self.drop(path)
            self._tags[path] = {PurePosixPath(path).stem.lower()}
        done = subprocess.run(
            COMMAND, cwd=self._tree, input="\n".join(changed).encode(), capture_output=True, check=True
        )
        for line in done.stdout.decode("utf-8", errors="replace").splitlines():
            tag, _, path = line.rpartition("\t")
            self._tags.setdefault(path, set()).add(tag.strip().lower())
        for path in changed:
            for tag in self._tags[path]:
                self._files[tag].add(path)

    def search(self, question: str) -> list[str]:
        scores: defaultdict[str, float] = defaultdict(float)
        for name in dict.fromkeys(name.lower() for name in names_of(question)):
            holders = self._files.get(name, ())
            for path in holders:
                scores[path] += math.log(1 + len(self._tags) / len(holders))
        return sorted(scores, key=lambda path: (-scores[path], path))[:FOUND]

    def close(self) -> None:
        pass
