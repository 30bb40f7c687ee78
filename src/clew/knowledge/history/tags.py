"""Which commits a version is made of, where only a tag tells of it: those from the tag of the version before it; and
which version was the first with a commit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from clew.errors import SourceError
from clew.knowledge.git import read_sha, run_git
from clew.knowledge.history.commits import Commit, read_commits
from clew.knowledge.history.versions import VersionKey, version_key

MOST_TAGS = 5_000
_MAX_NAME = 200
_OF_VERSION = re.compile(r"(?P<prefix>(?:[^\n]*[^\d.\n])??)(?P<version>\d+(?:\.\d+)+[\w.+-]{0,40})")


class Tag(NamedTuple):
    """A tag of a version: its name, what stands before the version in it, the version, and the commit."""

    name: str
    prefix: str
    key: VersionKey
    sha: str


class Tagged(NamedTuple):
    """The commits of a version: the newest of them, newest first, and how many there are. `before` is the tag that they
    come after; empty for the first."""

    tag: str
    before: str
    commits: Sequence[Commit]
    total: int


def read_tagged(root: Path, version: str, limit: int) -> Tagged | None:
    """What a version is made of; None where no tag has it, or git does not say."""
    try:
        tags = _read_tags(root)
        found = _find(tags, version)
        if found is None:
            return None
        before = _before(tags, found)
        revisions = [found.sha, *([f"^{before.sha}"] if before else [])]
        counted = run_git(root, ["rev-list", "--count", "--end-of-options", *revisions, "--"])
        commits = list(read_commits(root, revisions, limit=limit))
    except SourceError:
        return None
    total = int(counted) if counted.strip().isdigit() else len(commits)
    return Tagged(found.name, before.name if before else "", commits, total)


def read_first_with(root: Path, sha: str) -> str:
    """The tag of the lowest version that has a commit, a release before what only leads to one, of several parts of a
    repository that of the shortest name; nothing where no tag has it, or git does not say."""
    try:
        tags = _read_tags(root, f"--contains={read_sha(sha.encode())}")
    except SourceError:
        return ""
    shortest = min((len(tag.prefix) for tag in tags), default=0)
    own = [tag for tag in tags if len(tag.prefix) == shortest]
    found = min(own, key=lambda tag: (tag.key[1] < 0, tag.key), default=None)
    return found.name if found is not None else ""


def _read_tags(root: Path, *which: str) -> list[Tag]:
    """All tags that name a version, or some of them. Raises SourceError."""
    form = "--format=%(refname:strip=2)%00%(objectname)%00%(*objectname)"
    asked = ["for-each-ref", f"--count={MOST_TAGS}", "--sort=-creatordate", form, *which, "refs/tags/"]
    printed = run_git(root, asked)
    return [tag for line in printed.split(b"\n") if (tag := _read_tag(line)) is not None]


def _read_tag(line: bytes) -> Tag | None:
    name, _, shas = line.decode(errors="replace").partition("\0")
    own, _, meant = shas.partition("\0")
    found = _OF_VERSION.fullmatch(name) if len(name) <= _MAX_NAME else None
    key = version_key(found["version"]) if found else None
    return Tag(name, found["prefix"], key, read_sha((meant or own).encode())) if found and key else None


def _find(tags: Sequence[Tag], version: str) -> Tag | None:
    """The tag of a version; of several parts of a repository that have it, the one of the shortest name."""
    wanted = version_key(version)
    return min((tag for tag in tags if tag.key == wanted), key=lambda tag: (len(tag.name), tag.name), default=None)


def _before(tags: Sequence[Tag], tag: Tag) -> Tag | None:
    """The tag of the version before one, of the same part; before a release, that of a release."""
    is_release = tag.key[1] >= 0
    others = [each for each in tags if each.prefix == tag.prefix and each.key < tag.key]
    return max((each for each in others if not is_release or each.key[1] >= 0), key=lambda each: each.key, default=None)
