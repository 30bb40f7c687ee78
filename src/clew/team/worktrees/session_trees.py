"""The branch and the work trees of a session: one tree for the session, one for each pipeline. All of them lie outside
of the repository. Every operation can be repeated after a crash and then returns the same result."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from clew.clock import Clock
from clew.errors import InvalidInput, NotFound
from clew.files import locked, replace_file
from clew.team.worktrees.changes import (
    FileChanges,
    compare_trees,
    is_outside,
    new_submodules,
    snapshot_checkout,
    stage,
    write_commit,
)
from clew.team.worktrees.git_calls import GitFolder, json_name, require_version
from clew.team.worktrees.repository import Kind, Repository, check_name, find_repository, make_git_folder

MAX_DIFF = 200_000
BRANCHES, TASK_BRANCHES = "refs/heads/clew/", "refs/heads/clew-work/"
"""Branches of sessions and of pipelines. Git allows no branch `clew/a/b` beside `clew/a`."""
_TAKEN = "Changes of the checkout when the session began"


class SessionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The start of a session. `base_commit` is the user's commit. `start` is the first commit of the session: the same
    commit, or one with the user's uncommitted changes."""

    kind: Kind
    session: str
    root: str
    base_commit: str
    start: str
    notes: tuple[str, ...] = ()
    branch: str = ""
    """The branch as a full ref. It is empty in records of earlier versions, whose branch is named after the session."""


class OpenedSession(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `team-open`."""

    kind: Kind
    branch: str
    base_commit: str
    head: str
    folder: str
    notes: tuple[str, ...] = ()


class PipelineRecord(msgspec.Struct, frozen=True, kw_only=True):
    pipeline: str
    branch: str
    base_commit: str


class OpenedPipeline(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `team-worktree`."""

    folder: str
    base_commit: str
    branch: str


class PipelineCommit(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `team-commit`. Paths are compared with the base of the pipeline."""

    commit: str
    tree: str
    base_commit: str
    changed: tuple[str, ...]
    created: tuple[str, ...]
    deleted: tuple[str, ...]
    is_empty: bool
    outside: tuple[str, ...]
    notes: tuple[str, ...] = ()


class PipelineDiff(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `team-diff`."""

    diff: str
    files: tuple[str, ...]
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkTree:
    """A work tree with its git folder. `branch` is a full ref, `project` the project's folder in the tree."""

    git: GitFolder
    folder: Path
    project: Path
    branch: str
    base_commit: str


class SessionTrees:
    """The work trees of one opened session."""

    def __init__(self, repository: Repository, place: Path, record: SessionRecord, *, has_pointer: bool) -> None:
        self.repository, self.place, self.record = repository, place, record
        self._has_pointer = has_pointer
        self.branch = record.branch or BRANCHES + record.session

    @property
    def head(self) -> str:
        """The commit of the session's branch. Raises InvalidInput if the branch is gone."""
        head = self.repository.read_ref(self.branch)
        if not head:
            raise InvalidInput("branch", f"{short(self.branch)} was deleted", hint="Start a new session")
        return head

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One operation at a time, over all processes."""
        with locked(self.place / "session"):
            yield

    def tree(self, pipeline: str = "") -> WorkTree:
        """The work tree of a pipeline, or of the session. Raises NotFound."""
        folder, gitdir = self._places(pipeline)
        if not (gitdir / "ready").exists() or not folder.is_dir():
            branch = f"{short(TASK_BRANCHES)}{self.record.session}/{pipeline}" if pipeline else short(self.branch)
            hint = f"Its folder was deleted: {folder}. Work that was committed is on the branch {branch}"
            raise NotFound("work tree of", pipeline or f"session {self.record.session}", hint=hint)
        return self._work_tree(folder, gitdir, self._read_pipeline(pipeline))

    def session_tree(self) -> WorkTree:
        """The session's work tree with the files of its branch."""
        with self.locked():
            return self.write_session_tree()

    def write_session_tree(self) -> WorkTree:
        """Like `session_tree`, for a caller that already holds the lock."""
        folder, gitdir = self._places("")
        self._check_out(folder, gitdir, self.head, is_reset=True)
        return self._work_tree(folder, gitdir, None)

    def open_pipeline(self, pipeline: str, start: str = "") -> OpenedPipeline:
        """Make the branch and the work tree of a pipeline. A repeated call leaves existing work as it is."""
        check_name("pipeline", pipeline)
        folder, gitdir = self._places(pipeline)
        with self.locked():
            record = self._read_pipeline(pipeline)
            if record is None:
                base = self.repository.resolve(start) if start else self.head
                branch = f"{TASK_BRANCHES}{self.record.session}/{pipeline}"
                record = PipelineRecord(pipeline=pipeline, branch=branch, base_commit=base)
                gitdir.mkdir(parents=True, exist_ok=True)
                replace_file(gitdir / "pipeline.json", msgspec.json.encode(record))
            if not self.repository.read_ref(record.branch):
                create_branch(self.repository, record.branch, record.base_commit)
            self._check_out(folder, gitdir, self.repository.read_ref(record.branch), is_reset=False)
            tree = self._work_tree(folder, gitdir, record)
        return OpenedPipeline(folder=str(tree.project), base_commit=record.base_commit, branch=short(record.branch))

    def commit(self, pipeline: str, message: str, files: Sequence[str], clock: Clock) -> PipelineCommit:
        """Commit all changes of a pipeline's work tree. A repeated call returns the same result."""
        with self.locked():
            tree = self.tree(pipeline)
            head = self._read_branch(tree.branch)
            staged = stage(tree.git, is_users=False)
            if embedded := new_submodules(tree.git, tree.base_commit, staged.tree):
                raise InvalidInput("files", f"{embedded[0]} is a repository of its own", hint="Remove its .git")
            if staged.tree != tree.git.tree_of(head):
                new = write_commit(tree.git, staged.tree, [head], message, self.repository.identity(), clock)
                if not self.repository.move_ref(tree.branch, new, head):
                    raise InvalidInput(
                        "branch", f"{short(tree.branch)} was changed by another process", hint="Commit again"
                    )
                head = new
            replace_file(tree.git.gitdir / "HEAD", f"{head}\n".encode())
            found = compare_trees(tree.git, tree.base_commit, head)
        return _describe_commit(tree, head, staged.tree, found, files, staged.notes)

    def diff(self, pipeline: str) -> PipelineDiff:
        """The changes of a pipeline, or of the session, as a diff that is cut at a limit."""
        if pipeline:
            tree = self.tree(pipeline)
            base, head = tree.base_commit, self._read_branch(tree.branch)
        else:
            tree, base = self.session_tree(), self.record.start
            head = self.head
        options = ["--no-ext-diff", "--no-textconv", "--no-color", "--find-renames", "--submodule=short"]
        raw = tree.git.run(["diff-tree", "-r", "-p", *options, base, head]).stdout.decode(errors="replace")
        files = compare_trees(tree.git, base, head).changed
        return PipelineDiff(diff=raw[:MAX_DIFF], files=files, is_cut=len(raw) > MAX_DIFF)

    def project_files(self) -> tuple[str, ...]:
        """The changed files of the session, relative to the project's folder. Paths outside of it start with `/`."""
        below = f"{self.repository.prefix}/" if self.repository.prefix else ""
        changed = compare_trees(self.session_tree().git, self.record.start, self.head).changed
        return tuple(path.removeprefix(below) if path.startswith(below) else f"/{path}" for path in changed)

    def status(self, pipeline: str) -> tuple[str, str, bool]:
        """The commit and the tree of a branch, and whether its work tree has exactly the files of that tree."""
        with self.locked():
            tree = self.tree(pipeline) if pipeline else self.write_session_tree()
            head = self._read_branch(tree.branch)
            committed = tree.git.tree_of(head)
            return head, committed, stage(tree.git, is_users=False).tree == committed

    def restore(self, pipeline: str) -> bool:
        """Restore the committed files after a command. Return whether the command had changed tracked files."""
        with self.locked():
            tree = self.tree(pipeline)
            return restore_files(tree.git, self._read_branch(tree.branch))

    @contextmanager
    def scratch_tree(self, commit: str) -> Iterator[WorkTree]:
        """A new work tree of a commit that is removed afterwards. It has no branch."""
        place = self.place / "scratch" / secrets.token_hex(8)
        folder, gitdir = place / "tree", place / "git"
        try:
            self._check_out(folder, gitdir, commit, is_reset=True)
            yield self._work_tree(folder, gitdir, None)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def refresh_pointer(self, tree: WorkTree) -> None:
        """Rewrite the `.git` file of a work tree, because its agent may have changed it."""
        if self._has_pointer:
            pointer = tree.folder / ".git"
            if pointer.is_dir() and not pointer.is_symlink():
                pointer.rename(pointer.with_name(f".git.kept-back-{os.getpid()}"))
            replace_file(pointer, b"gitdir: " + os.fsencode(tree.git.gitdir) + b"\n")

    def _read_branch(self, branch: str) -> str:
        head = self.repository.read_ref(branch)
        if not head:
            raise InvalidInput("branch", f"{short(branch)} is gone", hint="`git reflog` may still know its commit")
        return head

    def _check_out(self, folder: Path, gitdir: Path, commit: str, *, is_reset: bool) -> None:
        """Write the files of a commit. A finished tree changes only if `is_reset` and it has another commit."""
        ready = gitdir / "ready"
        if not folder.is_dir():
            (gitdir / "index").unlink(missing_ok=True)  # it would list files that are not there
        elif ready.exists() and (not is_reset or ready.read_text() == commit):
            return
        folder.mkdir(parents=True, exist_ok=True)
        git = make_git_folder(self.repository, gitdir, folder)
        (gitdir / "index.lock").unlink(missing_ok=True)  # of a process that was killed: we hold the session's lock
        git.run(["read-tree", "--reset", "-u", commit])
        replace_file(gitdir / "HEAD", f"{commit}\n".encode())
        self.refresh_pointer(self._work_tree(folder, gitdir, None))
        replace_file(ready, commit.encode())

    def _work_tree(self, folder: Path, gitdir: Path, record: PipelineRecord | None) -> WorkTree:
        shallow = self.repository.common / "shallow"
        git = GitFolder(
            gitdir=gitdir,
            objects=self.repository.objects,
            work_tree=folder,
            index=gitdir / "index",
            shallow=shallow if shallow.exists() else None,
        )
        return WorkTree(
            git=git,
            folder=folder,
            project=folder / self.repository.prefix,
            branch=record.branch if record else self.branch,
            base_commit=record.base_commit if record else self.record.start,
        )

    def _places(self, pipeline: str) -> tuple[Path, Path]:
        if not pipeline:
            return self.place / "tree", self.place / "git"
        check_name("pipeline", pipeline)
        return self.place / "trees" / pipeline, self.place / "gits" / pipeline

    def _read_pipeline(self, pipeline: str) -> PipelineRecord | None:
        path = self._places(pipeline)[1] / "pipeline.json"
        return msgspec.json.decode(path.read_bytes(), type=PipelineRecord) if pipeline and path.exists() else None


def open_session(
    root: Path,
    state: Path,
    session: str,
    base: str,
    *,
    take_changes: bool,
    clock: Clock,
    branch: str = "",
    has_pointer: bool = True,
) -> OpenedSession:
    """Make the branch and the work tree of a session, or find them. Raises InvalidInput for a folder that cannot be
    used, and if the branch named after the session already belongs to something else."""
    require_version()
    check_name("session", session)
    place = state / session
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    repository = find_repository(root, state)
    with locked(place / "session"):
        record = _read_session(place)
        if record is None:
            _free_branch(repository, session, branch)  # raises before the work of beginning
            record = _begin(repository, place, session, base, take_changes=take_changes, clock=clock)
            with locked(state / "branches"):  # two sessions that open at once do not take the same branch
                record = msgspec.structs.replace(record, branch=_free_branch(repository, session, branch))
                replace_file(place / "session.json", msgspec.json.encode(record))
                create_branch(repository, record.branch, record.start)
        trees = SessionTrees(_at(repository, record), place, record, has_pointer=has_pointer)
        if not repository.read_ref(trees.branch):
            create_branch(repository, trees.branch, record.start)
        tree = trees.write_session_tree()
    return OpenedSession(
        kind=record.kind,
        branch=short(trees.branch),
        base_commit=record.base_commit,
        head=trees.head,
        folder=str(tree.project),
        notes=record.notes,
    )


def find_session(root: Path, state: Path, session: str, *, has_pointer: bool = True) -> SessionTrees:
    """The trees of a session that was opened. Raises NotFound."""
    check_name("session", session)
    record = _read_session(state / session)
    if record is None:
        hint = (
            f"{state / session} was deleted. Merged work is on the branch clew/{session} or clew/NAME. Start the rest"
        )
        raise NotFound("work trees of session", session, hint=f"{hint} again with `clew code`")
    repository = _at(find_repository(root, state), record)
    return SessionTrees(repository, state / session, record, has_pointer=has_pointer)


def restore_files(git: GitFolder, commit: str) -> bool:
    """Restore the files of a commit, and remove untracked files that are not ignored. Return whether tracked files had
    been changed."""
    git.run(["update-index", "-q", "--refresh", "--ignore-submodules"], codes=(0, 1))
    was_changed = bool(git.run(["diff-files", "-z", "--name-only", "--ignore-submodules=dirty"]).stdout)
    git.run(["read-tree", "--reset", "-u", commit])
    git.run(["clean", "-f", "-d", "-q"], codes=(0, 1))
    return was_changed


def create_branch(repository: Repository, name: str, commit: str) -> None:
    """Create a branch. Raises InvalidInput if git cannot create it, for example `clew/a` if a branch `clew` exists."""
    if not repository.move_ref(name, commit, ""):
        folder = short(name).split("/")[0]
        raise InvalidInput("branch", f"{short(name)} cannot be made", hint=f"Rename a branch that is called {folder}")


def short(ref: str) -> str:
    """The name of a branch without `refs/heads/`."""
    return ref.removeprefix("refs/heads/")


def _free_branch(repository: Repository, session: str, wanted: str) -> str:
    """A free branch: the preferred name, or the name with the end of the session's id if it is taken. Raises
    InvalidInput if no name is free."""
    name = check_name("branch", wanted.removeprefix(short(BRANCHES)) or session)
    names = dict.fromkeys((name, f"{name}-{session[-8:]}", session)) if wanted else (session,)
    for each in names:
        if not repository.read_ref(BRANCHES + each):
            return BRANCHES + each
    hint = "Choose another name for the session, or delete the branch"
    raise InvalidInput("branch", f"clew/{session} exists already", hint=hint)


def _begin(
    repository: Repository, place: Path, session: str, base: str, *, take_changes: bool, clock: Clock
) -> SessionRecord:
    notes: list[str] = []
    git = make_git_folder(repository, place / "git", repository.top)
    head = ""
    if repository.kind == "git":
        head = repository.resolve(base or "HEAD")
        notes += _notes_on(repository, git, head)
    else:
        notes.append("This folder has no git: the team works in a copy, and changed files are copied back at the end")
    start = head
    if take_changes or repository.kind == "copy":
        if head and head != repository.head:
            raise InvalidInput("take_changes", "works with the commit that is checked out", hint="Leave base out")
        taken = snapshot_checkout(repository, place / "snapshot")
        notes += taken.notes
        if not head or taken.tree != git.tree_of(head):
            parents = [head] if head else []
            message = _TAKEN if head else "The folder when the session began"
            start = write_commit(git, taken.tree, parents, message, repository.identity(), clock)
    return SessionRecord(
        kind=repository.kind,
        session=session,
        root=str(repository.root),
        base_commit=head or start,
        start=start,
        notes=tuple(notes[:50]),
    )


def _notes_on(repository: Repository, git: GitFolder, head: str) -> list[str]:
    """Notes on parts of a repository that are missing in work trees."""
    entries = git.run(["ls-tree", "-r", "-z", head]).fields()
    notes = [
        f"The submodule {json_name(path)} is empty in work trees"
        for about, _, path in (each.partition(b"\t") for each in entries)
        if about.startswith(b"160000 ")
    ][:10]
    if any(each.endswith(b"\t.gitattributes") for each in entries):
        attributes = git.run(["cat-file", "blob", f"{head}:.gitattributes"]).stdout
        if b"filter=" in attributes:
            notes.append("Files with a filter of git, such as Git LFS, stay as they are stored")
    if repository.core_settings().get("sparsecheckout") == "true":
        notes.append("Work trees hold all files, not only those of the sparse checkout")
    return notes


def _describe_commit(
    tree: WorkTree, head: str, written: str, found: FileChanges, files: Sequence[str], notes: tuple[str, ...]
) -> PipelineCommit:
    prefix = tree.project.relative_to(tree.folder).as_posix()
    inner = {path: path.removeprefix(f"{prefix}/") if prefix != "." else path for path in found.changed}
    return PipelineCommit(
        commit=head,
        tree=written,
        base_commit=tree.base_commit,
        changed=found.changed,
        created=found.created,
        deleted=found.deleted,
        is_empty=not found.changed,
        outside=tuple(path for path in found.changed if is_outside(inner[path], files)),
        notes=notes,
    )


def _read_session(place: Path) -> SessionRecord | None:
    path = place / "session.json"
    return msgspec.json.decode(path.read_bytes(), type=SessionRecord) if path.exists() else None


def _at(repository: Repository, record: SessionRecord) -> Repository:
    """The repository with a head. For a folder without git, the head is the session's first commit."""
    return repository if repository.head else replace(repository, head=record.start)
