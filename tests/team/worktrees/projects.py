"""Small real projects in git for the tests of work trees and evidence."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clew.access import Principal
from clew.clock import ManualClock
from clew.team.worktrees.checkout_merge import CheckoutMerge, merge_into_checkout
from clew.team.worktrees.merges import PipelineMerge, merge_pipeline
from clew.team.worktrees.session_trees import OpenedSession, PipelineCommit, SessionTrees, find_session, open_session
from clew.tools.tool import ToolContext
from tests.tools.working_folder import plant

PYTHON = {
    "calc/__init__.py": "",
    "calc/core.py": "def add(a: int, b: int) -> int:\n    return a + b\n",
    "tests/test_core.py": "from calc.core import add\n\n\ndef test_add() -> None:\n    assert add(1, 2) == 3\n",
    "pyproject.toml": '[project]\nname = "calc"\nversion = "1"\n\n[tool.ruff]\nline-length = 100\n\n'
    '[tool.ruff.format]\n\n[tool.pytest.ini_options]\ntestpaths = ["tests"]\n',
    ".gitignore": "__pycache__/\n",
}
TEAM_CALL = ToolContext(by=Principal(owner_id="acme", agent_id="team", steers=False), key="k1", route="request-1")


def git(folder: Path, *arguments: str) -> str:
    """The output of git in a folder, without settings of the person who runs the tests."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environ |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    command = ("git", "-c", "protocol.file.allow=always", *arguments)
    ran = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, env=environ)
    return ran.stdout


def make_repository(root: Path, files: Mapping[str, str | bytes] | None = None) -> Path:
    """A repository with one commit."""
    plant(root, PYTHON if files is None else files)
    git(root, "init", "-q", "--initial-branch=main")
    with (root / ".git/config").open("a") as settings:  # quicker than git, and hundreds of tests make a repository
        settings.write("[user]\n\tname = Ann\n\temail = ann@example.com\n")
    return commit_all(root, "first")


def commit_all(root: Path, message: str) -> Path:
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", message)
    return root


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and content of everything below a folder."""
    found: dict[str, tuple[int, bytes]] = {}
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(place, name)
            about = path.lstat()
            content = os.fsencode(os.readlink(path)) if path.is_symlink() else b""
            if path.is_file() and not path.is_symlink():
                content = path.read_bytes()
            found[str(path.relative_to(folder))] = (about.st_mode, content)
    return found


@dataclass
class TeamProject:
    """A project with one open session `s1`."""

    root: Path
    state: Path
    clock: ManualClock
    opened: OpenedSession
    has_pointer: bool = True

    @property
    def trees(self) -> SessionTrees:
        """As a new process finds them."""
        return find_session(self.root, self.state, "s1", has_pointer=self.has_pointer)

    def pipeline(self, name: str, start: str = "") -> Path:
        return Path(self.trees.open_pipeline(name, start).folder)

    def change(
        self, name: str, files: Mapping[str, str | bytes | None], *, start: str = "", allowed: tuple[str, ...] = ()
    ) -> PipelineCommit:
        """Open a pipeline, write or delete files, and commit."""
        folder = self.pipeline(name, start)
        plant(folder, {path: text for path, text in files.items() if text is not None})
        for path in (path for path, text in files.items() if text is None):
            (folder / path).unlink()
        return self.trees.commit(name, f"Work of {name}", allowed, self.clock)

    def merge(self, name: str) -> PipelineMerge:
        return merge_pipeline(self.trees, name, self.clock)

    def merge_into_checkout(self) -> CheckoutMerge:
        return merge_into_checkout(self.trees, self.clock)


def open_project(
    root: Path, state: Path, clock: ManualClock, *, take_changes: bool = False, has_pointer: bool = True
) -> TeamProject:
    opened = open_session(root, state, "s1", "HEAD", take_changes=take_changes, clock=clock, has_pointer=has_pointer)
    return TeamProject(root=root, state=state, clock=clock, opened=opened, has_pointer=has_pointer)
