"""Read and write locks on the files that all sessions share: those of the user's checkout. Work trees need none, since
each belongs to one pipeline.

A lock is a record on the trail, and the order of the records is the queue: a lock is held as soon as no earlier lock
conflicts with it. A caller that needs several files takes one lock for all of them and waits only for earlier locks, so
there are no deadlocks. A lock ends with its process, or after its lease.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec

from clew.access import Principal
from clew.agents.workers.worker_names import is_dead, worker_name
from clew.clock import Clock
from clew.errors import Busy, NotFound
from clew.tools.content import GuidedContent
from clew.tools.files.folder import WorkingFolder
from clew.tools.tool import Tool, ToolContext
from clew.trail.model.breadcrumb import Breadcrumb, Draft, Ttl
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

LOCK = "team.lock.v1"
EVERYTHING = ""
"""The path that means all files."""
HEAD = ".git"
"""The path that a merge locks in addition to its files, because it moves the branch of the checkout."""
LEASE = timedelta(minutes=15)
"""The longest time that a lock holds. It ends the locks of dead processes on other machines."""
PATIENCE = 60.0
"""Seconds that a caller waits for a lock."""
LOOK_EVERY = 1.0
"""Seconds between checks whether the processes of earlier locks still run."""
MAX_LOCKS = 1_000

LockMode = Literal["read", "write"]


class FileLock(msgspec.Struct, frozen=True, kw_only=True):
    """A lock as stored. `task` is its purpose. The path of a folder covers all files below it."""

    session: str
    task: str
    mode: LockMode
    paths: tuple[str, ...]
    worker: str
    until: datetime

    def conflicts(self, other: FileLock) -> bool:
        """Whether the two locks cannot be held at the same time."""
        if self.mode == other.mode == "read":
            return False
        return any(_overlap(own, its) for own in self.paths for its in other.paths)


class LockState(msgspec.Struct, frozen=True, kw_only=True):
    """A lock as shown to users. `waits_for` are the sessions of earlier conflicting locks; if it is empty, the lock is
    held."""

    id: str
    session: str
    task: str
    mode: LockMode
    paths: tuple[str, ...]
    since: datetime
    waits_for: tuple[str, ...] = ()


class FileLocks:
    """The locks of one owner."""

    def __init__(self, trail: Trail, clock: Clock, *, by: Principal) -> None:
        self._trail = trail
        self._clock = clock
        self._by = by

    @asynccontextmanager
    async def hold(
        self, mode: LockMode, paths: Sequence[str], *, session: str, task: str, patience: float = PATIENCE
    ) -> AsyncIterator[None]:
        """Hold a lock on all these paths at once. Raises Busy if others hold them for more than `patience` seconds."""
        id = self._clock.new_id()
        lock = FileLock(
            session=session,
            task=task,
            mode=mode,
            paths=tuple(sorted(set(paths))),
            worker=worker_name(),
            until=self._clock.now() + LEASE,
        )
        draft = Draft(
            title=f"Lock of {task}"[:200],
            schema_name=LOCK,
            tags=(f"session:{session}",) if session else (),
            context=msgspec.to_builtins(lock),
            ttl=Ttl(kind="datetime", expires_at=lock.until),
            embed="never",
            id=id,
        )
        try:  # a create that is cancelled may still be written, but before the release
            await self._trail.records.create(draft, by=self._by)
            await self._wait(id, lock, patience)
            yield
        finally:
            await self._release(id)

    async def read(self) -> Sequence[LockState]:
        """All locks, those that hold and those that wait, in the order of the queue."""
        found = await self._live()
        return [
            LockState(
                id=record.id,
                session=lock.session,
                task=lock.task,
                mode=lock.mode,
                paths=lock.paths,
                since=record.created_at,
                waits_for=tuple(dict.fromkeys(each.session for _, each in found[:at] if each.conflicts(lock))),
            )
            for at, (record, lock) in enumerate(found)
        ]

    async def _wait(self, id: str, lock: FileLock, patience: float) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + patience
        while True:
            head = await self._trail.log.head()
            before = [each for each in await self._before(id) if each.conflicts(lock)]
            if not before:
                return
            left = end - loop.time()
            if left <= 0:
                raise _busy(lock, before[0])
            await self._trail.log.wait(head, min(left, LOOK_EVERY), selector=Selector(schema_name=LOCK))

    async def _before(self, id: str) -> list[FileLock]:
        """The live locks before a lock. Raises Busy if the lock itself has been removed."""
        found = await self._live()
        ids = [record.id for record, _ in found]
        if id not in ids:
            raise Busy("the lock on the files has ended before it was given", hint="Try again")
        return [lock for _, lock in found[: ids.index(id)]]

    async def _live(self) -> list[tuple[Breadcrumb, FileLock]]:
        """The live locks in their order. Locks of dead processes and expired locks are removed."""
        page = await self._trail.records.list(
            Selector(schema_name=LOCK), by=self._by, limit=MAX_LOCKS, oldest_first=True
        )
        found, now = [], self._clock.now()
        for record in page.items:
            try:
                lock = msgspec.convert(record.context, FileLock)
            except msgspec.ValidationError:
                lock = None
            if lock is None or min(lock.until, record.created_at + LEASE) <= now or is_dead(lock.worker):
                await self._release(record.id)
            else:
                found.append((record, lock))
        return found

    async def _release(self, id: str) -> None:
        with suppress(NotFound):  # it ended by itself
            await asyncio.shield(self._trail.records.delete(id, by=self._by))


def with_locks(tools: Sequence[Tool], locks: FileLocks, folder: WorkingFolder, names: Sequence[str]) -> list[Tool]:
    """Wrap the tools with these names so that they hold a write lock on the file that they change. Other tools are
    unchanged."""
    return [_locked(each, locks, folder) if each.name in names else each for each in tools]


def _locked(tool: Tool, locks: FileLocks, folder: WorkingFolder) -> Tool:
    async def call(arguments: dict[str, Any], context: ToolContext) -> GuidedContent:
        path = await asyncio.to_thread(folder.locate, str(arguments.get("file_path") or ""))
        session = context.by.session or context.run
        patience = tool.limits.seconds / 2
        async with locks.hold("write", [path], session=session, task=tool.name, patience=patience):
            return await tool.call(arguments, context)

    return msgspec.structs.replace(tool, call=call)


def with_checkout_lock(tools: Sequence[Tool], locks: FileLocks, name: str) -> list[Tool]:
    """Wrap the tool with this name so that it holds a read lock on the whole checkout. The tool copies the user's files
    and must not see half of a merge."""

    def locked(tool: Tool) -> Tool:
        async def call(arguments: dict[str, Any], context: ToolContext) -> GuidedContent:
            session = str(arguments.get("session") or "")
            async with locks.hold("read", [EVERYTHING], session=session, task=name):
                return await tool.call(arguments, context)

        return msgspec.structs.replace(tool, call=call)

    return [locked(each) if each.name == name else each for each in tools]


def _overlap(one: str, other: str) -> bool:
    """Whether two paths are the same, or one is in the other."""
    if EVERYTHING in (one, other):
        return True
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def _busy(lock: FileLock, holder: FileLock) -> Busy:
    path = next((own for own in lock.paths for its in holder.paths if _overlap(own, its)), EVERYTHING)
    doing = "reading" if holder.mode == "read" else "writing"
    by = f"{holder.task} of session {holder.session}" if holder.session else holder.task
    hint = "Try again when it has ended; `clew team status` shows the locks"
    return Busy(f"{by} is {doing} {path or 'the checkout'}", hint=hint)
