"""A small git repository to write history into."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

_DAY = 86_400
_START = 1_700_000_000


class Repository:
    """Commits are a day apart, by the same name."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._days = 0
        root.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        moment = f"{_START + self._days * _DAY} +0000"
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "A Writer",
            "GIT_AUTHOR_EMAIL": "writer@example.org",
            "GIT_COMMITTER_NAME": "A Writer",
            "GIT_COMMITTER_EMAIL": "writer@example.org",
            "GIT_AUTHOR_DATE": moment,
            "GIT_COMMITTER_DATE": moment,
        }
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def write(self, files: Mapping[str, str | bytes]) -> None:
        for path, content in files.items():
            target = self.root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content if isinstance(content, bytes) else content.encode())

    def commit(self, message: str, files: Mapping[str, str | bytes] | None = None) -> str:
        """Write files, commit all, and return the name of the commit."""
        self._days += 1
        self.write(files or {})
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")
