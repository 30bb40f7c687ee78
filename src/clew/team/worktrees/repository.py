"""The repository of a project folder, as the team uses it: its objects, refs, identity and harmless settings. For a
folder without git, Clew creates a repository of its own, in which the user's files are the first commit."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from clew.errors import InvalidInput, SourceError
from clew.files import replace_file
from clew.knowledge.git.run import GitFailed, find_objects
from clew.team.worktrees.git_calls import NO_OBJECT, GitFolder, Identity, call_git

Kind = Literal["git", "copy"]
_COPIED = (
    *("autocrlf", "eol", "filemode", "symlinks", "ignorecase", "precomposeunicode", "protecthfs", "protectntfs"),
    *("trustctime", "checkstat", "longpaths", "sparsecheckout", "sparsecheckoutcone"),
)
"""Settings of `core` that affect how files are written and that cannot run programs."""
_VALUE = re.compile(r"[\w-]{1,20}")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,118}[A-Za-z0-9_-])?")
_EXCLUDED = ("__pycache__/", "*.py[co]", "node_modules/", ".venv/", ".DS_Store", "*.kept-back", "*.kept-back-[0-9]*")
"""Untracked files that are never part of a change."""
_BEGUN = {"MERGE_HEAD": "merge", "rebase-merge": "rebase", "rebase-apply": "rebase", "CHERRY_PICK_HEAD": "cherry-pick"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """The repository of a folder. `top` is its work tree, `prefix` the path of the project's folder below it. `own` is
    the git folder of that work tree, `common` the git folder that all work trees share. `head` is the commit of HEAD
    when the repository was opened."""

    kind: Kind
    root: Path
    top: Path
    prefix: str
    own: Path
    common: Path
    head: str

    @property
    def objects(self) -> Path:
        return self.common / "objects"

    def read_ref(self, name: str) -> str:
        """The commit of a ref; empty if the ref does not exist."""
        asked = ["--git-dir", str(self.own), "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"]
        return call_git(asked, cwd=self.own, codes=(0, 1, 128)).stdout.decode().strip()

    def resolve(self, name: str) -> str:
        """The commit of a branch, a tag or a commit's name. Raises InvalidInput."""
        if not name or name.startswith("-") or any(each in name for each in "\0\n \t~^:?*[\\") or ".." in name:
            raise InvalidInput("base", f"{name[:80]!r} is not the name of a branch or a commit")
        for full in (name, f"refs/heads/{name}", f"refs/tags/{name}", f"refs/remotes/{name}"):
            if found := self.read_ref(full):
                return found
        raise InvalidInput("base", f"{name[:80]!r} is not known here", hint="`git branch` lists the branches")

    def move_ref(self, name: str, new: str, old: str) -> bool:
        """Set a ref if it still has the value `old`; an empty `old` means that it must not exist. Return whether the
        ref now has the value `new`."""
        arguments = ["--git-dir", str(self.own), "update-ref", "-m", "clew: team", name, new, old or NO_OBJECT]
        try:
            call_git(arguments, cwd=self.own)
        except GitFailed:
            return self.read_ref(name) == new
        return True

    def delete_ref(self, name: str, old: str) -> None:
        call_git(["--git-dir", str(self.own), "update-ref", "-d", name, old], cwd=self.own)

    def identity(self) -> Identity:
        """The user's identity for commits, or Clew's own."""
        found = [self._setting(f"user.{each}") for each in ("name", "email")]
        return Identity(name=found[0], email=found[1]) if all(found) else Identity()

    def refuse_begun_operation(self) -> None:
        """Raise InvalidInput during a merge, a rebase or a cherry-pick of the user."""
        for name, what in _BEGUN.items():
            if (self.own / name).exists():
                raise InvalidInput("checkout", f"a {what} is under way", hint=f"Finish it, or `git {what} --abort`")

    def _setting(self, name: str) -> str:
        asked = ["config", "--get", name]
        return call_git(asked, cwd=self.top, codes=(0, 1, 128)).stdout.decode(errors="replace").strip()[:200]

    def core_settings(self) -> dict[str, str]:
        """The harmless settings that decide how files are written."""
        asked = ["config", "-z", "--get-regexp", rf"^core\.({'|'.join(_COPIED)})$"]
        found: dict[str, str] = {}
        for field in call_git(asked, cwd=self.top, codes=(0, 1, 128)).fields():
            name, _, value = field.decode(errors="replace").partition("\n")
            if _VALUE.fullmatch(value):
                found[name.removeprefix("core.")] = value
        return found

    def excluded(self) -> str:
        """Patterns of files that are never part of a change: those of the repository, the user's, and Clew's own."""
        listed = Path(self._setting("core.excludesFile") or _default_excludes()).expanduser()
        texts = [_read_text(path) for path in (self.common / "info" / "exclude", listed)]
        return "\n".join((*texts, *_EXCLUDED, ""))


def find_repository(root: Path, state: Path) -> Repository:
    """The repository of a folder; if the folder has none, Clew's own repository below `state`.

    Raises InvalidInput for a repository that the team cannot use, in one line.
    """
    root = Path(os.path.realpath(root))
    if not root.is_dir():
        raise InvalidInput("root", f"{root} is not a folder")
    try:
        printed = call_git(["rev-parse", "--is-bare-repository", "--is-inside-work-tree"], cwd=root).stdout.split()
    except GitFailed:
        return _own_repository(root, state)
    if printed != [b"false", b"true"]:
        raise InvalidInput("root", "is a bare repository, or its .git folder", hint="Start in a checkout")
    try:
        objects = find_objects(root)
    except GitFailed:
        raise InvalidInput("root", "is a repository without a commit", hint="Make one: `git commit`") from None
    except SourceError as error:
        raise InvalidInput("root", error.message) from None
    if objects.is_partial:
        raise InvalidInput("root", "is a partial clone", hint="Clone it again without --filter")
    top = root
    for _ in Path(objects.prefix).parts:
        top = top.parent
    return Repository(
        kind="git",
        root=root,
        top=top,
        prefix=objects.prefix.rstrip("/"),
        own=objects.own,
        common=objects.common,
        head=objects.head,
    )


def _own_repository(root: Path, state: Path) -> Repository:
    """A bare repository for a folder without git. It has no commit before a session opens."""
    place = state / "repository.git"
    if not (place / "HEAD").exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        call_git(["init", "--quiet", "--bare", "--template=", "--initial-branch=folder", str(place)], cwd=place.parent)
    return Repository(kind="copy", root=root, top=root, prefix="", own=place, common=place, head="")


def state_folder(root: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """The folder for the work trees of a project: outside of it, in the state folder of the user."""
    base = environ.get("XDG_STATE_HOME") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".local/state")
    real = os.path.realpath(root)
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    place = Path(os.path.realpath(base), "clew", "worktrees", digest)
    if place.is_relative_to(real):
        raise InvalidInput("XDG_STATE_HOME", "lies in the project", hint="Choose a folder outside of it")
    return place


def check_name(field: str, name: str) -> str:
    """Return the name of a session, pipeline or branch if it is valid in paths and branch names. Raises
    InvalidInput."""
    if not _NAME.fullmatch(name) or ".." in name or name.endswith(".lock"):
        raise InvalidInput(field, f"{name[:80]!r} cannot be a branch", hint="Use letters, digits, `.`, `_` and `-`")
    return name


def make_git_folder(repository: Repository, place: Path, work_tree: Path | None) -> GitFolder:
    """Make the git folder of a work tree, or complete it. It contains only the harmless settings of `core` of the
    repository."""
    (place / "refs").mkdir(parents=True, exist_ok=True)
    (place / "info").mkdir(exist_ok=True)
    (place / "objects" / "info").mkdir(parents=True, exist_ok=True)
    settings = {**repository.core_settings(), "bare": "false"}
    if work_tree != repository.top:
        settings = {name: value for name, value in settings.items() if not name.startswith("sparse")}
    is_sha256 = len(repository.head) == 64
    lines = ["[core]", f"\trepositoryformatversion = {int(is_sha256)}", *(f"\t{k} = {v}" for k, v in settings.items())]
    if is_sha256:
        lines += ["[extensions]", "\tobjectFormat = sha256"]
    replace_file(place / "config", "\n".join((*lines, "")).encode())
    replace_file(place / "objects" / "info" / "alternates", os.fsencode(repository.objects) + b"\n")
    replace_file(place / "info" / "exclude", repository.excluded().encode(errors="surrogateescape"))
    sparse = _read_text(repository.own / "info" / "sparse-checkout")
    if sparse and work_tree == repository.top:
        replace_file(place / "info" / "sparse-checkout", sparse.encode(errors="surrogateescape"))
    if not (place / "HEAD").exists():
        replace_file(place / "HEAD", b"ref: refs/heads/none\n")
    shallow = repository.common / "shallow"
    return GitFolder(
        gitdir=place,
        objects=repository.objects,
        work_tree=work_tree,
        index=place / "index",
        shallow=shallow if shallow.exists() else None,
    )


def _default_excludes() -> str:
    return os.path.join(os.environ.get("XDG_CONFIG_HOME") or "~/.config", "git", "ignore")


def _read_text(path: Path) -> str:
    try:
        return path.read_text(errors="surrogateescape") if path.is_file() else ""
    except OSError:
        return ""
