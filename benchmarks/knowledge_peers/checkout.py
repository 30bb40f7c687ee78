"""One repository at one commit after the other, without a work tree of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from knowledge_peers.contender import Contender

MAX_BYTES = 400_000


class Checkout:
    """The searchable files, on the disk and in each contender; unchanged files stay."""

    def __init__(self, git: Path, tree: Path, contenders: Mapping[str, Contender]) -> None:
        self._git, self._tree = git, tree
        self._contenders = contenders
        self._blobs: dict[str, str] = {}

    def move_to(self, commit: str) -> None:
        """Raises subprocess.CalledProcessError where there is no such commit."""
        blobs = read_tree(self._git, commit)
        gone = [path for path, blob in self._blobs.items() if blobs.get(path) != blob]
        new = {path: blob for path, blob in blobs.items() if self._blobs.get(path) != blob}
        contents = dict(read_blobs(self._git, sorted(set(new.values()))))
        for path in gone:
            self._drop(path)
        for path, blob in new.items():
            if blob in contents:
                self._put(path, contents[blob])
        for contender in self._contenders.values():
            contender.settle()
        self._blobs = blobs

    def _drop(self, path: str) -> None:
        (self._tree / path).unlink(missing_ok=True)
        for contender in self._contenders.values():
            contender.drop(path)

    def _put(self, path: str, body: bytes) -> None:
        (self._tree / path).parent.mkdir(parents=True, exist_ok=True)
        (self._tree / path).write_bytes(body)
        for contender in self._contenders.values():
            contender.put(path, body)


def read_tree(git: Path, commit: str) -> dict[str, str]:
    """Path to blob of the regular files of a commit."""
    command = ["git", f"--git-dir={git}", "ls-tree", "-r", "-z", commit]
    listed = subprocess.run(command, capture_output=True, check=True).stdout
    found = {}
    for line in filter(None, listed.decode("utf-8", errors="replace").split("\0")):
        about, path = line.split("\t", 1)
        mode, _, blob = about.split()
        if mode.startswith("100"):
            found[path] = blob
    return found


def read_blobs(git: Path, blobs: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """The contents that are text, and not huge."""
    asked = "".join(f"{blob}\n" for blob in blobs).encode()
    command = ["git", f"--git-dir={git}", "cat-file", "--batch"]
    out = subprocess.run(command, input=asked, capture_output=True, check=True).stdout
    at = 0
    while at < len(out):
        end = out.index(b"\n", at)
        head = out[at:end].split()
        at = end + 1
        if head[-1] == b"missing":
            continue
        body, at = out[at : at + int(head[2])], at + int(head[2]) + 1
        if len(body) <= MAX_BYTES and b"\0" not in body:
            yield head[0].decode(), body
