"""Merges without a work tree: `git merge-tree` writes the merged tree, and a branch is moved only if nobody else has
changed it. A conflict changes nothing: both versions stay on their branches and are reported."""

from __future__ import annotations

from typing import Literal

import msgspec

from clew.clock import Clock
from clew.errors import InvalidInput, SourceError
from clew.knowledge.git.run import read_sha
from clew.team.worktrees.changes import write_commit
from clew.team.worktrees.git_calls import SUBMODULE, GitFolder, json_name
from clew.team.worktrees.session_trees import SessionTrees, short

MAX_VERSION = 20_000
"""Characters of each version of a file in conflict."""
MAX_CONFLICTS = 100
ATTEMPTS = 5

ConflictKind = Literal["content", "binary", "both_added", "modify_delete", "rename", "mode", "submodule", "file_folder"]
_KINDS: tuple[tuple[str, ConflictKind], ...] = (
    ("submodule", "submodule"),
    ("rename", "rename"),
    ("directory", "file_folder"),
    ("distinct modes", "mode"),
    ("distinct types", "mode"),
    ("modify/delete", "modify_delete"),
    ("binary", "binary"),
    ("add/add", "both_added"),
)
"""Maps words in the conflict kinds of git to kinds of conflicts. The first match counts."""


class MergeConflict(msgspec.Struct, frozen=True, kw_only=True):
    """A file that two sides changed differently. `ours` is the session's version, `theirs` the pipeline's; a version is
    empty if the file does not exist on that side, and binary content is only described."""

    path: str
    kind: ConflictKind
    ours: str = ""
    theirs: str = ""
    base: str = ""


class MergedTrees(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a merge that changes no branch."""

    tree: str
    conflicts: tuple[MergeConflict, ...] = ()


class PipelineMerge(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `team-merge`."""

    merged: bool
    head: str
    tree: str = ""
    conflicts: tuple[MergeConflict, ...] = ()


def merge_trees(git: GitFolder, ours: str, theirs: str) -> MergedTrees:
    """Merge two commits. Raises SourceError for commits without a common history."""
    ran = git.run(["merge-tree", "--write-tree", "-z", "--messages", ours, theirs], codes=(0, 1, 128))
    if ran.code == 128:
        raise SourceError("git", "the two sides have no common history", hint="Merge them by hand")
    first, _, rest = ran.stdout.partition(b"\0")
    tree = read_sha(first)
    if ran.code == 0:
        return MergedTrees(tree=tree)
    stages, messages = _split(rest)
    kinds = _read_kinds(messages)
    found = [
        _conflict(git, path, versions, kinds) for path, versions in sorted(stages.items(), key=lambda each: each[0])
    ]
    return MergedTrees(tree=tree, conflicts=tuple(found[:MAX_CONFLICTS]))


def merge_pipeline(trees: SessionTrees, pipeline: str, clock: Clock) -> PipelineMerge:
    """Merge a pipeline's branch into the session's branch. A repeated call finds it merged."""
    tree = trees.tree(pipeline)
    theirs = trees.repository.read_ref(tree.branch)
    if not theirs:
        raise InvalidInput("pipeline", f"the branch {short(tree.branch)} is gone")
    for _ in range(ATTEMPTS):
        with trees.locked():
            head = trees.head
            if not is_ancestor(tree.git, theirs, head):
                merged = merge_trees(tree.git, head, theirs)
                if merged.conflicts:
                    return PipelineMerge(merged=False, head=head, conflicts=merged.conflicts)
                new = _join(trees, tree.git, merged.tree, head, theirs, pipeline, clock)
                if not trees.repository.move_ref(trees.branch, new, head):
                    continue  # somebody else has moved the branch
            trees.write_session_tree()
            return PipelineMerge(merged=True, head=trees.head, tree=tree.git.tree_of(trees.head))
    raise InvalidInput("branch", f"{short(trees.branch)} keeps changing", hint="Try again")


def is_ancestor(git: GitFolder, older: str, newer: str) -> bool:
    """Whether a commit is in the history of another."""
    return git.run(["merge-base", "--is-ancestor", older, newer], codes=(0, 1)).code == 0


def _join(trees: SessionTrees, git: GitFolder, tree: str, head: str, theirs: str, pipeline: str, clock: Clock) -> str:
    if is_ancestor(git, head, theirs):
        return theirs
    return write_commit(git, tree, [head, theirs], f"Merge {pipeline}", trees.repository.identity(), clock)


# -- the output of merge-tree ------------------------------------------------------------------------------------


def _split(rest: bytes) -> tuple[dict[bytes, dict[str, tuple[str, str]]], list[bytes]]:
    """Split the conflict output of git into versions by path and stage (1 base, 2 ours, 3 theirs), and the fields of
    the messages."""
    stages: dict[bytes, dict[str, tuple[str, str]]] = {}
    fields = rest.split(b"\0")
    for at, field in enumerate(fields):
        if not field:
            return stages, fields[at + 1 :]
        about, _, path = field.partition(b"\t")
        mode, blob, number = about.decode().split()
        stages.setdefault(path, {})[number] = (mode, blob)
    return stages, []


def _read_kinds(fields: list[bytes]) -> dict[bytes, str]:
    """The kind of each conflict by path, as git names it: `CONFLICT (contents)`."""
    kinds: dict[bytes, str] = {}
    at = 0
    while at < len(fields) and fields[at].isdigit():
        count = int(fields[at])
        paths, kind = fields[at + 1 : at + 1 + count], fields[at + 1 + count].decode(errors="replace")
        if kind.startswith("CONFLICT"):
            for path in paths:
                kinds[path] = f"{kinds.get(path, '')} {kind.lower()}"
        at += count + 3
    return kinds


def _conflict(
    git: GitFolder, path: bytes, versions: dict[str, tuple[str, str]], kinds: dict[bytes, str]
) -> MergeConflict:
    texts = {number: _read_version(git, *version) for number, version in versions.items()}
    return MergeConflict(
        path=json_name(path),
        kind=_kind_of(kinds.get(path, ""), versions, texts),
        base=texts.get("1", ""),
        ours=texts.get("2", ""),
        theirs=texts.get("3", ""),
    )


def _kind_of(named: str, versions: dict[str, tuple[str, str]], texts: dict[str, str]) -> ConflictKind:
    if any(mode == SUBMODULE for mode, _ in versions.values()):
        return "submodule"
    if found := next((kind for word, kind in _KINDS if word in named), None):
        return found
    if any(text.startswith("[binary") for text in texts.values()):
        return "binary"
    if "1" not in versions:
        return "both_added"
    return "content" if {"2", "3"} <= versions.keys() else "modify_delete"


def _read_version(git: GitFolder, mode: str, blob: str) -> str:
    if mode == SUBMODULE:
        return f"[submodule at {blob}]"
    content = git.run(["cat-file", "blob", blob]).stdout
    if b"\0" in content[:8_000]:
        return f"[binary, {len(content):,} bytes]"
    text = content.decode(errors="replace")
    return text if len(text) <= MAX_VERSION else f"{text[:MAX_VERSION]}\n[{len(text) - MAX_VERSION:,} characters more]"
