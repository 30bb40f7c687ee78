"""Commits as `git log` prints them, the commits that changed lines or a text, and those between two versions. Addresses
of authors are left out; keys are masked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from clew.errors import SourceError
from clew.fences import clean
from clew.knowledge.git.run import Objects, find_head, find_objects, read_sha, run_git
from clew.lazy_pattern import lazy_pattern
from clew.secrecy import mask_message

if TYPE_CHECKING:
    from packaging.version import Version

COMMIT_PREFIX = "commit:"
"""Prefix of the ids of commits as nodes."""
NEWEST = 20_000
"""Commits that are read of a repository, the newest ones."""
MAX_BODY = 8_000
MAX_FILES = 5_000
"""The most files of one commit that are stored. A commit that moves a whole tree carries no information on a single
file."""
LINES_SECONDS = 20.0
TEXT_SECONDS = 2.0
MAX_TEXT = 200

_FORMAT = "--format=%x01%H%x00%P%x00%ct%x00%an%x00%s%x00%b"
_HEADER = 6
_BEYOND = 1_000
"""Characters after the limit that are also masked, because an address or a key may end there."""
_ADDRESS = lazy_pattern(
    r"(?:(?<!\s)\s{1,20}+)?<[^<>\s]{1,200}@[^<>\s]{1,200}>|\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}\b"
)
_SHA = lazy_pattern(r"[0-9a-f]+")
_SECONDS = lazy_pattern(r"-?\d{1,20}", re.ASCII)
_LAST_SECOND = int(datetime(9999, 12, 30, tzinfo=UTC).timestamp())
"""A day before the last, so that it is valid in every time zone."""


class Touched(msgspec.Struct, frozen=True, array_like=True):
    """A file that a commit touched, and its path before if it was renamed or copied."""

    path: str
    old_path: str = ""


class GitCommit(msgspec.Struct, frozen=True, kw_only=True):
    """One commit. `author` is a name without address."""

    sha: str
    parents: tuple[str, ...]
    at: datetime
    author: str
    subject: str
    body: str
    files: tuple[Touched, ...] = ()


def read_commits(root: Path, revisions: Sequence[str], *, limit: int = NEWEST) -> Iterator[GitCommit]:
    """The newest `limit` commits that these revisions select, newest first, with the files that each touched; a merge
    has none of its own. Raises SourceError."""
    yield from _read_log(find_objects(root), [f"--max-count={limit}"], revisions)


def read_named(objects: Objects, names: Sequence[str]) -> Iterator[GitCommit]:
    """The commits of these names alone, in their order. Raises SourceError."""
    return _read_log(objects, ["--no-walk=unsorted"], names) if names else iter(())


def read_line_commits(
    root: Path, path: str, first: int, last: int, *, revision: str = "", limit: int = 10, timeout: float = LINES_SECONDS
) -> list[GitCommit]:
    """The newest commits that changed a range of lines, counted as in `revision` (default: the commit that is checked
    out), newest first: those that git finds in time, none without such lines. Raises SourceError without a
    repository."""
    objects = find_objects(root)
    lines = f"-L{first},{last}:{objects.prefix}{path}"
    return _find_commits(objects, [lines, f"--max-count={limit}", revision or objects.head, "--"], timeout)


def read_text_commits(
    root: Path, text: str, *, path: str = "", limit: int = 10, timeout: float = TEXT_SECONDS
) -> list[GitCommit]:
    """The newest commits that added or removed an exact text, such as a name, newest first: those that git finds
    in time. Raises SourceError without a repository."""
    objects = find_objects(root)
    if not text.strip() or len(text) > MAX_TEXT or "\0" in text:
        return []
    arguments = ["--no-renames", f"-S{text}", f"--max-count={limit}", objects.head, "--"]
    return _find_commits(objects, [*arguments, *filter(None, [objects.prefix + path])], timeout)


def _find_commits(objects: Objects, arguments: Sequence[str], timeout: float) -> list[GitCommit]:
    names: list[str] = []
    command = ["log", "-z", "-s", "--format=%H", "--no-textconv", "--no-ext-diff"]
    with suppress(SourceError):  # one by one, so that the commits found before the time limit are used
        names.extend(_text(piece).strip() for piece in objects.stream([*command, *arguments], timeout=timeout))
    return list(read_named(objects, [name for name in names if _SHA.fullmatch(name)]))


def _read_log(objects: Objects, chosen: Sequence[str], revisions: Sequence[str]) -> Iterator[GitCommit]:
    arguments = ["log", "-z", "--raw", "--no-abbrev", "--no-ext-diff", "--no-textconv", "--no-show-signature"]
    arguments += [f"--relative={objects.prefix}" if objects.prefix else "--no-relative"]
    # a partial clone would have to fetch contents to find renames that also changed something
    arguments += ["-M100%" if objects.is_partial else "-M", "--encoding=UTF-8", "--no-color", _FORMAT, *chosen]
    return parse_log(objects.stream([*arguments, "--end-of-options", *revisions, "--"]))


def parse_log(pieces: Iterable[bytes]) -> Iterator[GitCommit]:
    """Commits from the pieces between NULs of the log. The position of a piece decides its meaning, so no file name and
    no message can forge another field."""
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
    """Parse `:mode mode blob blob STATUS` and the one or two paths after it."""
    piece = piece.strip(b"\n")
    status = piece.rpartition(b" ")[2][:1]
    if not piece.startswith(b":") or not status:
        return []
    path = _text(next(feed, b""))
    if status not in b"RC":
        return [Touched(path)]
    return [Touched(_text(next(feed, b"")), path)]


def _commit(header: Sequence[str], files: Sequence[Touched]) -> GitCommit:
    sha, parents, seconds, author, subject, body = header
    return GitCommit(
        sha=sha.lstrip("\n\x01"),
        parents=tuple(parents.split()),
        at=_moment(seconds),
        author=_author(author),
        subject=_without_addresses(subject, 500),
        body=_without_addresses(body.strip(), MAX_BODY).strip(),
        files=tuple(files),
    )


@lru_cache(NEWEST)
def _author(name: str) -> str:
    return _without_addresses(name, 200)


def _moment(seconds: str) -> datetime:
    """The nearest valid time: a commit may claim any number."""
    number = int(seconds) if _SECONDS.fullmatch(seconds) else 0
    return datetime.fromtimestamp(min(max(number, 0), _LAST_SECOND), UTC)


def _without_addresses(text: str, limit: int) -> str:
    """At most `limit` characters of a text of any length. Keys are masked first: a password may look like the name in
    an address."""
    looked_at = text[: limit + _BEYOND]
    if len(text) > len(looked_at):
        looked_at = (looked_at.rsplit(None, 1) or [""])[0]  # a key that is cut off does not look like one
    masked = mask_message(clean(looked_at))
    return (_ADDRESS.sub("", masked) if "@" in masked else masked)[:limit]


def _text(piece: bytes) -> str:
    return piece.decode(errors="replace")


# -- versions and their tags -----------------------------------------------------------------------------------------

MOST_TAGS = 5_000
_MAX_TAG = 200
_MAX_VERSION = 60
_TAG = lazy_pattern(r"(?P<prefix>(?:[^\n]*[^\d.\n])??)(?P<version>\d+(?:\.\d+)+[\w.+-]{0,40})")


def version_key(text: str) -> Version | None:
    """A version for comparison: by numbers, pre-releases before their release. None for anything else, such as a
    branch. `3.8` and `3.8.0` are equal."""
    from packaging.version import InvalidVersion, Version  # takes longer to load than a question without versions

    try:
        return Version(text) if len(text) <= _MAX_VERSION else None
    except InvalidVersion:
        return None


class VersionTag(NamedTuple):
    """The tag of a version: its name, the part before the version, the version, and the commit."""

    name: str
    prefix: str
    key: Version
    sha: str


class Tagged(NamedTuple):
    """The commits up to a tag, newest first, and the number of all. `tag` is empty for the commit that is checked
    out."""

    tag: str
    commits: Sequence[GitCommit]
    total: int


def read_between(root: Path, tags: Sequence[VersionTag], older: str, newer: str, limit: int) -> Tagged | None:
    """The commits after one version up to another. Without an older one, those since the version before the newer one;
    without a newer one, up to the commit that is checked out. None without these tags, or when git fails."""
    try:
        last = _find(tags, newer) if newer else _head(root)
        first = _find(tags, older) if older else None
        if last is None or (older and first is None):
            return None
        return _read_range(root, first or _before(tags, last), last, limit)
    except SourceError:
        return None


def find_first_tag(root: Path, sha: str) -> str:
    """The tag of the first version that has a commit; empty without one. Releases come before pre-releases."""
    tags = read_tags(root, f"--contains={sha}")
    first = min(tags, key=lambda tag: (tag.key.is_prerelease, tag.key, len(tag.name)), default=None)
    return first.name if first is not None else ""


def _read_range(root: Path, first: VersionTag | None, last: VersionTag, limit: int) -> Tagged:
    revisions = [last.sha, *([f"^{first.sha}"] if first else [])]
    counted = run_git(root, ["rev-list", "--count", "--end-of-options", *revisions, "--"])
    commits = list(read_commits(root, revisions, limit=limit))
    total = int(counted) if counted.strip().isdigit() else len(commits)
    return Tagged(last.name, commits, total)


def read_tags(root: Path, *chosen: str) -> list[VersionTag]:
    """The tags that name a version; none when git fails."""
    form = "--format=%(refname:strip=2)%00%(objectname)%00%(*objectname)"
    try:
        printed = run_git(
            root, ["for-each-ref", f"--count={MOST_TAGS}", "--sort=-creatordate", form, *chosen, "refs/tags/"]
        )
    except SourceError:
        return []
    return [tag for line in printed.split(b"\n") if (tag := _read_tag(line)) is not None]


def _read_tag(line: bytes) -> VersionTag | None:
    name, _, shas = line.decode(errors="replace").partition("\0")
    own, _, peeled = shas.partition("\0")
    found = _TAG.fullmatch(name) if len(name) <= _MAX_TAG else None
    key = version_key(found["version"]) if found else None
    return VersionTag(name, found["prefix"], key, read_sha((peeled or own).encode())) if found and key else None


def _head(root: Path) -> VersionTag | None:
    sha, lowest = find_head(root), version_key("0")
    return VersionTag("", "", lowest, sha) if sha and lowest else None


def _find(tags: Sequence[VersionTag], version: str) -> VersionTag | None:
    """The tag of a version. If there are several, the tag with the shortest name."""
    wanted = version_key(version)
    same = (tag for tag in tags if wanted is not None and tag.key == wanted)
    return min(same, key=lambda tag: (len(tag.name), tag.name), default=None)


def _before(tags: Sequence[VersionTag], tag: VersionTag) -> VersionTag | None:
    """The tag of the previous version of the same part of the repository. Before a release, pre-releases are
    skipped."""
    others = [each for each in tags if each.prefix == tag.prefix and each.key < tag.key]
    fitting = (each for each in others if tag.key.is_prerelease or not each.key.is_prerelease)
    return max(fitting, key=lambda each: each.key, default=None)
