"""Commits as git tells them: the records, and reading its log. Addresses of authors are left out; keys are masked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from clew.fences import clean
from clew.knowledge.git_objects import Objects, find_objects, stream_apart
from clew.secrecy import mask_message

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
_SHA = re.compile(r"[0-9a-f]+")
_SECONDS = re.compile(r"-?\d{1,20}", re.ASCII)
_LAST_SECOND = int(datetime(9999, 12, 30, tzinfo=UTC).timestamp())
"""A day before the last, so that it is a moment in every time zone."""
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
    """The commits that git means by these revisions, names of commits among them, newest first, at most `limit`, with
    the files that each touched; a merge touches none of itself. Raises SourceError."""
    yield from _read_log(find_objects(root), [f"--max-count={limit}"], revisions)


def read_named(objects: Objects, names: Sequence[str]) -> Iterator[Commit]:
    """The commits of these names alone, in their order. Raises SourceError."""
    return _read_log(objects, ["--no-walk=unsorted"], names) if names else iter(())


def _read_log(objects: Objects, chosen: Sequence[str], revisions: Sequence[str]) -> Iterator[Commit]:
    arguments = ["log", "-z", "--raw", "--no-abbrev", "--no-ext-diff", "--no-textconv", "--no-show-signature"]
    arguments += [f"--relative={objects.prefix}" if objects.prefix else "--no-relative"]
    # where contents are fetched on demand, only renames that need none are told
    arguments += ["-M100%" if objects.is_partial else "-M", "--encoding=UTF-8", "--no-color", _FORMAT, *chosen]
    return parse_log(stream_apart(objects, [*arguments, "--end-of-options", *revisions, "--"]))


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
        commit = _commit([_text(piece) for piece in header], files[:MAX_FILES])
        if _SHA.fullmatch(commit.sha):
            yield commit


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
        at=_moment(seconds),
        author=_without_addresses(author, 200),
        subject=_without_addresses(subject, 500),
        body=_without_addresses(body.strip(), MAX_BODY).strip(),
        trailers=tuple(_trailers(trailers)),
        files=tuple(files),
    )


def _moment(seconds: str) -> datetime:
    """The moment that git tells, or the nearest that there is: a commit may claim any number."""
    number = int(seconds) if _SECONDS.fullmatch(seconds) else 0
    return datetime.fromtimestamp(min(max(number, 0), _LAST_SECOND), UTC)


def _trailers(text: str) -> Iterator[tuple[str, str]]:
    for line in text.split("\n")[:50]:
        found = _TRAILER.fullmatch(line.strip())
        if found:
            yield found[1], _without_addresses(found[2], 500)


def _without_addresses(text: str, limit: int) -> str:
    """At most so many characters of a text. Little more of it is looked at: it may have any length. Keys go first: a
    password may look like the name in an address."""
    looked_at = text[: limit + _BEYOND]
    if len(text) > len(looked_at):
        looked_at = (looked_at.rsplit(None, 1) or [""])[0]  # a key that is cut off does not look like one
    return _ADDRESS.sub("", mask_message(clean(looked_at)))[:limit]


def _text(piece: bytes) -> str:
    return piece.decode(errors="replace")
