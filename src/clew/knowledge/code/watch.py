"""Keeps the index up to date while a program runs, by notifications of the operating system.

Quick writes to one file are treated as one change, and a write that does not alter the content as none. One refresh
handles very many changes at once, as after a checkout.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

from clew.errors import ClewError
from clew.knowledge.code.files import ALWAYS_LEFT_OUT
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.index import IndexReport, Progress
from clew.tools.search.gitignore import IGNORE_FILE

DEBOUNCE_MS, LONGEST_MS = 100, 1_000
"""Files are read after this long without an event, and at the latest after the second."""
BULK = 100
"""More files than this at once are a bulk change."""
GIT_SECONDS = 30.0
"""How long a bulk change waits for git to release its index."""

OnChange = Callable[[Sequence[str], bool], Awaitable[None]]
"""Receives the paths that changed, and whether they are a bulk change."""
Events = set[tuple[str, bool]]
"""Paths with events, and whether each was created or deleted rather than modified."""

_log = logging.getLogger(__name__)


class CodeWatch:
    """Updates a graph after changes, and calls `on_change` after each, one call at a time. If the system has no watches
    left it logs that once, and the graph checks files by itself."""

    def __init__(self, graph: CodeGraph, on_change: OnChange | None = None, report: Progress | None = None) -> None:
        self._graph = graph
        self._on_change = on_change
        self._report = report
        self._events: asyncio.Queue[Events | None] = asyncio.Queue()
        self._ignored: set[str] = set()
        """New folders that are not watched, since no file in them counts."""
        self._has_failed = False
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

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
        while (events := await self._next_events()) is not None:
            is_bulk = len(events) > BULK
            if is_bulk:
                await self._wait_for_git()
                while not self._events.empty():
                    events |= self._events.get_nowait() or set()
            if self._change_folders(events, folders) or self._stop.is_set():
                return
            await self._act(self._refresh() if is_bulk else self._update(sorted({path for path, _ in events})))

    async def _next_events(self) -> Events | None:
        """All events so far, at least one; None when the watch closes."""
        events: Events = set()
        while not events or not self._events.empty():
            more = await self._events.get()
            if more is None:
                return None
            events |= more
        return events

    def _change_folders(self, events: Events, folders: set[str]) -> bool:
        """Whether other folders have to be watched: a folder or an ignore file was created, deleted or replaced."""
        paths = {path for path, _ in events}
        if any(path.rpartition("/")[2] == IGNORE_FILE for path in paths):
            self._ignored.clear()
            return True
        root = self._graph.tree.root
        present = {path for path in paths if os.path.isdir(f"{root}/{path}")}
        self._ignored -= paths - present
        new = present - folders - self._ignored
        self._ignored |= new
        replaced = {path for path, is_other in events if is_other or path not in present}
        return bool(new or replaced & folders)

    async def _wait_for_git(self) -> None:
        """Wait until git has released its index."""
        lock = os.path.join(self._graph.tree.root, ".git", "index.lock")
        end = time.monotonic() + GIT_SECONDS
        while os.path.exists(lock) and time.monotonic() < end and not self._stop.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), DEBOUNCE_MS / 1_000)

    async def _act(self, work: Awaitable[None]) -> None:
        try:
            await work
        except ClewError as error:
            _log.warning("changes below %s are not read yet: %s", self._graph.tree.root, error)
        except Exception as error:  # a task boundary: an error with one file does not end the watch
            _log.warning("changes below %s cannot be read: %s", self._graph.tree.root, type(error).__name__)

    async def _refresh(self) -> None:
        done: IndexReport = await self._graph.refresh(self._report)
        await self._notify([*done.changed, *done.gone])

    async def _update(self, paths: Sequence[str]) -> None:
        await self._notify(await self._graph.update(paths))

    async def _notify(self, changed: Sequence[str]) -> None:
        if changed and self._on_change is not None:
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
                debounce=LONGEST_MS,
                step=DEBOUNCE_MS,
                recursive=False,
                ignore_permission_denied=True,
            ):
                events = {(path[start:].replace(os.sep, "/"), how != Change.modified) for how, path in changes}
                self._events.put_nowait(events)
        except (OSError, RuntimeError) as error:
            self._has_failed, self._graph.is_watched = True, False
            if gone := {place[start:] for place in places if not os.path.isdir(place)}:
                self._events.put_nowait({(folder, True) for folder in gone})  # the next round is without them
                return
            _log.warning("changes below %s are not noticed: %s", self._graph.tree.root, error)
