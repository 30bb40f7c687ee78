"""Aider's repository map, without a model, in the Python that has it: see `aider_worker.py`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from knowledge_peers.contender import FOUND

WORKER = Path(__file__).with_name("aider_worker.py")


def has_aider(python: Path | None) -> bool:
    """Whether this interpreter can import aider."""
    if python is None:
        return False
    try:
        done = subprocess.run([python, "-c", "import aider.repomap"], capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


class AiderMap:
    """Over a folder that the benchmark keeps up to date."""

    def __init__(self, tree: Path, python: Path) -> None:
        self._files: set[str] = set()
        self._worker = subprocess.Popen(
            [python, WORKER, tree],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )

    def put(self, path: str, body: bytes) -> None:
        self._files.add(path)

    def drop(self, path: str) -> None:
        self._files.discard(path)

    def settle(self) -> None:
        """Changed files are parsed once, outside of the timed part."""
        self.search("")

    def search(self, question: str) -> list[str]:
        assert self._worker.stdin is not None
        assert self._worker.stdout is not None
        asked = {"question": question, "files": sorted(self._files), "limit": FOUND}
        self._worker.stdin.write(json.dumps(asked) + "\n")
        self._worker.stdin.flush()
        answer = self._worker.stdout.readline()
        if not answer:
            raise RuntimeError("the program that runs aider has ended")
        found: list[str] = json.loads(answer)
        return found

    def close(self) -> None:
        self._worker.communicate()
