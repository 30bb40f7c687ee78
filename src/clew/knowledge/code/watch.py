"""Code while a program runs: changes of files are noticed by the operating system, and acted on soon after.

Writes to a file that follow each other are one change, and a write that leaves its content as it was is none. When very
many files change at once, as with a checkout, all of them are one change.
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
from clew.knowledge.code.index import Indexed
from clew.knowledge.code.index_pass import Progress
from clew.tools.ignoring import IGNORE_FILE

DEBOUNCE_SECONDS, LONGEST_SECONDS = 0.1, 1.0
"""A file is read when nothing has happened to it for so long, and after so long anyway."""
BULK = 100
"""More files than this at once are a bulk change."""
GIT_SECONDS = 30.0
"""So long git may hold its lock before what it changed is looked at anyway."""
STEP_MS, GATHER_MS = 20, 60

OnChange = Callable[[Sequence[str], bool], Awaitable[None]]
"""Told which files changed, came or went, and whether they are too many to be looked at one by one."""
Happened = Mapping[str, bool]
"""To which paths something happened, and whether they came or went rather than changed."""

_log = logging.getLogger(__name__)


class CodeWatch:
    """Keeps a graph as the files are, and tells `on_change` after each change, one call at a time. Where the system has
    no more watches to give it says so once, and the graph goes on looking for itself."""

    def __init__(self, graph: CodeGraph, on_change: OnChange, report: Progress | None = None) -> None:
        self._graph = graph
        self._on_change = on_change
        self._report = report
        self._pending = _Pending()
        self._events: asyncio.Queue[Happened | None] = asyncio.Queue()
        self._refused: set[str] = set()
        """Folders that came and are not watched, since nothing in them counts."""
        self._is_deaf = False
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> CodeWatch:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Begin to watch. The graph is up to date, and what changes from now on is not missed."""
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
        """Stop, and wait until nothing runs any more. Calling it twice is harmless."""
        task, self._task = self._task, None
        if task is not None:
            self._stop.set()
            self._events.put_nowait(None)
            await task

    async def _run(self, is_ready: asyncio.Event) -> None:
        """Each folder that comes begins a new round: it is watched before what is in it is read."""
        try:
            while not self._stop.is_set():
                folders = await asyncio.to_thread(self._folders)
                self._refused -= folders
                self._is_deaf = False
                async with self._notified(folders):
                    await self._act(self._refresh())
                    self._graph.is_watched = not self._is_deaf
                    is_ready.set()
                    await self._follow(folders)
                self._graph.is_watched = False
        finally:
            self._graph.is_watched = False
            is_ready.set()

    def _folders(self) -> set[str]:
        tree = self._graph.tree
        return tree.folders(tree.look())

    async def _follow(self, folders: set[str]) -> None:
        """Act on events until a folder comes or goes, or all is to end."""
        while not self._stop.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pending.seconds_left):
                    happened = await self._events.get()
                    if happened is None or self._have_moved(happened, folders):
                        return
                    self._pending.add(happened)
                    continue
            if self._pending.is_bulk:
                if await self._settle(folders):
                    return
                await self._act(self._refresh())
            elif due := self._pending.take_due():
                await self._act(self._update(due))

    def _have_moved(self, happened: Happened, folders: set[str]) -> bool:
        """Whether other folders are to be watched than before: one came or went, or a rule about them did. One that
        went and came back is another, and one that went is refused no more."""
        if any(path.rpartition("/")[2] == IGNORE_FILE for path in happened):
            self._refused.clear()
            return True
        root = self._graph.tree.root
        present = {path for path in happened if os.path.isdir(f"{root}/{path}")}
        self._refused -= happened.keys() - present
        came = present - folders - self._refused
        self._refused |= came
        others = {path for path, is_other in happened.items() if is_other or path not in present}
        return bool(came or others & folders)

    async def _settle(self, folders: set[str]) -> bool:
        """Wait until the flood is over: nothing more comes, and git has let go of its index. Whether all is to be
        watched anew then, or to end."""
        lock = os.path.join(self._graph.tree.root, ".git", "index.lock")
        end = time.monotonic() + GIT_SECONDS
        have_moved = False
        while time.monotonic() < end:
            try:
                async with asyncio.timeout(DEBOUNCE_SECONDS):
                    happened = await self._events.get()
            except TimeoutError:
                if not os.path.exists(lock):
                    break
                continue
            if happened is None:
                return True
            have_moved |= self._have_moved(happened, folders)
        return have_moved

    async def _act(self, work: Awaitable[None]) -> None:
        try:
            await work
        except ClewError as error:
            _log.warning("what changed below %s is not known yet: %s", self._graph.tree.root, error)
        except Exception as error:  # a task: one file that nobody foresaw does not end the watching of all
            _log.warning("what changed below %s is not known: %s", self._graph.tree.root, type(error).__name__)

    async def _refresh(self) -> None:
        self._pending = _Pending()
        done: Indexed = await self._graph.refresh(self._report)
        await self._tell([*done.changed, *done.gone])

    async def _update(self, paths: Sequence[str]) -> None:
        await self._tell(await self._graph.update(paths))

    async def _tell(self, changed: Sequence[str]) -> None:
        if changed:
            await self._on_change(sorted(changed), len(changed) > BULK)

    @contextlib.asynccontextmanager
    async def _notified(self, folders: Iterable[str]) -> AsyncIterator[None]:
        """Puts the paths of what happens among the events, for as long as the block runs."""
        stop = asyncio.Event()
        root = self._graph.tree.root
        task = asyncio.create_task(self._notify([f"{root}/{folder}" if folder else root for folder in folders], stop))
        try:
            await asyncio.sleep(0)  # the task runs up to where it waits for the operating system
            yield
        finally:
            stop.set()
            await task

    async def _notify(self, places: Sequence[str], stop: asyncio.Event) -> None:
        # watchfiles is loaded by a program that watches, not by every command
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
                self._events.put_nowait(_gathered((path[start:], how != Change.modified) for how, path in changes))
        except (OSError, RuntimeError) as error:
            self._is_deaf, self._graph.is_watched = True, False
            if gone := {place[start:] for place in places if not os.path.isdir(place)}:
                self._events.put_nowait(
                    dict.fromkeys(gone, True)
                )  # a folder went while it was to be watched: the next round is without it
                return
            _log.warning("changes below %s are not noticed: %s", self._graph.tree.root, error)


def _gathered(changes: Iterable[tuple[str, bool]]) -> Happened:
    """One path may have gone and come back, and changed then."""
    found: dict[str, bool] = {}
    for path, is_other in changes:
        place = path.replace(os.sep, "/")
        found[place] = found.get(place, False) or is_other
    return found


class _Pending:
    """Files to which something happened, until nothing has for a while."""

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
        """Until the first of them is due; None when there is none."""
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
