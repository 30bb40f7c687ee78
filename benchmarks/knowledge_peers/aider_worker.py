"""Run by the Python that has aider: for each question on standard input, the files that its repository map ranks first.
Words and files in a question are found as aider finds them in a message.

Usage: aider_worker.py FOLDER
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from aider.coders.base_coder import Coder
from aider.io import InputOutput
from aider.repomap import RepoMap


class Map(RepoMap):  # type: ignore[misc]  # aider has no types
    """Tags are kept in memory, so that nothing is written to the folder."""

    def load_tags_cache(self) -> None:
        self.TAGS_CACHE: dict[str, Any] = {}


class Mentions:
    """The part of aider's chat that is needed to find the mentioned names."""

    abs_read_only_fnames: tuple[str, ...] = ()
    get_file_mentions = Coder.get_file_mentions
    get_ident_mentions = Coder.get_ident_mentions
    get_ident_filename_matches = Coder.get_ident_filename_matches

    def __init__(self, files: list[str]) -> None:
        self._files = files

    def get_all_relative_files(self) -> list[str]:
        return self._files

    def get_addable_relative_files(self) -> list[str]:
        return self._files

    def get_inchat_relative_files(self) -> list[str]:
        return []


def rank(repo_map: RepoMap, root: Path, question: str, files: list[str]) -> list[str]:
    """The files in the order in which the map would show them."""
    mentions = Mentions(files)
    idents = mentions.get_ident_mentions(question)
    names = mentions.get_file_mentions(question) | mentions.get_ident_filename_matches(idents)
    tags = repo_map.get_ranked_tags([], [str(root / path) for path in files], names, idents)
    return list(dict.fromkeys(tag[0] for tag in tags))


def main() -> None:
    root = Path(sys.argv[1]).resolve()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what aider prints is no answer
    repo_map = Map(root=str(root), io=InputOutput(pretty=False, yes=True))
    for line in sys.stdin:
        asked = json.loads(line)
        found = rank(repo_map, root, asked["question"], asked["files"]) if asked["files"] else []
        answers.write(json.dumps(found[: asked["limit"]]) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
