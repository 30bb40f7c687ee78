"""Watches definition files: the operating system reports a change, and the callback runs soon after. Only folders with
definitions are watched completely; above them, only new and deleted folders are noticed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import posixpath
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from clew.errors import ClewError
from clew.skills.files.tree_walk import HOMES, RULE_FILES
from clew.skills.manifest import AgentSpec, Skill

PARTS = ("agents", "commands", "skill", "skills", "toolsets", "tools")
"""Folders of definitions, in the root and in each of HOMES."""
DEBOUNCE_MS, STEP_MS = 400, 100
"""The callback runs after STEP_MS without a change, and at the latest DEBOUNCE_MS after the first change."""

_NAMES = frozenset((*HOMES, *PARTS, *RULE_FILES, "SKILL.md"))
_log = logging.getLogger(__name__)


class FileWatch:
    """Calls `changed` after each change of the definitions below `root`, one call at a time.

    `folders` returns additional folders of definitions, and `rules` the folders with rules, both relative to the root.
    They are called again after each change. An error in `changed` is logged, and the watch goes on.
    """

    def __init__(
        self,
        root: Path,
        changed: Callable[[], Awaitable[Any]],
        folders: Callable[[], Iterable[str]] = tuple,
        rules: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._root = os.path.realpath(root)
        self._changed = changed
        self._folders = folders
        self._rules = rules
        self._task: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()
        self._dirty = asyncio.Event()

    async def __aenter__(self) -> FileWatch:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Call `changed` once and start watching. No change after that call is missed. Raises errors of `changed` other
        than ClewError."""
        if self._task is None:
            self._stop, self._dirty = asyncio.Event(), asyncio.Event()
            is_watching = asyncio.Event()
            self._task = asyncio.create_task(self._run(is_watching), name="clew-watch")
            try:
                await is_watching.wait()
            except asyncio.CancelledError:
                await self.close()
                raise
            if self._task is not None and self._task.done():
                self._task.result()

    async def close(self) -> None:
        """Stop watching, and wait for a running callback. Calling it twice is harmless."""
        task, self._task = self._task, None
        if task is not None:
            self._stop.set()
            self._dirty.set()
            await task

    async def _run(self, is_watching: asyncio.Event) -> None:
        """Handle changes one by one. New folders are watched before their content is read."""
        try:
            while not self._stop.is_set():
                inside, above = self._places()
                async with _notified(self._dirty, inside, above):
                    if self._stop.is_set():
                        return
                    self._dirty.clear()
                    await self._act()
                    if (inside, above) == self._places():
                        is_watching.set()
                        await self._dirty.wait()
        finally:
            is_watching.set()

    async def _act(self) -> None:
        try:
            await self._changed()
        except ClewError as error:
            _log.warning("the definitions below %s were not reloaded: %s", self._root, error)

    def _places(self) -> tuple[list[str], list[str]]:
        """Return the folders that are watched completely, and the folders whose direct entries alone are watched."""
        homes = ["", *(home for home in HOMES if os.path.isdir(os.path.join(self._root, home)))]
        usual = [posixpath.join(home, part) for home in homes for part in PARTS]
        inside = self._present({*usual, *filter(None, self._folders())})
        outer = [each for each in inside if not any(each.startswith(f"{other}/") for other in inside)]
        above = self._present({*homes, *self._rules()})
        return [os.path.join(self._root, each) for each in outer], [os.path.join(self._root, each) for each in above]

    def _present(self, folders: Iterable[str]) -> list[str]:
        return [each for each in sorted(folders) if os.path.isdir(os.path.join(self._root, each))]


def homes_of(definitions: Iterable[Skill | AgentSpec]) -> set[str]:
    """Return the parent folders of definitions, relative to the root. For a skill in the root, return its own
    folder."""
    found = set()
    for each in definitions:
        own = posixpath.dirname(each.path)
        is_folder = posixpath.basename(each.path).upper() == "SKILL.MD"
        found.add((posixpath.dirname(own) if is_folder else own) or own)
    return found


def is_home(path: str) -> bool:
    """Whether a path is a folder or file of definitions, and not a trail or a log."""
    return os.path.basename(path) in _NAMES


@contextlib.asynccontextmanager
async def _notified(dirty: asyncio.Event, inside: Sequence[str], above: Sequence[str]) -> AsyncIterator[None]:
    """Set `dirty` at each change while the block runs. The watch is complete when the block begins."""
    stop = asyncio.Event()
    tasks = [asyncio.create_task(_notify(dirty, stop, above, False))]
    if inside:
        tasks.append(asyncio.create_task(_notify(dirty, stop, inside, True)))
    try:
        await asyncio.sleep(0)  # let each task run until it waits for the operating system
        yield
    finally:
        stop.set()
        await asyncio.gather(*tasks)


async def _notify(dirty: asyncio.Event, stop: asyncio.Event, folders: Collection[str], is_whole: bool) -> None:
    # imported here, because most commands do not watch
    from watchfiles import DefaultFilter, awatch

    wanted = DefaultFilter() if is_whole else lambda _, path: is_home(path)
    options: dict[str, Any] = {"debounce": DEBOUNCE_MS, "step": STEP_MS, "recursive": is_whole}
    try:
        async for _ in awatch(*folders, watch_filter=wanted, stop_event=stop, ignore_permission_denied=True, **options):
            dirty.set()
    except (OSError, RuntimeError) as error:  # a folder was deleted, or the system has no watches left
        _log.warning("cannot watch definitions in %s: %s", ", ".join(folders), error)
