"""The commits of a folder for answers: kept in step with the repository, queried off the event loop."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Collection
from datetime import datetime
from pathlib import Path
from typing import TypeVar, cast

from clew.errors import SourceError
from clew.files import read_file
from clew.knowledge.git.log import (
    COMMIT_PREFIX,
    GitCommit,
    Tagged,
    find_first_tag,
    read_between,
    read_line_commits,
    read_tags,
    read_text_commits,
)
from clew.knowledge.git.run import find_objects, run_git
from clew.knowledge.git.store import CommitFilter, Database, GitLog, LogRefresh
from clew.knowledge.nodes.kinds import NodeDomain, NodeType, TrustLevel, Verification
from clew.knowledge.nodes.node_store import Node, ScoredNode
from clew.lazy_pattern import lazy_pattern

MAX_CONTENT = 2_000
QUICK = 2_000
"""The longest log that a question reads for the first time."""
CERTAIN_SECONDS, MAX_CACHED = 0.5, 200
_OF_FOLDER = ("HEAD", "logs/HEAD", "reftable/tables.list")
_OF_ALL = ("packed-refs", "refs/tags", "reftable/tables.list")
_REF = lazy_pattern(rb"ref:\s*(refs/[^\0\n]{1,1000})\s*")
_Stamp = tuple[int, tuple[tuple[int, int, int] | None, ...]]
"""The era of the database and the state of git's files, to detect changes."""
_Found = TypeVar("_Found")


class Commits:
    """The commits of a folder. `changed` is called after commits were added or removed. A folder without git has
    none."""

    def __init__(self, store: Database, root: Path, changed: Callable[[], None]) -> None:
        self._store, self._root, self._changed = store, root, changed
        self._log = GitLog(store, root)
        self._places: tuple[str, str] | None = None
        """The git folder of this work tree, and the one that all its work trees share."""
        self._stamp: _Stamp | None = None
        self.is_unread = False
        """Whether a long log still waits for `read`."""
        self._turn = asyncio.Lock()
        self._cache: tuple[_Stamp | None, dict[tuple[object, ...], object]] = (None, {})

    async def read(self) -> LogRefresh:
        """Read the log up to the checked out commit."""
        async with self._turn:
            self._stamp, done = await asyncio.to_thread(self._read)
            self.is_unread = False
        if done.added or done.removed:
            self._changed()
        return done

    async def catch_up(self) -> None:
        """Read the commits since the last call, which is cheap if there are none. A long log that was never read is
        left to `read`, because that takes longer than a question may."""
        if self._stamp is None and not self.is_unread:
            self.is_unread = not await asyncio.to_thread(self._is_quick)
        if not self.is_unread and (self._stamp is None or self._stamp != self._look()):
            await self.read()

    async def count(self) -> int:
        return await asyncio.to_thread(self._log.count)

    async def search(
        self, query: str, *, limit: int = 10, since: datetime | None = None, exclude: Collection[str] = ()
    ) -> list[ScoredNode]:
        """Commits on the topic of a text, best first; a commit that the text names comes first."""
        wanted = limit + len(exclude)
        found = await self._ask(lambda: self._log.search(query, limit=wanted, since=since))
        nodes = [ScoredNode(node=commit_node(commit), similarity=share) for commit, share in found]
        return [each for each in nodes if each.node.id not in exclude][:limit]

    async def select(
        self, wanted: CommitFilter, limit: int = 10, *, oldest_first: bool = False
    ) -> tuple[list[GitCommit], int]:
        """As `GitLog.select`."""
        return await self._ask(lambda: self._log.select(wanted, limit=limit, oldest_first=oldest_first))

    async def find(self, sha: str) -> GitCommit | None:
        """The commit whose id begins with `sha`; None if no commit or more than one is known."""
        return await self._ask(lambda: self._log.find(sha))

    async def paths_of(self, name: str) -> list[str]:
        """The files that a name means. A single file comes with its earlier names."""
        return await self._ask(lambda: self._log.paths_of(name))

    async def authors_of(self, name: str) -> list[str]:
        """The authors that a name means."""
        return await self._ask(lambda: self._log.authors_of(name))

    async def between(self, older: str, newer: str = "", *, limit: int = 10) -> Tagged | None:
        """The commits after one version up to another, as `read_between`. None without such tags."""
        tags = await self._cached(("tags",), lambda: read_tags(self._root))
        if not tags:
            return None
        return await self._cached(
            ("between", older, newer, limit), lambda: read_between(self._root, tags, older, newer, limit)
        )

    async def first_tag(self, sha: str) -> str:
        """The tag of the first version that has a commit; empty without one."""
        return await self._cached(("tag", sha), lambda: find_first_tag(self._root, sha))

    async def changing_lines(self, path: str, first: int, last: int, limit: int = 10) -> list[GitCommit]:
        """The newest commits that changed lines of a committed file, newest first; none when git takes too long."""

        def read() -> list[GitCommit]:
            return read_line_commits(self._root, path, first, last, limit=limit, timeout=5.0)

        return await self._cached(("lines", path, first, last, limit), lambda: _or_none(read))

    async def changing_text(self, text: str, limit: int = 10, *, path: str = "") -> list[GitCommit]:
        """The newest commits that added or removed an exact text, as many as git finds within two seconds."""

        def read() -> list[GitCommit]:
            return read_text_commits(self._root, text, path=path, limit=limit)

        return await self._cached(("text", text, path, limit), lambda: _or_none(read))

    def contains(self, text: str) -> bool:
        """Whether any message has a word of a text; True before the first `catch_up`."""
        is_read = self._stamp is not None and self._stamp[0] == self._store.era
        return not is_read or self._log.has_words(text)

    async def _cached(self, key: tuple[object, ...], read: Callable[[], _Found]) -> _Found:
        """The output of git, from the cache while no commit, branch or tag changed. Output that took long may be cut
        off by a time limit and is not cached."""
        stamp = self._look()
        if self._cache[0] != stamp or len(self._cache[1]) >= MAX_CACHED:
            self._cache = stamp, {}
        cached = self._cache[1]
        if key not in cached:
            began = time.monotonic()
            found = await asyncio.to_thread(read)
            if time.monotonic() - began > CERTAIN_SECONDS:
                return found
            cached[key] = found
        return cast("_Found", cached[key])

    async def _ask(self, query: Callable[[], _Found]) -> _Found:
        await self.catch_up()
        return await asyncio.to_thread(query)

    def _is_quick(self) -> bool:
        """Whether the log was read before, or is short."""
        if self._log.head is not None:
            return True
        try:
            counted = run_git(self._root, ["rev-list", "--count", f"--max-count={QUICK + 1}", "HEAD", "--"])
        except SourceError:  # there is no log to be read
            return True
        return counted.strip().isdigit() and int(counted) <= QUICK

    def _read(self) -> tuple[_Stamp, LogRefresh]:
        stamp = self._look()
        try:
            return stamp, self._log.refresh()
        except SourceError:
            return stamp, LogRefresh(head=None)

    def _look(self) -> _Stamp:
        """The state of git's files that change with every commit and checkout: HEAD, its branch (in its own file or
        packed), and the reflog if there is one."""
        if self._places is None:
            try:
                found = find_objects(self._root)
                self._places = str(found.own), str(found.common)
            except SourceError:
                return self._store.era, ()
        own, shared = self._places
        of_folder = [f"{own}/{name}" for name in _OF_FOLDER]
        watched = [*of_folder, *(f"{shared}/{name}" for name in (*_OF_ALL, *_branch(own)))]
        return self._store.era, tuple(map(_stat, watched))


def commit_node(commit: GitCommit) -> Node:
    """A commit as a node of history; its content is the message."""
    return Node(
        id=f"{COMMIT_PREFIX}{commit.sha}",
        name=commit.subject,
        domain=NodeDomain.HISTORY,
        node_type=NodeType.HISTORY_ENTRY,
        content=f"{commit.subject}\n\n{commit.body}".strip()[:MAX_CONTENT],
        timestamp=commit.at,
        source="git",
        authors=(commit.author,) if commit.author else (),
        verified=True,
        verification=Verification.CODE,
        trust=TrustLevel.RECENT,
        created_at=commit.at,
    )


def _or_none(read: Callable[[], list[GitCommit]]) -> list[GitCommit]:
    try:
        return read()
    except SourceError:
        return []


def _branch(folder: str) -> list[str]:
    """The file of the branch that is checked out; none for a detached HEAD."""
    head = f"{folder}/HEAD"
    stamp = _stat(head)
    try:
        found = _REF.fullmatch(read_file(Path(head))) if stamp and stamp[1] <= MAX_CONTENT else None
    except OSError:
        return []
    name = found[1].decode(errors="surrogateescape").strip() if found else ""
    return [name] if name and ".." not in name.split("/") else []


def _stat(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
