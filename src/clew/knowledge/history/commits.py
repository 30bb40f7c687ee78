"""Commits as git tells them: the records, and reading its log. Addresses of authors are left out; keys are masked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from clew.fences import clean
from clew.knowledge.git import folder_in_repository, is_partial, stream_git
from clew.secrecy import mask_keys

NEWEST = 20_000
"""How many commits are read of a repository, the newest ones."""

MAX_BODY = 8_000
MAX_FILES = 5_000
"""Files of one commit that are kept: one that moves a whole tree says nothing of any file."""

TouchKind = Literal["created", "modified", "deleted", "renamed"]

_FORMAT = "--format=%x01%H%x00%P%x00%ct%x00%an%x00%s%x00%b%x00%(trailers:only,unfold)"
_HEADER = 7
_BEYOND = 1_000
"""Characters after the last that is kept, among which an address or a key may end."""
_KINDS: dict[str, TouchKind] = {"A": "created", "C": "created", "D": "deleted", "R": "renamed"}
_ADDRESS = re.compile(
    r"(?:(?<!\s)\s{1,20}+)?<[^<>\s]{1,200}@[^<>\s]{1,200}>|\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}\b"
)
_TRAILER = re.compile(r"([A-Za-z][A-Za-z0-9-]{1,40}|BREAKING CHANGE):\s+(.+)")


class Touched(msgspec.Struct, frozen=True, array_like=True):
    """A file that a commit touched, and what it was called before."""

    path: str
    kind: TouchKind
    old_path: str = ""


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """One commit. `author` is the name that the repository holds; `trailers` are pairs in order."""

    sha: str
    parents: tuple[str, ...]
    at: datetime
    author: str
    subject: str
    body: str
    trailers: tuple[tuple[str, str], ...] = ()
    files: tuple[Touched, ...] = ()

    @property
    def cited(self) -> str:
        """How it is cited: the beginning of its name, its day and its subject."""
        return f"{self.sha[:12]} ({self.at:%Y-%m-%d}) {self.subject}"


def read_commits(root: Path, revisions: Sequence[str], *, limit: int = NEWEST) -> Iterator[Commit]:
    """The commits that git means by these revisions, newest first, at most `limit`, with the files that each touched;
    a merge touches none of itself. Raises SourceError."""
    arguments = ["log", "-z", "--raw", "--no-abbrev", "--no-ext-diff", "--no-textconv", "--no-show-signature"]
    arguments += ["--relative" if folder_in_repository(root) else "--no-relative", "--encoding=UTF-8", "--no-color"]
    # where contents are fetched on demand, only renames that need none are told
    arguments += [
        "-M100%" if is_partial(root) else "-M",
        f"--max-count={limit}",
        _FORMAT,
        "--end-of-options",
        *revisions,
        "--",
    ]
    yield from parse_log(stream_git(root, arguments))


def parse_log(pieces: Iterable[bytes]) -> Iterator[Commit]:
    """Commits from the pieces between NULs of the log. A piece is read by where it stands, so no name of a file and no
    message can be taken for something else."""
    feed = iter(pieces)
    first = next(feed, None)
    while first is not None:
        header = [first, *(next(feed, b"") for _ in range(_HEADER - 1))]
        files: list[Touched] = []
        first = next(feed, None)
        while first is not None and not first.startswith(b"\x01"):
            files += _touched(first, feed)
            first = next(feed, None)
        yield _commit([_text(piece) for piece in header], files[:MAX_FILES])


def _touched(piece: bytes, feed: Iterator[bytes]) -> list[Touched]:
    """From `:mode mode blob blob STATUS` and the one or two paths after it; nothing from an empty piece."""
    status = piece.strip(b"\n").rpartition(b" ")[2].decode(errors="replace")[:1]
    if not piece.strip(b"\n").startswith(b":") or not status:
        return []
    path = _text(next(feed, b""))
    if status not in "RC":
        return [Touched(path, _KINDS.get(status, "modified"))]
    return [Touched(_text(next(feed, b"")), _KINDS[status], path)]


def _commit(header: Sequence[str], files: Sequence[Touched]) -> Commit:
    sha, parents, seconds, author, subject, body, trailers = header
    return Commit(
        sha=sha.lstrip("\n\x01"),
        parents=tuple(parents.split()),
        at=datetime.fromtimestamp(int(seconds or 0), UTC),
        author=_without_addresses(author, 200),
        subject=_without_addresses(subject, 500),
        body=_without_addresses(body.strip(), MAX_BODY).strip(),
        trailers=tuple(_trailers(trailers)),
        files=tuple(files),
    )


def _trailers(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines()[:50]:
        found = _TRAILER.fullmatch(line.strip())
        if found:
            yield found[1], _without_addresses(found[2], 500)


def _without_addresses(text: str, limit: int) -> str:
    """At most so many characters of a text. Little more of it is looked at: it may have any length."""
    return mask_keys(_ADDRESS.sub("", clean(text[: limit + _BEYOND])))[:limit]


def _text(piece: bytes) -> str:
    return piece.decode(errors="replace")
