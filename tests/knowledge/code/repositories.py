"""Git repositories for tests, made by git itself."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_IDENTITY = {
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_EDITOR": "true",
}


def git(root: Path, *arguments: str, ok: bool = True) -> str:
    """The output of git. Fails the test when git fails, unless `ok` is False."""
    done = subprocess.run(
        ["git", "-c", "init.defaultBranch=main", *arguments],
        cwd=root,
        env={**os.environ, **_IDENTITY},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 or not ok, done.stderr
    return done.stdout


def write(root: Path, path: str, content: str | bytes = "") -> Path:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content if isinstance(content, bytes) else content.encode())
    return place


def make_repository(root: Path, files: dict[str, str]) -> Path:
    """A repository with one commit of these files."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q")
    for path, content in files.items():
        write(root, path, content)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "begin")
    return root
