"""The commits and contents of a repository, read with none of its settings: git works in an empty repository of ours
and only looks objects up in that one. So no setting, no list of names and no attribute of it is read or obeyed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from clew.errors import SourceError
from clew.knowledge.git import Workplace, read_folder, read_sha, run_git, stream_git
from clew.knowledge.git_home import require_own

_PLAIN = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
_SHA256 = "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = sha256\n"
_UNBORN = "ref: refs/heads/none\n"


class Objects(msgspec.Struct, frozen=True, kw_only=True):
    """Where the objects of a repository lie, as seen from a folder of it. `head` is the commit that is checked out;
    `prefix` is where the folder lies in the repository: empty at the top, else with a `/` at the end."""

    root: Path
    head: str
    prefix: str
    folder: Path

    @property
    def is_partial(self) -> bool:
        """Whether only a part of the contents is there, and git would fetch the others."""
        return any(self.folder.glob("pack/*.promisor"))


def find_objects(root: Path) -> Objects:
    """The objects of the repository around a folder. Raises SourceError: no repository, no commit yet, no git, or a
    repository that is not the folder's own."""
    require_own(root)
    prefix, _, head = run_git(root, ["rev-parse", "--show-prefix", "HEAD^{commit}"]).rstrip(b"\n").rpartition(b"\n")
    return Objects(
        root=root,
        head=read_sha(head),
        prefix=prefix.decode(errors="surrogateescape"),
        folder=read_folder(root, "--git-path", "objects").absolute(),
    )


def run_apart(objects: Objects, arguments: Sequence[str], *, timeout: float | None = None) -> bytes:
    """What git answers from objects alone: commits go by their names, paths start at the top. Raises SourceError."""
    with _workplace(objects) as place:
        return run_git(objects.root, arguments, timeout=timeout, place=place)


def stream_apart(objects: Objects, arguments: Sequence[str]) -> Iterator[bytes]:
    """As `run_apart`, piece by piece between NULs."""
    with _workplace(objects) as place:
        yield from stream_git(objects.root, arguments, place=place)


@contextmanager
def _workplace(objects: Objects) -> Iterator[Workplace]:
    """An empty repository for one command; it also stands for the home of the user, whose settings do not count."""
    try:
        made = TemporaryDirectory(prefix="clew-git-", ignore_cleanup_errors=True)
    except OSError as error:
        raise SourceError("git", f"has no folder to work in: {error.strerror}") from None
    with made as scratch:
        Path(scratch, "refs").mkdir()
        Path(scratch, "HEAD").write_text(_UNBORN)
        Path(scratch, "config").write_text(_SHA256 if len(objects.head) == 64 else _PLAIN)
        yield Workplace(
            folder=scratch,
            environment={
                "GIT_DIR": scratch,
                "GIT_OBJECT_DIRECTORY": str(objects.folder),
                "GIT_SHALLOW_FILE": str(objects.folder.parent / "shallow"),
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_ATTR_NOSYSTEM": "1",
                "HOME": scratch,
                "XDG_CONFIG_HOME": scratch,
            },
        )
