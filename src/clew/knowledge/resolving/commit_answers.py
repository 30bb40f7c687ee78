"""What is told of commits: one of them with its files, those of an author, and the newest before a time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

import msgspec

from clew.catalog.text import inline
from clew.knowledge.evidence.naming import on_one_line
from clew.knowledge.git.commits import Commits, commit_node
from clew.knowledge.git.log import Commit, Touched
from clew.knowledge.git.store import CommitFilter
from clew.knowledge.history.changelog import happened_at
from clew.knowledge.resolving.about_commits import AuthorAsked
from clew.knowledge.resolving.about_versions import VersionAsked
from clew.knowledge.resolving.periods import Period
from clew.knowledge.resolving.subjects import subject_words
from clew.knowledge.resolving.told import Told, more_lines
from clew.secrecy import mask_keys
from clew.trail.nodes import Node

SHOWN = 8
SHOWN_FILES = 12
MESSAGE = 300
UNREAD = "the commits are not read yet: `clew index` does that"

_ASKING_WORDS = (
    "what which who when show list commit commits committed change changed changes happen happened done did decide"
    " decided decision decisions touch touched modify modified update updated new work worked working activity history"
    " log git here everything anything all any made make merged merge release released project repository repo codebase"
    " code noted entries went going last recent recently"
)
ASKED = frozenset(_ASKING_WORDS.split())
"""Words by which changes are asked for, and which do not say of what."""
_OF_A_PATH = re.compile(r"[./]|^[A-Z]")


async def tell_commit(commits: Commits, sha: str, *, is_sure: bool) -> Told | None:
    """A commit: what its message says, and the files that it touched. That there is none is said of what can be nothing
    else."""
    found = await commits.find(sha)
    if found is None:
        head = f"No commit that is known here begins with {sha}{unread(commits)}."
        return Told(nodes=[], head=head) if is_sure else None
    files = list(map(_file_line, found.files))
    said = [inline(mask_keys(found.body), MESSAGE)] if found.body else []
    shown = [*files[:SHOWN_FILES], *more_lines(len(files) - SHOWN_FILES)]
    return Told(nodes=[commit_node(found)], after=[*said, _count(found), *shown], total=1)


async def tell_author(asked: AuthorAsked, bounds: CommitFilter, commits: Commits) -> Told | None:
    """The commits of an author; None where nobody of that name is one."""
    authors = await commits.authors_of(asked.who)
    if not authors:
        return None
    paths = await paths_of(commits, asked.topic) if asked.topic else []
    words = () if paths else tuple(subject_words(asked.topic, ASKED))
    wanted = msgspec.structs.replace(bounds, authors=tuple(authors), paths=tuple(paths), words=words)
    nodes, total = await commits.among(wanted, SHOWN)
    return Told(nodes=nodes, total=total) if nodes else await tell_newest_before(wanted, commits)


async def tell_count(whose: str, period: Period | None, bounds: CommitFilter, commits: Commits) -> Told | None:
    """How many commits there are, of an author and in a time where these are given, and the newest; None where nobody
    of that name is an author."""
    authors = await commits.authors_of(whose) if whose else []
    if whose and not authors:
        return None
    nodes, total = await commits.among(msgspec.structs.replace(bounds, authors=tuple(authors)), 1)
    number = f"{total:,} commit{'' if total == 1 else 's'}"
    when = f" {period.label}" if period is not None else ""
    by = f" by {inline(', '.join(authors))}" if authors else ""
    return Told(nodes=nodes, head=f"{number}{by}{when}{unread(commits)}{'; the newest:' if nodes else '.'}", total=1)


async def tell_tagged(asked: VersionAsked, commits: Commits) -> Told | None:
    """The commits of a version of which only a tag tells, or that nothing knows it; None for what may be the version of
    something else."""
    found = await commits.of_version(asked.version, SHOWN) if not asked.of else None
    if found is not None:
        since = f" since the tag {inline(found.before)}" if found.before else ""
        number = f"{found.total:,} commit{'' if found.total == 1 else 's'}"
        head = f"No changelog tells of {asked.version}; {number} of the tag {inline(found.tag)}{since}:"
        return Told(nodes=list(map(commit_node, found.commits)), head=head, total=found.total)
    if not asked.is_sure:
        return None
    return Told(nodes=[], head=f"No changelog and no tag that is known here has {asked.version}.")


async def tell_newest_before(
    wanted: CommitFilter, commits: Commits, noted: Sequence[Node] = (), *, are_commits: bool = True
) -> Told | None:
    """That there is none in a time, and the newest of the same before it. None without a time, and where there is
    nothing at all on a topic: that may be known by another way."""
    if wanted.since is None:
        return None
    earlier = msgspec.structs.replace(wanted, since=None, until=wanted.since)
    done, _ = await commits.among(earlier, 1) if are_commits else ([], 0)
    newest = max((*done, *noted), key=moment_of, default=None)
    none = f"None in that time{unread(commits) if are_commits else ''}"
    if newest is None:
        return Told(nodes=[], head=f"{none}.") if not wanted.words else None
    return Told(nodes=[newest], head=f"{none}; the newest before is:", total=1)


async def paths_of(commits: Commits, thing: str) -> list[str]:
    """The files that a text names; what has spaces names none."""
    return await commits.paths_of(thing) if " " not in thing and _OF_A_PATH.search(thing) else []


def unread(commits: Commits) -> str:
    """Where the commits are not known, that; else nothing."""
    return f" ({UNREAD})" if commits.is_unread else ""


def moment_of(node: Node) -> datetime:
    return happened_at(node) or node.at


def _file_line(file: Touched) -> str:
    before = f" (was {on_one_line(file.old_path)})" if file.old_path else ""
    return f"{file.kind} {on_one_line(file.path)}{before}"


def _count(commit: Commit) -> str:
    if commit.files:
        return f"It touched {len(commit.files):,} file{'' if len(commit.files) == 1 else 's'}:"
    return "It is a merge, and touched no file of itself." if len(commit.parents) > 1 else "It touched no file."
