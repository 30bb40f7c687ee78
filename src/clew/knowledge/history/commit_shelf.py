"""Commits on the shelf of history: found for questions about what was done, and cited by name, day and subject."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection
from datetime import datetime
from pathlib import Path

from clew.access import Principal
from clew.errors import NotFound, SourceError
from clew.files import read_file
from clew.knowledge.code.store import CodeStore
from clew.knowledge.evidence.citations import COMMIT_PREFIX
from clew.knowledge.git import read_folder, run_git
from clew.knowledge.history.commit_queries import CommitFilter
from clew.knowledge.history.commit_words import asks_of_past
from clew.knowledge.history.commits import Commit
from clew.knowledge.history.git_log import GitLog, LogRefresh
from clew.knowledge.history.tags import Tagged, read_first_with, read_tagged
from clew.knowledge.shelves import NodeShelf
from clew.trail.kinds import NodeDomain, NodeType, Trust, Verification
from clew.trail.nodes import EVERY_NODE, Node, NodeFilter, ScoredNode

MAX_CONTENT = 2_000
QUICK = 2_000
"""So many commits are read for the first time while somebody waits for an answer."""
_OF_FOLDER = ("HEAD", "logs/HEAD", "reftable/tables.list")
_OF_ALL = ("packed-refs", "reftable/tables.list")
_REF = re.compile(rb"ref:\s*(refs/[^\0\n]{1,1000})\s*")
_Stamp = tuple[tuple[int, int, int] | None, ...]


class Commits:
    """The commits of a folder as nodes. `changed` is called after new ones were read, or some are gone."""

    def __init__(self, store: CodeStore, root: Path, changed: Callable[[], None]) -> None:
        self._store, self._root, self._changed = store, root, changed
        self._log: GitLog | None = None
        self._era = self._read_in = store.era
        self._places: tuple[Path, Path] | None = None
        self._stamp: _Stamp | None = None
        self._is_left = False
        self._turn = asyncio.Lock()

    async def read(self) -> LogRefresh:
        """Read the log up to what is checked out. A folder without git, or without a commit, has none."""
        async with self._turn:
            self._read_in = self._store.era
            stamp, done = await asyncio.to_thread(self._read)
            self._stamp, self._is_left = stamp, False
        if done.added or done.removed:
            self._changed()
        return done

    async def catch_up(self) -> None:
        """Read what was committed since the last look; cheap where nothing was. A long history is not read for the
        first time: that takes longer than a question may."""
        if self._stamp is None and not self._is_left:
            self._is_left = not await asyncio.to_thread(self._is_quick)
        if not self._is_left and (self._stamp != self._look() or self._read_in != self._store.era):
            await self.read()

    @property
    def is_unread(self) -> bool:
        """Whether a long log was left for whoever reads everything."""
        return self._is_left

    async def count(self) -> int:
        """How many are known."""
        return await asyncio.to_thread(lambda: self._opened().count())

    async def search(
        self, query: str, *, limit: int = 10, since: datetime | None = None, exclude: Collection[str] = ()
    ) -> list[ScoredNode]:
        """Commits that a text is about, best first; one that it names before all others."""
        wanted = limit + len(exclude)
        found = await asyncio.to_thread(lambda: self._opened().search(query, limit=wanted, since=since))
        nodes = [ScoredNode(node=commit_node(commit), similarity=share) for commit, share in found]
        return [each for each in nodes if each.node.id not in exclude][:limit]

    async def recent(self, limit: int) -> list[ScoredNode]:
        """The newest, newest first."""
        await self.catch_up()
        found = await asyncio.to_thread(lambda: self._opened().recent(limit=limit))
        return [ScoredNode(node=commit_node(commit), similarity=1.0) for commit in found]

    async def among(self, wanted: CommitFilter, limit: int, *, oldest_first: bool = False) -> tuple[list[Node], int]:
        """The newest of the commits that are meant, newest first, or the oldest, and how many there are in all."""
        await self.catch_up()
        found, total = await asyncio.to_thread(
            lambda: self._opened().among(wanted, limit=limit, oldest_first=oldest_first)
        )
        return [commit_node(commit) for commit in found], total

    async def find(self, sha: str) -> Commit | None:
        """A commit by its name or the beginning of it, if that is known and means only one."""
        await self.catch_up()
        return await asyncio.to_thread(lambda: self._opened().find(sha))

    async def of_version(self, version: str, limit: int) -> Tagged | None:
        """What a version is made of, by the tags; None where none has it."""
        return await asyncio.to_thread(read_tagged, self._root, version, limit)

    async def first_version_with(self, sha: str) -> str:
        """The tag of the lowest version that has a commit; nothing where none has."""
        return await asyncio.to_thread(read_first_with, self._root, sha)

    async def paths_of(self, name: str) -> list[str]:
        """The files that a name means, each under all names that it had."""
        await self.catch_up()
        return await asyncio.to_thread(lambda: self._opened().paths_of(name))

    async def authors_of(self, name: str) -> list[str]:
        """The authors that a name means."""
        await self.catch_up()
        return await asyncio.to_thread(lambda: self._opened().authors_of(name))

    def get(self, id: str) -> Node:
        """Raises NotFound."""
        found = self._opened().find(id.removeprefix(COMMIT_PREFIX))
        if found is None:
            raise NotFound("commit", id)
        return commit_node(found)

    def contains(self, text: str) -> bool:
        """Whether any commit has a word of a text; true as well before the first `catch_up`."""
        return self._log is None or self._era != self._store.era or self._log.has_words(text)

    def _is_quick(self) -> bool:
        """Whether the log was read before, or is short."""
        if self._opened().head is not None:
            return True
        try:
            counted = run_git(self._root, ["rev-list", "--count", f"--max-count={QUICK + 1}", "HEAD", "--"])
        except SourceError:
            return False
        return counted.strip().isdigit() and int(counted) <= QUICK

    def _opened(self) -> GitLog:
        if self._log is None or self._era != self._store.era:
            self._era = self._store.era
            self._log = GitLog(self._store, self._root)
        return self._log

    def _read(self) -> tuple[_Stamp, LogRefresh]:
        stamp = self._look()
        try:
            return stamp, self._opened().refresh()
        except SourceError:
            return stamp, LogRefresh(head=None)

    def _look(self) -> _Stamp:
        """What changes in the files of git with every commit and every checkout: HEAD, the branch that it names, which
        stands in a file of its own or among the packed ones, and the log of both, which not every repository has."""
        if self._places is None:
            try:
                own = read_folder(self._root, "--absolute-git-dir")
                self._places = own, read_folder(self._root, "--git-path", "objects").parent
            except SourceError:
                return ()
        own, shared = self._places
        watched = [*(own / name for name in _OF_FOLDER), *(shared / name for name in _OF_ALL)]
        return tuple(map(_stat, [*watched, *(shared / name for name in _branch(own / "HEAD"))]))


class HistoryShelf:
    """What was noted, and what was committed. Commits are found for questions about the past."""

    def __init__(self, nodes: NodeShelf, commits: Commits) -> None:
        self._nodes, self._commits = nodes, commits

    @property
    def commits(self) -> Commits:
        """What was committed, by itself."""
        return self._commits

    @property
    def domain(self) -> NodeDomain:
        return self._nodes.domain

    async def search(
        self,
        query: str,
        *,
        by: Principal,
        limit: int = 10,
        filter: NodeFilter = EVERY_NODE,
        exclude: Collection[str] = (),
    ) -> list[ScoredNode]:
        """Both, best first. Commits belong to no session and have no metadata, so filters by these leave none."""
        found = await self._nodes.search(query, by=by, limit=limit, filter=filter, exclude=exclude)
        is_other = filter.session_id is not None or filter.metadata or filter.path or filter.node_types
        if is_other or not asks_of_past(query):
            return found
        await self._commits.catch_up()
        found += await self._commits.search(query, limit=limit, since=filter.created_after, exclude=exclude)
        return sorted(found, key=lambda each: -each.similarity)[:limit]

    async def get(self, id: str, *, by: Principal) -> Node:
        if id.startswith(COMMIT_PREFIX):
            return await asyncio.to_thread(self._commits.get, id)
        return await self._nodes.get(id, by=by)

    async def recent(self, limit: int) -> list[ScoredNode]:
        """What was committed last, newest first."""
        return await self._commits.recent(limit)

    async def catch_up(self) -> None:
        await self._nodes.catch_up()
        await self._commits.catch_up()

    def contains(self, text: str, *, by: Principal) -> bool:
        return self._nodes.contains(text, by=by) or self._commits.contains(text)


def commit_node(commit: Commit) -> Node:
    """A commit as a node of history. What it says is what its message says."""
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
        trust=Trust.RECENT,
        created_at=commit.at,
    )


def _branch(head: Path) -> list[str]:
    """The branch that is checked out, by the name of its file; none where it is no branch."""
    stamp = _stat(head)
    try:
        found = _REF.fullmatch(read_file(head)) if stamp and stamp[1] <= MAX_CONTENT else None
    except OSError:
        return []
    name = found[1].decode(errors="surrogateescape").strip() if found else ""
    return [name] if name and ".." not in name.split("/") else []


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
