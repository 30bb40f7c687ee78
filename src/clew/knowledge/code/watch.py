"""Keeps the index up to date while a program runs, by notifications of the operating system.

Quick writes to one file are one change, and a write that leaves the content as it was is none. One refresh handles very
many changes at once, as after a checkout.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence

from clew.errors import ClewError
from clew.knowledge.code.files import ALWAYS_LEFT_OUT
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.index import IndexReport
from clew.knowledge.code.index_pass import Progress
from clew.tools.search.gitignore import IGNORE_FILE

DEBOUNCE_SECONDS, LONGEST_SECONDS = 0.1, 1.0
"""A file is read after this long without an event, and at the latest after the second."""
BULK = 100
"""More files than this at once are a bulk change."""
GIT_SECONDS = 30.0
"""How long a bulk change waits for git to release its index."""
FOLLOW_SECONDS = 3.0
"""How long after a change the values of Python programs are followed again."""
STEP_MS, GATHER_MS = 20, 60

OnChange = Callable[[Sequence[str], bool], Awaitable[None]]
"""Receives the paths that changed, and whether they are a bulk change."""
Events = Mapping[str, bool]
"""Paths with events, and whether each was created or deleted rather than modified."""

_log = logging.getLogger(__name__)


class CodeWatch:
    """Updates a graph after changes, and calls `on_change` after each, one call at a time. If the system has no watches
    left it logs that once, and the graph checks files by itself."""

    def __init__(self, graph: CodeGraph, on_change: OnChange, report: Progress | None = None) -> None:
        self._graph = graph
        self._on_change = on_change
        self._report = report
        self._pending = _PendingPaths()
        self._events: asyncio.Queue[Events | None] = asyncio.Queue()
        self._ignored: set[str] = set()
        """New folders that are not watched, since no file in them counts."""
        self._has_failed = False
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._following: asyncio.Task[None] | None = None
        self._is_unfollowed = False

    async def __aenter__(self) -> CodeWatch:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Start to watch. On return the graph is up to date, and no later change is missed."""
        is_ready = asyncio.Event()
        self._task = asyncio.create_task(self._run(is_ready), name="clew-code-watch")
        try:
            await is_ready.wait()
        except asyncio.CancelledError:
            self._task.cancel()
            await asyncio.wait({self._task})
            raise
        if self._task.done():
            self._task.result()

    async def close(self) -> None:
        """Stop, and wait for the task. A second call does nothing."""
        task, self._task = self._task, None
        if self._following is not None:
            self._following.cancel()
        if task is not None:
            self._stop.set()
            self._events.put_nowait(None)
            await task

    async def _run(self, is_ready: asyncio.Event) -> None:
        """Each new folder starts a new round: it is watched before its files are read."""
        try:
            while not self._stop.is_set():
                folders = await asyncio.to_thread(self._folders)
                self._ignored -= folders
                self._has_failed = False
                async with self._notified(folders):
                    await self._act(self._refresh())
                    self._graph.is_watched = not self._has_failed
                    is_ready.set()
                    await self._handle_events(folders)
                self._graph.is_watched = False
        finally:
            self._graph.is_watched = False
            is_ready.set()

    def _folders(self) -> set[str]:
        tree = self._graph.tree
        return tree.folders(tree.look())

    async def _handle_events(self, folders: set[str]) -> None:
        """Act on events until the watched folders change or the watch closes."""
        while not self._stop.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pending.seconds_left):
                    events = await self._events.get()
                    if events is None or self._change_folders(events, folders):
                        return
                    self._pending.add(events)
                    continue
            if self._pending.is_bulk:
                if await self._settle(folders):
                    return
                await self._act(self._refresh())
            elif due := self._pending.take_due():
                await self._act(self._update(due))

    def _change_folders(self, events: Events, folders: set[str]) -> bool:
        """Whether other folders have to be watched: a folder or an ignore file was created, deleted or replaced."""
        if any(path.rpartition("/")[2] == IGNORE_FILE for path in events):
            self._ignored.clear()
            return True
        root = self._graph.tree.root
        present = {path for path in events if os.path.isdir(f"{root}/{path}")}
        self._ignored -= events.keys() - present
        new = present - folders - self._ignored
        self._ignored |= new
        replaced = {path for path, is_other in events.items() if is_other or path not in present}
        return bool(new or replaced & folders)

    async def _settle(self, folders: set[str]) -> bool:
        """Wait until no more events come and git has released its index. Returns whether the folders changed or the
        watch closes."""
        lock = os.path.join(self._graph.tree.root, ".git", "index.lock")
        end = time.monotonic() + GIT_SECONDS
        has_changed = False
        while time.monotonic() < end:
            try:
                async with asyncio.timeout(DEBOUNCE_SECONDS):
                    events = await self._events.get()
            except TimeoutError:
                if not os.path.exists(lock):
                    break
                continue
            if events is None:
                return True
            has_changed |= self._change_folders(events, folders)
        return has_changed

    async def _act(self, work: Awaitable[None]) -> None:
        try:
            await work
        except ClewError as error:
            _log.warning("what changed below %s is not known yet: %s", self._graph.tree.root, error)
        except Exception as error:  # a task boundary: an error with one file does not end the watch
            _log.warning("what changed below %s is not known: %s", self._graph.tree.root, type(error).__name__)

    async def _refresh(self) -> None:
        self._pending = _PendingPaths()
        done: IndexReport = await self._graph.refresh(self._report)
        await self._notify([*done.changed, *done.gone])

    async def _update(self, paths: Sequence[str]) -> None:
        changed = await self._graph.update(paths)
        await self._notify(changed)
        self._is_unfollowed |= bool(changed)
        if self._is_unfollowed and (self._following is None or self._following.done()):
            self._following = asyncio.create_task(self._follow(), name="clew-code-follow")

    async def _follow(self) -> None:
        """Follow values again, until nothing changes meanwhile. Until then, changed files have edges by names."""
        while self._is_unfollowed:
            await asyncio.sleep(FOLLOW_SECONDS)
            self._is_unfollowed = False
            await self._act(self._graph.follow())

    async def _notify(self, changed: Sequence[str]) -> None:
        if changed:
            await self._on_change(sorted(changed), len(changed) > BULK)

    @contextlib.asynccontextmanager
    async def _notified(self, folders: Iterable[str]) -> AsyncIterator[None]:
        """Collect events of these folders for as long as the block runs."""
        stop = asyncio.Event()
        root = self._graph.tree.root
        task = asyncio.create_task(self._collect([f"{root}/{folder}" if folder else root for folder in folders], stop))
        try:
            await asyncio.sleep(0)  # the task runs up to where it waits for the operating system
            yield
        finally:
            stop.set()
            await task

    async def _collect(self, places: Sequence[str], stop: asyncio.Event) -> None:
        # only a program that watches loads this library
        from watchfiles import Change, awatch

        start = len(self._graph.tree.root) + 1
        try:
            async for changes in awatch(
                *places,
                watch_filter=lambda _, path: ALWAYS_LEFT_OUT.isdisjoint(path[start:].split("/")),
                stop_event=stop,
                debounce=GATHER_MS,
                step=STEP_MS,
                recursive=False,
                ignore_permission_denied=True,
            ):
                events: dict[str, bool] = {}
                for how, path in changes:
                    place = path[start:].replace(os.sep, "/")
                    events[place] = events.get(place, False) or how != Change.modified
                self._events.put_nowait(events)
        except (OSError, RuntimeError) as error:
            self._has_failed, self._graph.is_watched = True, False
            if gone := {place[start:] for place in places if not os.path.isdir(place)}:
                self._events.put_nowait(dict.fromkeys(gone, True))  # the next round is without these folders
                return
            _log.warning("changes below %s are not noticed: %s", self._graph.tree.root, error)


class _PendingPaths:
    """Files with events, until they have had none for a while."""

    def __init__(self) -> None:
        self._times: dict[str, tuple[float, float]] = {}

    def add(self, paths: Iterable[str]) -> None:
        now = time.monotonic()
        for path in paths:
            first, _ = self._times.get(path, (now, now))
            self._times[path] = (first, now)

    @property
    def is_bulk(self) -> bool:
        return len(self._times) > BULK

    @property
    def seconds_left(self) -> float | None:
        """The time until the first file is due; None without files."""
        if not self._times:
            return None
        return 0.0 if self.is_bulk else max(0.0, min(map(_due, self._times.values())) - time.monotonic())

    def take_due(self) -> list[str]:
        now = time.monotonic()
        due = [path for path, times in self._times.items() if _due(times) <= now]
        for path in due:
            del self._times[path]
        return due


def _due(times: tuple[float, float]) -> float:
    first, last = times
    return min(last + DEBOUNCE_SECONDS, first + LONGEST_SECONDS)
