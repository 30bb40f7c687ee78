"""Every operation on work trees is completed after a crash before or after any call of git, with the same result."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clew.clock import ManualClock
from clew.team.worktrees import git_calls, repository
from tests.team.worktrees.projects import TeamProject, git, make_repository, open_project
from tests.tools.working_folder import plant

FILES = {"a.txt": "a\n", "b.txt": "b\n", "sub/c.txt": "c\n"}
CHANGED: dict[str, str | bytes] = {"a.txt": "changed\n", "new/d.txt": "d\n"}

EVERY = bool(os.environ.get("CLEW_FAULTS"))
"""Whether to crash at every call, and not at a sample of them."""


class Killed(BaseException):
    """The process dies."""


class Crash:
    """Lets a number of git calls pass, and then dies before or after the next one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._call = git_calls.call_git
        self.left: int | None = None
        self.is_after = False
        self.calls = 0
        for module in (git_calls, repository):
            monkeypatch.setattr(module, "call_git", self)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.calls += 1
        dies = self.left == 0
        if self.left is not None:
            self.left -= 1
        if dies and not self.is_after:
            raise Killed
        result = self._call(*arguments, **options)
        if dies:
            raise Killed
        return result


def unopened(place: Path, clock: ManualClock) -> TeamProject:
    root = make_repository(place / "checkout", FILES)
    plant(root, {"b.txt": "mine\n"})
    return TeamProject(root=root, state=place / "state", clock=clock, opened=None)  # type: ignore[arg-type]


def make(place: Path, clock: ManualClock) -> TeamProject:
    root = make_repository(place / "checkout", FILES)
    plant(root, {"b.txt": "mine\n"})
    return open_project(root, place / "state", clock, take_changes=True)


def committed(place: Path, clock: ManualClock) -> TeamProject:
    project = make(place, clock)
    plant(project.pipeline("n.1"), CHANGED)
    return project


def merged(place: Path, clock: ManualClock) -> TeamProject:
    project = committed(place, clock)
    project.trees.commit("n.1", "work", (), clock)
    return project


def ready(place: Path, clock: ManualClock) -> TeamProject:
    project = merged(place, clock)
    project.merge("n.1")
    return project


STEPS: dict[str, tuple[Callable[[Path, ManualClock], TeamProject], Callable[[TeamProject], object]]] = {
    "open": (unopened, lambda project: open_project(project.root, project.state, project.clock, take_changes=True)),
    "work tree": (make, lambda project: project.trees.open_pipeline("n.1")),
    "commit": (committed, lambda project: project.trees.commit("n.1", "work", (), project.clock)),
    "merge": (merged, lambda project: project.merge("n.1")),
    "merge into the checkout": (ready, lambda project: project.merge_into_checkout()),
}


def state_of(project: TeamProject) -> dict[str, str]:
    """The trees of all branches, the number of their commits, and the status of the checkout."""
    refs = git(project.root, "for-each-ref", "--format=%(refname)", "refs/heads").split()
    trees = {ref: git(project.root, "rev-parse", f"{ref}^{{tree}}") for ref in refs}
    counts = {f"{ref} commits": git(project.root, "rev-list", "--count", ref) for ref in refs}
    return {**trees, **counts, "status": git(project.root, "status", "--porcelain")}


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_was_killed_anywhere_is_completed(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, step: str, is_after: bool
) -> None:
    prepare, run = STEPS[step]
    crash = Crash(monkeypatch)
    reference = prepare(tmp_path / "reference", clock)
    crash.calls = 0
    run(reference)
    expected, calls = state_of(reference), crash.calls
    assert calls > 3
    place, kept = tmp_path / "place", tmp_path / "kept"
    project = prepare(place, clock)
    place.rename(kept)
    for number in range(0 if EVERY else int(is_after), calls, 1 if EVERY else 4):
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(kept, place, symlinks=True)
        crash.left, crash.is_after = number, is_after
        with pytest.raises(Killed):
            run(project)
        crash.left = None
        run(project)
        assert state_of(project) == expected, number
