"""Versions and their tags: which of two versions is later, the commits of a version or between two, and the first
version that has a commit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from clew.errors import SourceError
from clew.knowledge.git.log import Commit, read_commits
from clew.knowledge.git.run import find_head, read_sha, run_git

MOST_TAGS = 5_000
VersionKey = tuple[tuple[int, ...], int, int]

_MAX_NAME = 200
_TAG = re.compile(r"(?P<prefix>(?:[^\n]*[^\d.\n])??)(?P<version>\d+(?:\.\d+)+[\w.+-]{0,40})")
_VERSION = re.compile(
    r"v?(?P<release>\d{1,9}(?:\.\d{1,9}){0,7})"
    r"(?:[-._]?(?P<tag>dev|a|alpha|b|beta|c|rc|pre|preview|post|rev|r)[-._]?(?P<number>\d{0,9})|-(?P<bare>\d{1,9}))?",
    re.IGNORECASE,
)
_RANKS = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "c": -1, "rc": -1, "pre": -1, "preview": -1}
_FINAL, _AFTER = 0, 1


def version_key(text: str) -> VersionKey | None:
    """A version for comparison: by numbers, pre-releases before their release. None for anything else, such as a
    branch. `3.8` and `3.8.0` are equal."""
    found = _VERSION.fullmatch(text.strip())
    if found is None:
        return None
    release = [int(part) for part in found["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    if found["bare"]:
        return tuple(release), _RANKS["pre"], int(found["bare"])
    if not found["tag"]:
        return tuple(release), _FINAL, 0
    return tuple(release), _RANKS.get(found["tag"].lower(), _AFTER), int(found["number"] or 0)


class Tag(NamedTuple):
    """The tag of a version: its name, the part before the version, the version, and the commit."""

    name: str
    prefix: str
    key: VersionKey
    sha: str


class Tagged(NamedTuple):
    """The commits up to a tag, newest first, and the number of all. `before` is the tag that they come after; empty
    for the first. `tag` is empty for the commit that is checked out."""

    tag: str
    before: str
    commits: Sequence[Commit]
    total: int


def read_tagged(root: Path, version: str, limit: int) -> Tagged | None:
    """The commits of a version since the one before it. None without its tag, or when git fails."""
    try:
        tags = _read_tags(root)
        found = _find(tags, version)
        return _read_range(root, _before(tags, found), found, limit) if found is not None else None
    except SourceError:
        return None


def read_between(root: Path, older: str, newer: str, limit: int) -> Tagged | None:
    """The commits after one version up to another; without a newer version, up to the commit that is checked out. None
    without these tags, or when git fails."""
    try:
        tags = _read_tags(root)
        first, last = _find(tags, older), _find(tags, newer) if newer else _head(root)
        return _read_range(root, first, last, limit) if first is not None and last is not None else None
    except SourceError:
        return None


def read_first_with(root: Path, sha: str) -> str:
    """The tag of the lowest version that has a commit: a release before a pre-release, and of several parts of a
    repository the one with the shortest name. Empty without any, or when git fails."""
    try:
        tags = _read_tags(root, f"--contains={read_sha(sha.encode())}")
    except SourceError:
        return ""
    shortest = min((len(tag.prefix) for tag in tags), default=0)
    own = [tag for tag in tags if len(tag.prefix) == shortest]
    found = min(own, key=lambda tag: (tag.key[1] < 0, tag.key), default=None)
    return found.name if found is not None else ""


def _read_range(root: Path, first: Tag | None, last: Tag, limit: int) -> Tagged:
    revisions = [last.sha, *([f"^{first.sha}"] if first else [])]
    counted = run_git(root, ["rev-list", "--count", "--end-of-options", *revisions, "--"])
    commits = list(read_commits(root, revisions, limit=limit))
    total = int(counted) if counted.strip().isdigit() else len(commits)
    return Tagged(last.name, first.name if first else "", commits, total)


def _read_tags(root: Path, *which: str) -> list[Tag]:
    """The tags that name a version. Raises SourceError."""
    form = "--format=%(refname:strip=2)%00%(objectname)%00%(*objectname)"
    printed = run_git(root, ["for-each-ref", f"--count={MOST_TAGS}", "--sort=-creatordate", form, *which, "refs/tags/"])
    return [tag for line in printed.split(b"\n") if (tag := _read_tag(line)) is not None]


def _read_tag(line: bytes) -> Tag | None:
    name, _, shas = line.decode(errors="replace").partition("\0")
    own, _, peeled = shas.partition("\0")
    found = _TAG.fullmatch(name) if len(name) <= _MAX_NAME else None
    key = version_key(found["version"]) if found else None
    return Tag(name, found["prefix"], key, read_sha((peeled or own).encode())) if found and key else None


def _head(root: Path) -> Tag | None:
    sha = find_head(root)
    return Tag("", "", ((), 0, 0), sha) if sha else None


def _find(tags: Sequence[Tag], version: str) -> Tag | None:
    """The tag of a version; of several, the one with the shortest name."""
    wanted = version_key(version)
    same = (tag for tag in tags if wanted is not None and tag.key == wanted)
    return min(same, key=lambda tag: (len(tag.name), tag.name), default=None)


def _before(tags: Sequence[Tag], tag: Tag) -> Tag | None:
    """The tag of the version before, of the same part of the repository; before a release, that of a release."""
    is_release = tag.key[1] >= 0
    others = [each for each in tags if each.prefix == tag.prefix and each.key < tag.key]
    return max((each for each in others if not is_release or each.key[1] >= 0), key=lambda each: each.key, default=None)
