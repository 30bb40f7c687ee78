"""A command of an Engineer can change only its work tree."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest

from clew.clock import ManualClock
from clew.errors import ClewError
from clew.team.worktrees.confinement import CommandSetup, find_setup, worktree_confinement
from clew.tools.sandbox import ProgramResult
from tests.team.worktrees.projects import TeamProject, git, make_repository, open_project, snapshot
from tests.tools.sandbox.boxes import open_box

WALLS = ("bubblewrap python", "landlock python")
ATTACKS = {
    "an absolute path": 'echo owned > "$CHECKOUT/calc/core.py"; echo owned > "$CHECKOUT/new.py"',
    "a relative path": 'echo owned > "$(realpath -m --relative-to=. "$CHECKOUT")/new.py"; cd ..; echo owned > new.py',
    "a link to a file": 'ln -s "$CHECKOUT/calc/core.py" link; echo owned > link; sed -i s/add/owned/ link',
    "a link to a folder": 'ln -s "$CHECKOUT" folder; echo owned > folder/new.py; rm -rf folder/calc',
    "git -C": 'git -C "$CHECKOUT" commit -q --allow-empty -m owned; git -C "$CHECKOUT" checkout -q -b owned',
    "GIT_DIR": 'export GIT_DIR="$CHECKOUT/.git"; git update-ref refs/heads/owned HEAD; git branch -D clew/s1',
    "GIT_WORK_TREE": 'export GIT_DIR="$CHECKOUT/.git" GIT_WORK_TREE="$CHECKOUT"; git rm -rfq .; git reset -q --hard',
    "objects of git": 'GIT_OBJECT_DIRECTORY="$CHECKOUT/.git/objects" git hash-object -w --stdin < calc/core.py',
    "a hard link": 'ln "$CHECKOUT/calc/core.py" hard; echo owned >> hard; cp -l "$CHECKOUT/calc/core.py" hard2',
    "/proc/self/root": 'echo owned > "/proc/self/root$CHECKOUT/new.py"; echo owned > "/proc/self/cwd/../../x"',
    "roots of other processes": 'for each in /proc/[0-9]*; do echo owned > "$each/root$CHECKOUT/new.py"; done',
    "core.worktree": 'git init -q own; export GIT_DIR="$PWD/own/.git"; git config core.worktree "$CHECKOUT";'
    " git add -A; git commit -qm x; git checkout -qf; git clean -fdx",
    "alternates": 'git init -q own; echo "$CHECKOUT/.git/objects" > own/.git/objects/info/alternates;'
    " git -C own gc -q --prune=now; git -C own repack -adq",
    "hooks": 'mkdir -p "$CHECKOUT/.git/hooks"; echo "touch owned" > "$CHECKOUT/.git/hooks/post-checkout";'
    ' mkdir -p .git/hooks hooks; echo "touch $CHECKOUT/owned" > hooks/post-commit; chmod +x hooks/post-commit;'
    " git config core.hooksPath hooks",
    "the .git file": 'rm -f .git; echo "gitdir: $CHECKOUT/.git" > .git; git add -A; git commit -qm owned',
    "a .git folder": 'rm -f .git; cp -r "$CHECKOUT/.git" .git; git config core.worktree "$CHECKOUT"; git reset --hard',
    "settings of git": 'git config --global core.hooksPath "$PWD"; git -C "$CHECKOUT" config core.fsmonitor owned;'
    ' git -C "$CHECKOUT" config filter.x.clean owned; echo "* filter=x" > .gitattributes',
    "a submodule": 'git init -q own; git -C own submodule add -q "$CHECKOUT" sub;'
    " cd own/sub && git push -q origin HEAD:x",
    "a push": "git init -q own; cd own; git commit -q --allow-empty -m x;"
    ' git push -q "$CHECKOUT" HEAD:refs/heads/owned',
    "a work tree of git": 'git --git-dir="$CHECKOUT/.git" worktree add -q ./more; git worktree prune',
    "permissions": 'chmod -R 000 "$CHECKOUT"; chmod 777 "$CHECKOUT/calc/core.py"; chmod 777 "$NEIGHBOUR"',
    "a mount": 'mount --bind . "$CHECKOUT"; unshare -r -m sh -c "mount --bind . $CHECKOUT; echo owned > $CHECKOUT/x"',
    "TMPDIR": 'export TMPDIR="$CHECKOUT"; mktemp; python3 -c "import tempfile; tempfile.mkstemp()"',
    "HOME": 'export HOME="$CHECKOUT"; git config --global user.name owned; echo owned > ~/.bashrc; mkdir ~/.config',
    "a background process": 'setsid sh -c "while :; do echo owned > $CHECKOUT/late; done" > /dev/null 2>&1 & disown',
    "the neighbour's tree": 'echo owned > "$NEIGHBOUR/calc/core.py"; rm -rf "$NEIGHBOUR"; mv "$NEIGHBOUR" mine',
    "the team's state": 'echo owned > "$STATE/s1/session.json"; rm -rf "$STATE/s1/gits" "$STATE/s1/checks"',
    "a copy over it": 'cp -r . "$CHECKOUT"; tar c . | tar x -C "$CHECKOUT"; mv calc "$CHECKOUT/owned"',
    "python": "python3 -c \"import os; os.chdir(os.environ['CHECKOUT']); open('new.py', 'w'); os.remove('README')\"",
    "deletion": 'rm -rf "$CHECKOUT"; find "$CHECKOUT" -delete; truncate -s 0 "$CHECKOUT/calc/core.py"',
}

BAITS = ("the .git file", "a .git folder", "core.worktree", "hooks", "settings of git", "a link to a folder")
"""Attacks that prepare something for the next call of git."""


@pytest.fixture(scope="module", params=WALLS)
def wall(request: pytest.FixtureRequest) -> str:
    open_box(request.param)
    return str(request.param)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, wall: str) -> TeamProject:
    """One project for all attacks behind a wall. Each attack begins in a work tree of its own."""
    place = tmp_path_factory.mktemp("project")
    root = make_repository(place / "checkout")
    found = open_project(root, place / "state", ManualClock(), has_pointer=not wall.startswith("landlock"))
    found.pipeline("neighbour.1")
    (place / "scratch").mkdir()
    return found


@pytest.fixture
def own(project: TeamProject) -> str:
    """The pipeline of this test, with a new work tree."""
    name = f"{uuid4().hex}.1"
    project.pipeline(name)
    return name


async def attack(project: TeamProject, wall: str, own: str, command: str) -> ProgramResult:
    folder, scratch = project.pipeline(own), project.root.parent / "scratch"
    variables = {
        "CHECKOUT": str(project.root),
        "NEIGHBOUR": str(project.pipeline("neighbour.1")),
        "STATE": str(project.state),
    }
    setup = CommandSetup(
        checkout=project.root,
        variables={**find_setup(project.root, folder, scratch=scratch).variables, **variables},
    )
    confinement = worktree_confinement(folder, scratch=scratch, programs=setup.readable("python3"), seconds=60)
    return await open_box(wall).sandbox().run(setup.program(command), confinement)


def everything_else(project: TeamProject, own: str) -> dict[str, object]:
    """The checkout with its .git, the trees of the neighbours, and the records of the team."""
    kept = {name: about for name, about in snapshot(project.state).items() if not name.startswith(f"s1/trees/{own}")}
    return {"checkout": snapshot(project.root), "state": kept}


@pytest.mark.parametrize("name", ATTACKS)
async def test_no_command_changes_anything_outside_of_its_work_tree(
    project: TeamProject, wall: str, own: str, name: str
) -> None:
    if name == "permissions" and wall.startswith("landlock"):
        pytest.skip("NOT TESTED: Landlock does not check chmod")
    before = everything_else(project, own)
    await attack(project, wall, own, ATTACKS[name])
    assert everything_else(project, own) == before


@pytest.mark.parametrize("name", BAITS)
async def test_a_commit_after_an_attack_runs_nothing_and_touches_only_the_pipelines_branch(
    project: TeamProject, wall: str, own: str, name: str
) -> None:
    await attack(project, wall, own, ATTACKS[name])
    before = {path: about for path, about in snapshot(project.root).items() if not path.startswith(".git")}
    refs = git(project.root, "for-each-ref")
    settings = (project.root / ".git/config").read_bytes()
    with suppress(ClewError):  # it may be refused
        project.trees.commit(own, "after", (), project.clock)
    assert {path: about for path, about in snapshot(project.root).items() if not path.startswith(".git")} == before
    others = [line for line in git(project.root, "for-each-ref").splitlines() if f"clew-work/s1/{own}" not in line]
    assert others == [line for line in refs.splitlines() if f"clew-work/s1/{own}" not in line]
    assert (project.root / ".git/config").read_bytes() == settings
    assert not list(project.root.rglob("owned"))


async def test_a_command_may_write_its_work_tree_and_its_temporary_folder(
    project: TeamProject, wall: str, own: str
) -> None:
    command = 'echo inside > calc/new.py && mkdir -p calc/deep/er && echo x > "$TMPDIR/t" && python3 -c "print(1)"'
    ran = await attack(project, wall, own, command)
    assert (ran.code, ran.stdout.strip()) == (0, "1"), ran.stderr
    assert (project.pipeline(own) / "calc/new.py").read_text() == "inside\n"


def test_the_attacks_are_real(tmp_path: Path, clock: ManualClock) -> None:
    """A shell without a sandbox changes the checkout."""
    project = open_project(make_repository(tmp_path / "checkout"), tmp_path / "state", clock)
    before = snapshot(project.root)
    environ = {"CHECKOUT": str(project.root), "PATH": "/usr/bin:/bin"}
    command = ["bash", "-c", ATTACKS["an absolute path"]]
    subprocess.run(command, cwd=project.pipeline("n.1"), env=environ, check=True)
    assert snapshot(project.root) != before


def test_a_link_of_the_checkout_opens_no_folder_outside_of_it(tmp_path, monkeypatch):
    home = tmp_path / "home"
    checkout = home / "clone"
    (checkout / ".venv" / "bin").mkdir(parents=True)
    (home / ".config" / "mail").mkdir(parents=True)
    (home / ".config" / "mail" / "password").write_text("secret")
    (home / "elsewhere" / "env").mkdir(parents=True)
    (home / "elsewhere" / "env" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (checkout / ".venv" / "pyvenv.cfg").write_text("home = ../clone\n")
    (checkout / ".venv" / "bin" / "python").symlink_to("../../../.config/mail/password")
    (checkout / "python3").write_text("#!/bin/sh\n")
    (checkout / "python3").chmod(0o700)
    (checkout / "vendor").symlink_to("..")
    (checkout / "node_modules").symlink_to("../.config")
    (checkout / "venv").symlink_to("../elsewhere/env")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(checkout)

    readable = find_setup(checkout, checkout, scratch=tmp_path).readable()

    below = {os.path.realpath(each) for each in readable if os.path.realpath(each).startswith(str(home))}
    assert below == {str(checkout / ".venv"), str(home / "elsewhere" / "env")}
    assert not any(home.is_relative_to(os.path.realpath(each)) for each in readable)
