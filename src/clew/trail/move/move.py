"""Moves a trail: copies its tables in batches, compares both places, and finishes the target.

The target stores the progress in the transaction of each batch, so that an interrupted move continues after the last
batch. The source is not changed. The leases of workers are not moved, so their events can be claimed at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Literal

import msgspec

from clew.errors import StorageError
from clew.trail.move.digests import TableDigest
from clew.trail.move.replica import MoveProgress, Replica, refuse_unfinished
from clew.trail.move.tables import TABLES, MovedTable, OwnedRow, Row
from clew.trail.seal import Seal, copy_key

TargetState = Literal["empty", "begun", "same", "other"]
"""The content of a target: nothing, a part of this trail, all of it or a later state of it, or something else."""
Tell = Callable[[str, int, int], None]
"""A progress callback. It receives the name of the step, the number of rows done, and the total."""

_COUNTED = tuple(table for table in TABLES if table.name != "meta")
_SECRETS = next(table for table in TABLES if table.name == "secrets")


class MovePlan(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a move: the number of rows of each table, the number of rows already copied, and the state of the
    target."""

    source: str
    target: str
    state: TargetState
    rows: dict[str, int]
    copied: int
    secrets: int
    key_file: str


class MovedRows(msgspec.Struct, frozen=True, kw_only=True):
    """A table that was compared and is the same in both places."""

    table: str
    rows: int
    owners: int
    checksum: str


class MoveReport(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a move. `copied` are the rows that this run wrote; `key_file` is empty without secrets."""

    source: str
    target: str
    tables: list[MovedRows]
    copied: int
    resumed: bool
    secrets: int
    key_file: str


async def plan_move(source: Replica, target: Replica) -> MovePlan:
    """Say what a move would do. Changes nothing. Raises StorageError for a source that is itself the target of a move
    which is not finished."""
    return await asyncio.to_thread(_plan, source, target)


async def move_trail(source: Replica, target: Replica, tell: Tell, *, foreign: bool = False) -> MoveReport:
    """Copy a trail to a place that is empty, or that holds the beginning of an earlier attempt. A trail that is
    `foreign` to the user is marked as such.

    Returns when all tables are equal by counts and checksums of every owner, and the target can be used. A target that
    holds the same trail already is only compared. Raises StorageError for a target with other content, a missing or
    different key of secrets, and a copy that differs.
    """
    plan = await plan_move(source, target)
    if plan.state == "other":
        raise StorageError(f"{target.place} holds another trail", hint="Name an empty database, or a new file")
    await asyncio.to_thread(_carry_key, source, target, plan.secrets)
    mover = _Mover(source, target, plan, tell)
    if plan.state != "same":
        await mover.copy()
    digests, difference = await mover.compare()
    if difference and plan.state == "begun":  # the source was changed after the attempt that was resumed
        await mover.copy(anew=True)
        digests, difference = await mover.compare()
    if difference:
        raise StorageError(f"{target.place} differs from {source.place}: {difference}", hint=_advice(plan.state))
    if plan.state != "same":
        await asyncio.to_thread(partial(target.finish, foreign=foreign))
    elif not foreign:
        await asyncio.to_thread(target.adopt)
    return MoveReport(
        source=source.place,
        target=target.place,
        tables=[
            MovedRows(table=name, rows=each.total, owners=len(each.rows), checksum=each.checksum)
            for name, each in digests.items()
        ],
        copied=mover.copied,
        resumed=plan.state == "begun",
        secrets=plan.secrets,
        key_file=plan.key_file,
    )


def _advice(state: TargetState) -> str:
    if state == "same":
        return "It holds a later or earlier state of the same trail: name an empty place"
    return "Run it again with an empty place, and `clew doctor` on both"


def _plan(source: Replica, target: Replica) -> MovePlan:
    refuse_unfinished(source.progress(), source.place)
    trail_id, secrets = source.trail_id(), source.count(_SECRETS)
    progress = target.progress()
    return MovePlan(
        source=source.place,
        target=target.place,
        state=_state(source, target, progress),
        rows={table.name: source.count(table) for table in TABLES},
        copied=progress.rows if progress else 0,
        secrets=secrets,
        key_file=str(target.key_file(trail_id)) if secrets else "",
    )


def _state(source: Replica, target: Replica, progress: MoveProgress | None) -> TargetState:
    if progress is not None:
        return "begun" if progress.trail_id == source.trail_id() else "other"
    if target.trail_id() == source.trail_id():
        return "same"
    return "other" if any(target.count(table) for table in _COUNTED) else "empty"


def _carry_key(source: Replica, target: Replica, secrets: int) -> None:
    """Copy the key of the secrets to the place where the target looks for it. Raises StorageError if the key is missing
    or does not open the secrets."""
    if not secrets:
        return
    trail_id = source.trail_id()
    key = source.key_file(trail_id)
    if not key.exists():
        raise StorageError(
            f"the key of {secrets} secrets is not at {key}",
            hint="Copy it there from the machine that has it, or remove the secrets with `clew secret rm`",
        )
    _, (owner_id, name, sealed, _) = source.read(_SECRETS, ())[0]
    Seal(key).open(owner_id, name, sealed)
    if (place := target.key_file(trail_id)) != key:
        copy_key(key, place)


class _Mover:
    """Copies and compares the tables of two replicas."""

    def __init__(self, source: Replica, target: Replica, plan: MovePlan, tell: Tell) -> None:
        self._source = source
        self._target = target
        self._total = sum(plan.rows.values())
        self._tell = tell
        self.copied = 0

    async def copy(self, *, anew: bool = False) -> None:
        """Copy the rows that the target lacks. If the target holds part of an earlier state of the source, or with
        `anew`, it is cleared first."""
        begin = MoveProgress(
            trail_id=await asyncio.to_thread(self._source.trail_id),
            head=await asyncio.to_thread(self._source.head),
            place=self._source.place,
        )
        progress = await asyncio.to_thread(self._target.progress) or begin
        if anew or progress.head != begin.head:
            await asyncio.to_thread(self._target.clear, begin)
            progress = begin
        for table in TABLES:
            if table.name not in progress.done:
                progress = await self._copy_table(table, progress)

    async def _copy_table(self, table: MovedTable, progress: MoveProgress) -> MoveProgress:
        after: Row = progress.after
        while rows := await asyncio.to_thread(self._source.read, table, after):
            settled = [table.settled(row) for _, row in rows]
            after = table.key_of(settled[-1])
            progress = msgspec.structs.replace(progress, after=after, rows=progress.rows + len(rows))
            await asyncio.to_thread(self._target.load, table, settled, progress)
            self.copied += len(rows)
            self._tell("copied", progress.rows, self._total)
        progress = msgspec.structs.replace(progress, done=(*progress.done, table.name), after=())
        await asyncio.to_thread(self._target.load, table, (), progress)
        return progress

    async def compare(self) -> tuple[dict[str, TableDigest], str]:
        """The digests of the source, and the first difference of the target as text."""
        digests: dict[str, TableDigest] = {}
        done = 0
        for table in TABLES:
            both = await self._digest(self._source, table, done), await self._digest(self._target, table, done)
            owner = both[0].differing_owner(both[1])
            if owner is not None:
                counts = " and ".join(f"{each.rows.get(owner, 0):,}" for each in both)
                return digests, f"{table.name} of {owner or 'the trail'} ({counts} rows)"
            digests[table.name] = both[0]
            done += both[0].total
        return digests, ""

    async def _digest(self, replica: Replica, table: MovedTable, done: int) -> TableDigest:
        digest, after = TableDigest(rows={}, sums={}), ()
        rows: list[OwnedRow]
        while rows := await asyncio.to_thread(replica.read, table, after):
            after = table.key_of(rows[-1][1])
            digest.add((owner, table.settled(row)) for owner, row in rows)
            self._tell("compared", done + digest.total, self._total)
        return digest
