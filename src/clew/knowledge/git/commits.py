"""The commits of a folder for answers: kept in step with the repository, queried off the event loop."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from clew.errors import NotFound, SourceError
from clew.files import read_file
from clew.knowledge.git.log import COMMIT_PREFIX, Commit, read_line_commits, read_text_commits
from clew.knowledge.git.run import read_folder, run_git
from clew.knowledge.git.store import Activity, CommitFilter, Database, GitLog, LogRefresh
from clew.knowledge.git.tags import Tagged, read_between, read_first_with, read_tagged
from clew.trail.kinds import NodeDomain, NodeType, Trust, Verification
from clew.trail.nodes import Node, ScoredNode

MAX_CONTENT = 2_000
QUICK = 2_000
"""The longest log that is read for the first time while somebody waits for an answer."""
_OF_FOLDER = ("HEAD", "logs/HEAD", "reftable/tables.list")
_OF_ALL = ("packed-refs", "reftable/tables.list")
_REF = re.compile(rb"ref:\s*(refs/[^\0\n]{1,1000})\s*")
_Stamp = tuple[tuple[int, int, int] | None, ...]
_Found = TypeVar("_Found")


class Commits:
    """The commits of a folder. `changed` is called after commits were added or removed."""

    def __init__(self, store: Database, root: Path, changed: Callable[[], None]) -> None:
        self._store, self._root, self._changed = store, root, changed
        self._log: GitLog | None = None
        self._era = self._read_in = store.era
        self._places: tuple[Path, Path] | None = None
        self._stamp: _Stamp | None = None
        self._is_left = False
        self._turn = asyncio.Lock()

    async def read(self) -> LogRefresh:
        """Read the log up to the checked out commit. A folder without git or commit has none."""
        async with self._turn:
            self._read_in = self._store.era
            stamp, done = await asyncio.to_thread(self._read)
            self._stamp, self._is_left = stamp, False
        if done.added or done.removed:
            self._changed()
        return done

    async def catch_up(self) -> None:
        """Read commits made since the last look; cheap when there are none. A long log is not read for the first time:
        that takes longer than a question may."""
        if self._stamp is None and not self._is_left:
            self._is_left = not await asyncio.to_thread(self._is_quick)
        if not self._is_left and (self._stamp != self._look() or self._read_in != self._store.era):
            await self.read()

    @property
    def is_unread(self) -> bool:
        """Whether a long log still waits for `read`."""
        return self._is_left

    async def count(self) -> int:
        return await asyncio.to_thread(lambda: self._opened().count())

    async def search(
        self, query: str, *, limit: int = 10, since: datetime | None = None, exclude: Collection[str] = ()
    ) -> list[ScoredNode]:
        """Commits that a text is about, best first; one that it names comes first."""
        wanted = limit + len(exclude)
        found = await asyncio.to_thread(lambda: self._opened().search(query, limit=wanted, since=since))
        nodes = [ScoredNode(node=commit_node(commit), similarity=share) for commit, share in found]
        return [each for each in nodes if each.node.id not in exclude][:limit]

    async def recent(self, limit: int) -> list[ScoredNode]:
        """The newest commits, newest first."""
        found = await self._ask(lambda log: log.recent(limit=limit))
        return [ScoredNode(node=commit_node(commit), similarity=1.0) for commit in found]

    async def among(self, wanted: CommitFilter, limit: int, *, oldest_first: bool = False) -> tuple[list[Node], int]:
        """As `select`, with nodes."""
        found, total = await self.select(wanted, limit, oldest_first=oldest_first)
        return [commit_node(commit) for commit in found], total

    async def select(
        self, wanted: CommitFilter, limit: int = 10, *, oldest_first: bool = False
    ) -> tuple[list[Commit], int]:
        """The newest commits that fit, newest first, or the oldest, with their files; and the number of all that fit.
        With `paths` these are the commits that touched any of them, with `mentions` those whose message has a name."""
        return await self._ask(lambda log: log.among(wanted, limit=limit, oldest_first=oldest_first))

    async def activity(self, paths: Sequence[str]) -> Activity | None:
        """First and last commit and the authors of some paths. None when no commit touched them."""
        return await self._ask(lambda log: log.activity(paths))

    async def find(self, sha: str) -> Commit | None:
        """The only known commit whose name begins so."""
        return await self._ask(lambda log: log.find(sha))

    async def paths_of(self, name: str) -> list[str]:
        """The files that a name means; a single file with its earlier names."""
        return await self._ask(lambda log: log.paths_of(name))

    async def authors_of(self, name: str) -> list[str]:
        """The authors that a name means."""
        return await self._ask(lambda log: log.authors_of(name))

    async def of_version(self, version: str, limit: int) -> Tagged | None:
        """The commits of a version, by its tag. None without such a tag."""
        return await asyncio.to_thread(read_tagged, self._root, version, limit)

    async def between(self, older: str, newer: str = "", *, limit: int = 10) -> Tagged | None:
        """The commits after one version up to another, or up to the checked out commit, by their tags. None without
        such tags."""
        return await asyncio.to_thread(read_between, self._root, older, newer, limit)

    async def first_version_with(self, sha: str) -> str:
        """The tag of the lowest version that has a commit; empty when none has."""
        return await asyncio.to_thread(read_first_with, self._root, sha)

    async def changing_lines(self, path: str, first: int, last: int, limit: int = 10) -> list[Commit]:
        """The newest commits that changed lines of a committed file, newest first; none when git takes too long."""
        return await _or_none(lambda: read_line_commits(self._root, path, first, last, limit=limit, timeout=5.0))

    async def changing_text(self, text: str, limit: int = 10, *, path: str = "") -> list[Commit]:
        """The newest commits that added or removed an exact text, as many as git finds within two seconds."""
        return await _or_none(lambda: read_text_commits(self._root, text, path=path, limit=limit))

    def get(self, id: str) -> Node:
        """Raises NotFound."""
        found = self._opened().find(id.removeprefix(COMMIT_PREFIX))
        if found is None:
            raise NotFound("commit", id)
        return commit_node(found)

    def contains(self, text: str) -> bool:
        """Whether any message has a word of a text; True before the first `catch_up`."""
        return self._log is None or self._era != self._store.era or self._log.has_words(text)

    async def _ask(self, query: Callable[[GitLog], _Found]) -> _Found:
        await self.catch_up()
        return await asyncio.to_thread(lambda: query(self._opened()))

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
        """The state of git's files that change with every commit and checkout: HEAD, its branch, which has a file of
        its own or is packed, and the reflog, which not every repository has."""
        if self._places is None:
            try:
                own = read_folder(self._root, "--absolute-git-dir")
                self._places = own, read_folder(self._root, "--git-path", "objects").parent
            except SourceError:
                return ()
        own, shared = self._places
        watched = [*(own / name for name in _OF_FOLDER), *(shared / name for name in _OF_ALL)]
        return tuple(map(_stat, [*watched, *(shared / name for name in _branch(own / "HEAD"))]))


def commit_node(commit: Commit) -> Node:
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
        trust=Trust.RECENT,
        created_at=commit.at,
    )


async def _or_none(read: Callable[[], list[Commit]]) -> list[Commit]:
    try:
        return await asyncio.to_thread(read)
    except SourceError:
        return []


def _branch(head: Path) -> list[str]:
    """The file of the branch that is checked out; none for a detached HEAD."""
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
