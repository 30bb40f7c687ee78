"""Branches and work trees of a session, with real git and hostile repositories."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from clew.clock import ManualClock
from clew.errors import ClewError, InvalidInput, NotFound
from clew.team.worktrees.removal import remove_worktree, remove_worktrees
from clew.team.worktrees.repository import state_folder
from clew.team.worktrees.session_trees import find_session, open_session
from tests.team.worktrees.projects import TeamProject, commit_all, git, make_repository, open_project, snapshot
from tests.tools.working_folder import plant

NAMES = (
    "-dash.txt",
    "with space.txt",
    "new\nline.txt",
    "Größe.txt",
    "*.glob",
    ":(top)magic",
    '"quoted"',
    "tab\t.txt",
    "~",
)


@pytest.fixture
def project(tmp_path: Path, clock: ManualClock) -> TeamProject:
    return open_project(make_repository(tmp_path / "checkout"), tmp_path / "state", clock)


def files_of(root: Path) -> dict[str, tuple[int, bytes]]:
    return {path: about for path, about in snapshot(root).items() if not path.startswith(".git/") and path != ".git"}


def test_a_session_has_a_branch_and_a_work_tree_and_leaves_the_checkout_alone(
    tmp_path: Path, clock: ManualClock
) -> None:
    root = make_repository(tmp_path / "checkout")
    before, index = files_of(root), (root / ".git/index").read_bytes()
    project = open_project(root, tmp_path / "state", clock)
    head = git(root, "rev-parse", "HEAD").strip()
    assert project.opened.branch == "clew/s1"
    assert (project.opened.base_commit, project.opened.head) == (head, head)
    assert files_of(Path(project.opened.folder)) == before == files_of(root)
    assert (root / ".git/index").read_bytes() == index
    assert git(root, "branch", "--format=%(refname:short)").split() == ["clew/s1", "main"]
    assert git(root, "symbolic-ref", "HEAD").strip() == "refs/heads/main"


def test_every_step_gives_the_same_result_again(project: TeamProject) -> None:
    assert open_project(project.root, project.state, project.clock).opened == project.opened
    first = project.trees.open_pipeline("n.1")
    plant(Path(first.folder), {"calc/core.py": "CHANGED = 1\n"})
    assert project.trees.open_pipeline("n.1") == first
    assert Path(first.folder, "calc/core.py").read_text() == "CHANGED = 1\n"
    committed = project.trees.commit("n.1", "once", (), project.clock)
    project.clock.advance(seconds=60)
    assert project.trees.commit("n.1", "twice", (), project.clock) == committed
    merged = project.merge("n.1")
    assert merged.merged
    assert project.merge("n.1") == merged
    assert git(project.root, "log", "--format=%s", "clew/s1").split("\n")[0] == "once"


@pytest.mark.req("SYL-10")
def test_a_session_gets_the_branch_that_it_wants_and_another_one_where_it_is_taken(
    tmp_path: Path, clock: ManualClock
) -> None:
    root = make_repository(tmp_path / "checkout")

    def branch_of(session: str, wanted: str) -> str:
        return open_session(
            root, tmp_path / "state", session, "HEAD", take_changes=False, clock=clock, branch=wanted
        ).branch

    assert branch_of("id-11111111", "clew/limits") == "clew/limits"
    assert branch_of("id-11111111", "clew/limits") == "clew/limits"
    assert branch_of("id-22222222", "clew/limits") == "clew/limits-22222222"
    assert find_session(root, tmp_path / "state", "id-22222222").branch == "refs/heads/clew/limits-22222222"
    for hostile in ("clew/../../main", "clew/-f", "refs/heads/main", "clew/a b"):
        with pytest.raises(InvalidInput, match="cannot be a branch"):
            branch_of("id-33333333", hostile)


@pytest.mark.parametrize("missing", ["refs/heads/clew/s1", "tree", "git/ready"])
def test_opening_is_completed_after_a_crash_in_its_middle(project: TeamProject, missing: str) -> None:
    if missing.startswith("refs/"):
        git(project.root, "update-ref", "-d", missing)
    elif missing == "tree":
        (project.state / "s1/git/ready").unlink()
        (Path(project.opened.folder) / "calc/core.py").unlink()
    else:
        (project.state / "s1" / missing).unlink()
        (project.state / "s1/git/index.lock").touch()
    assert open_project(project.root, project.state, project.clock).opened == project.opened
    assert files_of(Path(project.opened.folder)) == files_of(project.root)


def test_a_commit_lists_changes_and_files_outside_of_the_task(project: TeamProject) -> None:
    folder = project.pipeline("n.1")
    plant(folder, {"calc/core.py": "X = 1\n", "calc/new.py": "Y = 1\n", "other/z.py": "Z = 1\n"})
    (folder / "tests/test_core.py").unlink()
    made = project.trees.commit("n.1", "work", ("calc", "tests/*.py"), project.clock)
    assert made.changed == ("calc/core.py", "calc/new.py", "other/z.py", "tests/test_core.py")
    assert (made.created, made.deleted) == (("calc/new.py", "other/z.py"), ("tests/test_core.py",))
    assert made.outside == ("other/z.py",)
    assert made.tree == git(project.root, "rev-parse", f"{made.commit}^{{tree}}").strip()
    assert git(project.root, "log", "-1", "--format=%an <%ae> %s", made.commit) == "Ann <ann@example.com> work\n"
    assert files_of(project.root)["calc/core.py"] != files_of(folder)["calc/core.py"]


def test_an_empty_change_is_said_to_be_empty(project: TeamProject) -> None:
    project.pipeline("n.1")
    made = project.trees.commit("n.1", "nothing", (), project.clock)
    assert made.is_empty
    assert made.commit == made.base_commit


def test_clew_is_the_author_where_the_user_has_no_identity(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_repository(tmp_path / "checkout")
    git(root, "config", "--unset", "user.name")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    made = open_project(root, tmp_path / "state", clock).change("n.1", {"a.txt": "a"})
    assert git(root, "log", "-1", "--format=%an <%ae>", made.commit) == "Clew <clew@localhost>\n"


@pytest.mark.parametrize("name", NAMES)
def test_any_file_name_is_committed_and_merged(project: TeamProject, name: str) -> None:
    made = project.change("n.1", {name: "content\n"})
    assert made.changed == (name,)
    assert project.merge("n.1").merged
    assert project.merge_into_checkout().outcome == "fast_forward"
    assert (project.root / name).read_text() == "content\n"
    assert git(project.root, "status", "--porcelain") == ""


def test_a_name_that_is_not_utf8_is_committed_and_shown(project: TeamProject) -> None:
    folder = project.pipeline("n.1")
    Path(os.fsdecode(os.fsencode(folder) + b"/bad\xff.txt")).write_text("x")
    made = project.trees.commit("n.1", "work", (), project.clock)
    assert made.changed == ("bad�.txt",)
    assert project.merge("n.1").merged


def test_ignored_files_secrets_and_repositories_within_are_not_committed(project: TeamProject) -> None:
    folder = project.pipeline("n.1")
    plant(folder, {"calc/__pycache__/x.pyc": "x", ".env": "KEY=1", "calc/a.py": "A = 1\n"})
    make_repository(folder / "inner", {"a.txt": "a"})
    made = project.trees.commit("n.1", "work", (), project.clock)
    assert made.changed == ("calc/a.py",)
    assert any(".env" in note for note in made.notes)
    assert any("inner/" in note for note in made.notes)


# -- the user's changes ----------------------------------------------------------------------------------------------


def dirty_checkout(root: Path) -> Path:
    plant(root, {"calc/core.py": "MINE = 1\n", "notes.txt": "mine\n", ".env": "KEY=1", "calc/staged.py": "S = 1\n"})
    git(root, "add", "calc/staged.py")
    (root / "tests/test_core.py").unlink()
    return root


def test_uncommitted_changes_become_a_commit_of_the_session_and_stay_as_they_are(
    tmp_path: Path, clock: ManualClock
) -> None:
    root = dirty_checkout(make_repository(tmp_path / "checkout"))
    before, status, index = snapshot(root), git(root, "status", "--porcelain"), (root / ".git/index").read_bytes()
    project = open_project(root, tmp_path / "state", clock, take_changes=True)
    tree = Path(project.opened.folder)
    assert (tree / "calc/core.py").read_text() == "MINE = 1\n"
    assert (tree / "notes.txt").read_text() == "mine\n"
    assert (tree / "calc/staged.py").exists()
    assert not (tree / "tests/test_core.py").exists()
    assert not (tree / ".env").exists()
    assert project.opened.head != project.opened.base_commit
    assert any(".env" in note for note in project.opened.notes)
    after = snapshot(root)
    assert {path: after[path] for path in before if not path.startswith(".git/")} == {
        path: about for path, about in before.items() if not path.startswith(".git/")
    }
    assert (root / ".git/index").read_bytes() == index
    assert git(root, "status", "--porcelain") == status


def test_without_taking_them_along_a_session_starts_from_head(tmp_path: Path, clock: ManualClock) -> None:
    root = dirty_checkout(make_repository(tmp_path / "checkout"))
    project = open_project(root, tmp_path / "state", clock)
    assert project.opened.head == project.opened.base_commit
    assert "MINE" not in Path(project.opened.folder, "calc/core.py").read_text()


# -- repositories of all kinds ---------------------------------------------------------------------------------------


def test_a_detached_head_is_a_base(tmp_path: Path, clock: ManualClock) -> None:
    root = make_repository(tmp_path / "checkout")
    git(root, "checkout", "-q", "--detach")
    project = open_project(root, tmp_path / "state", clock)
    project.change("n.1", {"a.txt": "a"})
    project.merge("n.1")
    assert project.merge_into_checkout().outcome == "fast_forward"
    assert (root / "a.txt").exists()


def test_a_work_tree_of_git_can_have_a_session(tmp_path: Path, clock: ManualClock) -> None:
    main = make_repository(tmp_path / "main")
    git(main, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "linked")
    project = open_project(tmp_path / "linked", tmp_path / "state", clock)
    project.change("n.1", {"a.txt": "a"})
    assert project.merge("n.1").merged
    assert project.merge_into_checkout().outcome == "fast_forward"
    assert (tmp_path / "linked/a.txt").exists()
    assert not (main / "a.txt").exists()


def test_a_folder_within_a_repository_is_the_project(tmp_path: Path, clock: ManualClock) -> None:
    root = make_repository(tmp_path / "mono", {"app/a.py": "A = 1\n", "lib/b.py": "B = 1\n"})
    opened = open_session(root / "app", tmp_path / "state", "s1", "HEAD", take_changes=False, clock=clock)
    assert Path(opened.folder).name == "app"
    assert Path(opened.folder, "a.py").exists()
    trees = find_session(root / "app", tmp_path / "state", "s1")
    plant(Path(trees.open_pipeline("n.1").folder), {"a.py": "A = 2\n", "../lib/b.py": "B = 2\n"})
    made = trees.commit("n.1", "work", ("a.py",), clock)
    assert made.changed == ("app/a.py", "lib/b.py")
    assert made.outside == ("lib/b.py",)


def test_submodules_and_filters_are_noted_and_kept(tmp_path: Path, clock: ManualClock) -> None:
    inner = make_repository(tmp_path / "inner", {"a.txt": "a"})
    root = make_repository(tmp_path / "checkout", {".gitattributes": "*.bin filter=lfs\n", "a.txt": "a"})
    git(root, "submodule", "add", "-q", str(inner), "sub")
    commit_all(root, "submodule")
    project = open_project(root, tmp_path / "state", clock)
    assert any("sub is empty" in note for note in project.opened.notes)
    assert any("Git LFS" in note for note in project.opened.notes)
    made = project.change("n.1", {"a.txt": "b"})
    assert made.changed == ("a.txt",)
    assert "160000" in git(root, "ls-tree", made.commit, "sub")


def test_no_filter_or_hook_of_the_repository_runs(tmp_path: Path, clock: ManualClock) -> None:
    root = make_repository(
        tmp_path / "checkout", {".gitattributes": "*.txt filter=evil merge=evil diff=evil\n", "a.txt": "1"}
    )
    bait = f"touch {tmp_path}/owned; cat"
    for setting in ("filter.evil.clean", "filter.evil.smudge", "merge.evil.driver", "diff.evil.textconv"):
        git(root, "config", setting, bait)
    for setting in ("core.fsmonitor", "core.sshCommand", "core.pager", "diff.external", "gpg.program"):
        git(root, "config", setting, bait)
    git(root, "config", "commit.gpgSign", "true")
    for hook in (
        "pre-commit",
        "post-commit",
        "post-checkout",
        "reference-transaction",
        "post-merge",
        "post-index-change",
    ):
        plant(root, {f".git/hooks/{hook}": f"#!/bin/sh\ntouch {tmp_path}/owned\n"})
        (root / f".git/hooks/{hook}").chmod(0o755)
    project = open_project(root, tmp_path / "state", clock, take_changes=True)
    project.change("n.1", {"b.py": "B = 1\n"})
    project.trees.diff("n.1")
    assert project.merge("n.1").merged
    assert project.merge_into_checkout().merged
    assert not (tmp_path / "owned").exists()


def test_a_changed_file_of_git_lfs_is_refused_in_one_line(tmp_path: Path, clock: ManualClock) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 3\n"
    root = make_repository(
        tmp_path / "checkout", {".gitattributes": "*.bin filter=lfs\n", "a.bin": pointer, "b.py": ""}
    )
    project = open_project(root, tmp_path / "state", clock)
    with pytest.raises(InvalidInput, match=r"a\.bin have a filter"):
        project.change("n.1", {"a.bin": b"\0\1"})
    assert project.change("m.1", {"b.py": "B = 1\n"}).changed == ("b.py",)


def test_a_sparse_checkout_takes_changes_and_the_merge(tmp_path: Path, clock: ManualClock) -> None:
    root = make_repository(tmp_path / "checkout", {"in/a.txt": "a\n", "out/b.txt": "b\n", "top.txt": "t\n"})
    git(root, "sparse-checkout", "set", "in")
    assert not (root / "out").exists()
    plant(root, {"in/a.txt": "mine\n"})
    project = open_project(root, tmp_path / "state", clock, take_changes=True)
    assert Path(project.opened.folder, "out/b.txt").exists()
    project.change("n.1", {"in/new.txt": "n\n", "out/b.txt": "changed\n"})
    assert project.merge("n.1").merged
    assert project.merge_into_checkout().merged
    assert (root / "in/new.txt").exists()
    assert not (root / "out").exists()
    assert git(root, "show", "HEAD:out/b.txt") == "changed\n"
    assert git(root, "status", "--porcelain") == ""


REFUSED = {
    "no commit": lambda root: git(root, "init", "-q"),
    "bare": lambda root: git(root, "init", "-q", "--bare"),
    "branch clew": lambda root: git(make_repository(root), "branch", "clew"),
    "branch clew/s1": lambda root: git(make_repository(root), "branch", "clew/s1"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_repository_that_cannot_be_used_is_refused_in_one_line(tmp_path: Path, clock: ManualClock, kind: str) -> None:
    root = tmp_path / "checkout"
    root.mkdir()
    REFUSED[kind](root)
    with pytest.raises(ClewError) as refused:
        open_project(root, tmp_path / "state", clock)
    assert "\n" not in str(refused.value)
    assert refused.value.hint


@pytest.mark.parametrize("name", ["", "..", "a/b", "-x", "a..b", "x.lock", "a b", "a\nb", "~", "x" * 200, "a."])
def test_names_that_are_no_branch_are_refused(project: TeamProject, name: str) -> None:
    with pytest.raises(InvalidInput):
        project.trees.open_pipeline(name)
    with pytest.raises(InvalidInput):
        open_session(project.root, project.state, name, "HEAD", take_changes=False, clock=project.clock)


@pytest.mark.parametrize("base", ["nowhere", "--upload-pack=x", "HEAD~1", "a b", "x:y"])
def test_a_base_that_is_not_known_is_refused(tmp_path: Path, clock: ManualClock, base: str) -> None:
    root = make_repository(tmp_path / "checkout")
    with pytest.raises(InvalidInput, match="base"):
        open_session(root, tmp_path / "state", "s1", base, take_changes=False, clock=clock)


def test_a_session_that_was_not_opened_is_not_found(project: TeamProject) -> None:
    with pytest.raises(NotFound):
        find_session(project.root, project.state, "s2")
    with pytest.raises(NotFound):
        project.trees.tree("n.1")


def test_the_state_lies_outside_of_the_project(tmp_path: Path) -> None:
    assert state_folder(tmp_path / "p", {"XDG_STATE_HOME": str(tmp_path / "x")}).parent == tmp_path / "x/clew/worktrees"
    assert state_folder(tmp_path / "p", {"HOME": "/home/ann"}).is_relative_to("/home/ann/.local/state/clew")
    with pytest.raises(InvalidInput):
        state_folder(tmp_path, {"XDG_STATE_HOME": str(tmp_path / "inside")})


# -- a folder without git --------------------------------------------------------------------------------------------


def test_a_folder_without_git_is_worked_on_in_a_copy_and_gets_the_changes_back(
    tmp_path: Path, clock: ManualClock
) -> None:
    root = plant(tmp_path / "plain", {"a.txt": "a\n", "b.txt": "b\n", "sub/c.txt": "c\n", ".env": "KEY=1"})
    before = snapshot(root)
    project = open_project(root, tmp_path / "state", clock)
    assert project.opened.kind == "copy"
    assert "no git" in project.opened.notes[0]
    project.change("n.1", {"a.txt": "changed\n", "sub/c.txt": None, "new/d.txt": "d\n"})
    assert project.merge("n.1").merged
    assert snapshot(root) == before
    assert project.merge_into_checkout().outcome == "copied"
    assert (root / "a.txt").read_text() == "changed\n"
    assert (root / "new/d.txt").read_text() == "d\n"
    assert not (root / "sub/c.txt").exists()
    assert (root / ".env").read_text() == "KEY=1"
    assert project.merge_into_checkout().outcome == "up_to_date"


def test_a_file_that_has_changed_is_not_overwritten(tmp_path: Path, clock: ManualClock) -> None:
    root = plant(tmp_path / "plain", {"a.txt": "a\n", "b.txt": "b\n"})
    project = open_project(root, tmp_path / "state", clock)
    project.change("n.1", {"a.txt": "theirs\n", "b.txt": "theirs\n"})
    project.merge("n.1")
    (root / "a.txt").write_text("mine\n")
    found = project.merge_into_checkout()
    assert (found.outcome, found.dirty) == ("dirty", ("a.txt",))
    assert (root / "b.txt").read_text() == "b\n"


# -- removal ---------------------------------------------------------------------------------------------------------


def test_work_that_is_not_merged_is_never_deleted(project: TeamProject) -> None:
    made = project.change("n.1", {"a.txt": "a\n"})
    plant(project.pipeline("n.1"), {"later.txt": "not committed\n"})
    removed = remove_worktree(project.trees, "n.1", project.clock)
    assert removed.branch == "clew-work/s1/n.1"
    assert not (project.state / "s1/trees/n.1").exists()
    assert git(project.root, "show", "clew-work/s1/n.1:later.txt") == "not committed\n"
    assert git(project.root, "merge-base", made.commit, "clew-work/s1/n.1").strip() == made.commit


def test_a_merged_branch_is_removed_with_its_tree(project: TeamProject) -> None:
    project.change("n.1", {"a.txt": "a\n"})
    project.merge("n.1")
    project.change("m.1", {"b.txt": "b\n"})
    assert [each.branch for each in remove_worktrees(project.trees, project.clock)] == ["clew-work/s1/m.1", ""]
    assert git(project.root, "branch", "--format=%(refname:short)").split() == ["clew-work/s1/m.1", "clew/s1", "main"]
    assert remove_worktree(project.trees, "n.1", project.clock).branch == ""


def test_a_deleted_state_folder_is_named_with_where_the_work_is(project: TeamProject) -> None:
    project.change("n.1", {"calc/core.py": "CHANGED = 1\n"})
    project.merge("n.1")
    shutil.rmtree(project.state)
    with pytest.raises(NotFound) as raised:
        project.trees.commit("n.1", "more", (), project.clock)
    assert "clew/s1" in raised.value.hint
    assert "was deleted" in raised.value.hint
    assert "`clew code`" in raised.value.hint


@pytest.mark.parametrize("part", ["trees/n.1", "gits/n.1"])
def test_a_work_tree_that_was_deleted_by_hand_is_named_and_can_be_made_again(project: TeamProject, part: str) -> None:
    done = project.change("n.1", {"calc/core.py": "CHANGED = 1\n"})
    shutil.rmtree(project.state / "s1" / part)
    for act in (lambda: project.trees.status("n.1"), lambda: project.trees.diff("n.1")):
        with pytest.raises(NotFound) as raised:
            act()
        assert "clew-work/s1/n.1" in raised.value.hint
    with pytest.raises(NotFound):
        project.trees.commit("n.1", "more", (), project.clock)
    again = project.pipeline("n.2", done.commit)
    assert (again / "calc/core.py").read_text() == "CHANGED = 1\n"


def test_the_files_of_a_session_that_were_deleted_by_hand_are_written_again(project: TeamProject) -> None:
    folder = Path(project.opened.folder)
    before = files_of(folder)
    shutil.rmtree(folder)
    assert project.trees.status("")[2]
    assert files_of(folder) == before
