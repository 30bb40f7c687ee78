"""Versions and their tags: the order of versions, and the commits between two of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from packaging.version import InvalidVersion, Version

from clew.errors import SourceError
from clew.knowledge.git.log import GitCommit, read_commits
from clew.knowledge.git.run import find_head, read_sha, run_git

MOST_TAGS = 5_000
_MAX_NAME = 200
_MAX_VERSION = 60
_TAG = re.compile(r"(?P<prefix>(?:[^\n]*[^\d.\n])??)(?P<version>\d+(?:\.\d+)+[\w.+-]{0,40})")


def version_key(text: str) -> Version | None:
    """A version for comparison: by numbers, pre-releases before their release. None for anything else, such as a
    branch. `3.8` and `3.8.0` are equal."""
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
    found = _TAG.fullmatch(name) if len(name) <= _MAX_NAME else None
    key = version_key(found["version"]) if found else None
    return VersionTag(name, found["prefix"], key, read_sha((peeled or own).encode())) if found and key else None


def _head(root: Path) -> VersionTag | None:
    sha = find_head(root)
    return VersionTag("", "", Version("0"), sha) if sha else None


def _find(tags: Sequence[VersionTag], version: str) -> VersionTag | None:
    """The tag of a version; of several, the one with the shortest name."""
    wanted = version_key(version)
    same = (tag for tag in tags if wanted is not None and tag.key == wanted)
    return min(same, key=lambda tag: (len(tag.name), tag.name), default=None)


def _before(tags: Sequence[VersionTag], tag: VersionTag) -> VersionTag | None:
    """The tag of the version before, of the same part of the repository; before a release, that of a release."""
    others = [each for each in tags if each.prefix == tag.prefix and each.key < tag.key]
    fitting = (each for each in others if tag.key.is_prerelease or not each.key.is_prerelease)
    return max(fitting, key=lambda each: each.key, default=None)
