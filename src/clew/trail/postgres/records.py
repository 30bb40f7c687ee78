"""Breadcrumbs on PostgreSQL: the `Records` interface."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from clew.access import GuardedSchemas, Principal
from clew.clock import Clock, from_micros
from clew.errors import AlreadyExists, Busy, Conflict, NotFound
from clew.trail.bootstrap import piece_id
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft, Page, Update, View
from clew.trail.model.flow import KEY, guarded_schemas
from clew.trail.model.page_cursor import check_page, pack_cursor, unpack_cursor
from clew.trail.model.prepare import Prepared, as_breadcrumb
from clew.trail.model.rows import to_checksum, to_view
from clew.trail.model.selector import EVERYTHING, Selector, check_selector, matches_content
from clew.trail.model.write_checks import (
    PATIENCE,
    TOO_FAST,
    Outdated,
    Present,
    WriteChecks,
    check_batch,
    check_schemas,
    check_updates,
)
from clew.trail.postgres import version_writes as write
from clew.trail.postgres.definitions import NEWEST, PostgresDefinitions
from clew.trail.postgres.engine import PostgresEngine
from clew.trail.postgres.rows import ALIVE, CURRENT, OLDER, SEEN, VIEWED, AudienceIds, seen_by, to_record
from clew.trail.postgres.selector_sql import build_where, needs_content
from clew.trail.postgres.transactions import ReadTransaction, WriteTransaction
from clew.trail.postgres.vectors import read_vector
from clew.trail.store import Embedder, VersionInfo
from clew.trail.templates.hints import apply_plan, plan_hints

MAX_BYTES = 8_000_000
"""A page of records ends when its contexts reach this many bytes. The cursor continues from there."""
CHUNK = 100
"""The number of records that one query fetches."""
OF_ID = f"WHERE b.id = %(id)s AND {SEEN} AND {ALIVE}"
CURRENT_OF_ID = f"{CURRENT} {OF_ID}"
VIEW_OF_ID = f"{VIEWED}, ({NEWEST}) FROM breadcrumbs b {OF_ID}"
VECTOR = "SELECT vector_send(vector) FROM vectors WHERE rid = %s"


class PostgresRecords:
    """See `clew.trail.store.Records`."""

    def __init__(self, engine: PostgresEngine, clock: Clock, embedder: Embedder | None) -> None:
        self._engine = engine
        self._audiences = AudienceIds()
        self._checks = WriteChecks(embedder, clock)
        self._definitions = PostgresDefinitions(engine)
        self.space = f"{embedder.name}:{embedder.dimension}" if embedder is not None else None

    # -- writing ------------------------------------------------------------------------------------------

    async def create(self, draft: Draft, *, by: Principal) -> Breadcrumb:
        return (await self.create_many([draft], by=by))[0]

    async def create_many(self, drafts: Sequence[Draft], *, by: Principal) -> list[Breadcrumb]:
        by.require("create")
        return await self.create_with(drafts, lambda writing: None, by=by)

    async def create_with(
        self, drafts: Sequence[Draft], first: Callable[[WriteTransaction], None], *, by: Principal
    ) -> list[Breadcrumb]:
        """Call `first` and then create all records, in one transaction. If a definition changes in the meantime, the
        drafts are checked again, so that a written record always fits the definitions at the time of the write. Raises
        Busy if definitions change too often."""
        for _ in range(PATIENCE):
            prepared = await self._prepare_all(drafts, by)
            with contextlib.suppress(Outdated):
                return await self._engine.append(partial(self._create, prepared=prepared, first=first, by=by), by=by)
        raise Busy(TOO_FAST)

    def _create(
        self,
        writing: WriteTransaction,
        prepared: Sequence[Prepared],
        first: Callable[[WriteTransaction], None],
        by: Principal,
    ) -> list[Breadcrumb]:
        if prepared:
            self._refuse_outdated(writing, prepared[0], by)
        first(writing)
        return self._insert_all(writing, prepared, by)

    def _refuse_outdated(self, writing: WriteTransaction, prepared: Prepared, by: Principal) -> None:
        if prepared.as_of != write.newest_definition(writing, by.owner_id):
            self._definitions.forget()
            raise Outdated

    async def _prepare_all(self, drafts: Sequence[Draft], by: Principal) -> list[Prepared]:
        """Check and embed drafts before any transaction begins."""
        if not drafts:
            return []
        by.require("create")
        check_schemas((draft.schema_name for draft in drafts), await self._guarded(by), by)
        check_batch(drafts)
        definitions = await self._definitions.recent(by)
        prepared = self._checks.prepare_drafts(definitions, drafts, by, self._engine.wall())
        await self._checks.embed(prepared)
        return prepared

    async def _guarded(self, by: Principal) -> GuardedSchemas | None:
        """The schema names that are guarded from the caller."""
        if by.may_write_all:
            return None
        id, owner = piece_id(by, KEY), Principal(owner_id=by.owner_id)
        found = await self._engine.read(lambda reading: self._find_many(reading, [id], owner), by=owner)
        return guarded_schemas(found.get(id))

    def _insert_all(self, writing: WriteTransaction, prepared: Sequence[Prepared], by: Principal) -> list[Breadcrumb]:
        """Write all records in the caller's transaction. For a draft whose idempotency key was used before, return the
        record that the earlier call wrote."""
        now, agent_id = from_micros(writing.now), by.agent_id or None
        keyed = self._find_keyed(writing, prepared, by)
        written: dict[str, Breadcrumb] = {}
        new: list[Prepared] = []
        for each in prepared:
            if each.key is None or each.key not in keyed:
                new.append(each)
                made = as_breadcrumb(each, owner_id=by.owner_id, agent_id=agent_id, now=now)
                written[each.id] = made
                if each.key is not None:
                    keyed[each.key] = made
        if new:
            write.insert(writing, self._audiences, new, by, self.space)
            keys = [(by.owner_id, each.key, each.id, writing.now) for each in new if each.key is not None]
            writing.send_many("INSERT INTO idempotency (owner_id, key, id, created_at) VALUES (%s, %s, %s, %s)", keys)
        return [written.get(each.id) or keyed[str(each.key)] for each in prepared]

    def _find_keyed(
        self, writing: WriteTransaction, prepared: Sequence[Prepared], by: Principal
    ) -> dict[str, Breadcrumb]:
        """The records that earlier calls with these keys wrote. Raises AlreadyExists for one that the caller may not
        see."""
        keys = [each.key for each in prepared if each.key is not None]
        if not keys:
            return {}
        used = writing.rows(
            "SELECT key, id FROM idempotency WHERE owner_id = %s AND key = ANY (%s)", (by.owner_id, keys)
        )
        return {key: self._first_version(writing, key, id, by) for key, id in used}

    def _first_version(self, writing: WriteTransaction, key: str, id: str, by: Principal) -> Breadcrumb:
        row = writing.row(CURRENT_OF_ID, {"id": id, "now": writing.wall, **seen_by(by)})
        if row is None:
            raise AlreadyExists("idempotency key", repr(key))
        if row[3] != 1:
            row = writing.row(f"{OLDER} WHERE v.rid = %s AND v.version = 1", (row[0],)) or row
        return to_record(row)

    async def update(self, id: str, change: Change, *, expect: int, by: Principal) -> Breadcrumb:
        return (await self.update_many([Update(id=id, change=change, expect=expect)], by=by))[0]

    async def update_many(self, updates: Sequence[Update], *, by: Principal) -> list[Breadcrumb]:
        by.require("update")
        check_updates(updates)
        if not updates:
            return []
        present = await self._engine.read(lambda reading: [self._present(reading, each, by) for each in updates], by=by)
        for _ in range(PATIENCE):
            guarded, definitions = await self._guarded(by), await self._definitions.recent(by)
            prepared = self._checks.prepare_changes(definitions, updates, present, guarded, by)
            await self._checks.embed(prepared)
            work = partial(self._replace_all, updates=updates, prepared=prepared, by=by)
            with contextlib.suppress(Outdated):
                return await self._engine.append(work, by=by)
        raise Busy(TOO_FAST)

    def _present(self, reading: ReadTransaction, update: Update, by: Principal) -> Present:
        row = self._find(reading, update.id, by, self._engine.wall())
        if row[3] != update.expect:
            raise Conflict(update.id, expected=update.expect, actual=row[3])
        return to_record(row), read_vector(reading.value(VECTOR, (row[0],)))

    def _replace_all(
        self, writing: WriteTransaction, updates: Sequence[Update], prepared: Sequence[Prepared], by: Principal
    ) -> list[Breadcrumb]:
        self._refuse_outdated(writing, prepared[0], by)
        return [self._replace(writing, *pair, by) for pair in zip(updates, prepared, strict=True)]

    def _replace(self, writing: WriteTransaction, update: Update, prepared: Prepared, by: Principal) -> Breadcrumb:
        row = self._find(writing, update.id, by, writing.wall)
        if row[3] != update.expect:
            raise Conflict(update.id, expected=update.expect, actual=row[3])
        write.replace(writing, self._audiences, row, prepared, by, self.space)
        before = to_record(row)
        after = as_breadcrumb(
            prepared, owner_id=by.owner_id, agent_id=by.agent_id or None, now=from_micros(writing.now)
        )
        reads = 0 if prepared.is_new_ttl else before.ttl.read_count
        return msgspec.structs.replace(
            after,
            version=before.version + 1,
            created_at=before.created_at,
            created_by=before.created_by,
            ttl=msgspec.structs.replace(after.ttl, read_count=reads) if after.ttl.kind != "never" else after.ttl,
        )

    async def delete(self, id: str, *, by: Principal, expect: int | None = None) -> None:
        by.require("delete")
        await self._engine.append(lambda writing: self._delete(writing, id, expect, by), by=by)

    def _delete(self, writing: WriteTransaction, id: str, expect: int | None, by: Principal) -> None:
        row = self._find(writing, id, by, writing.wall)
        if expect is not None and row[3] != expect:
            raise Conflict(id, expected=expect, actual=row[3])
        write.remove(writing, row)

    # -- reading ------------------------------------------------------------------------------------------

    async def get(self, id: str, *, by: Principal, version: int | None = None, vector: bool = False) -> Breadcrumb:
        by.require("read")
        return await self._engine.read(lambda reading: self._get(reading, id, by, version, vector), by=by)

    def _get(self, reading: ReadTransaction, id: str, by: Principal, version: int | None, vector: bool) -> Breadcrumb:
        row = self._find(reading, id, by, self._engine.wall())
        if version is not None and version != row[3]:
            older = reading.row(f"{OLDER} WHERE v.rid = %s AND v.version = %s::bigint", (row[0], version))
            if older is None:
                raise NotFound("breadcrumb version", f"{id} v{version}")
            return to_record(older)
        found = to_record(row)
        packed = read_vector(reading.value(VECTOR, (row[0],))) if vector else None
        if packed is None:
            return found
        return msgspec.structs.replace(found, embedding=struct.unpack(f"<{len(packed) // 4}f", packed))

    async def find_many(self, ids: Sequence[str], *, by: Principal) -> dict[str, Breadcrumb]:
        by.require("read")
        return await self._engine.read(lambda reading: self._find_many(reading, ids, by), by=by)

    def _find_many(self, reading: ReadTransaction, ids: Sequence[str], by: Principal) -> dict[str, Breadcrumb]:
        sql = f"{CURRENT} WHERE b.id = ANY (%(ids)s) AND {SEEN} AND {ALIVE}"
        values = {
            "ids": [id for id in ids if id.isascii() and "\0" not in id],
            "now": self._engine.wall(),
            **seen_by(by),
        }
        return {row[1]: to_record(row) for row in reading.rows(sql, values)}

    async def read(self, id: str, *, by: Principal) -> View:
        by.require("read")
        view, max_reads = await self._engine.read(lambda reading: self._view(reading, id, by), by=by)
        if max_reads is not None:
            await self._engine.write(lambda writing: self._count_read(writing, id, by), by=by)
        return view

    def _view(self, reading: ReadTransaction, id: str, by: Principal) -> tuple[View, int | None]:
        """The breadcrumb with its hints applied, and its limit of reads."""
        *row, newest = self._find(reading, id, by, self._engine.wall(), VIEW_OF_ID)
        view, hints = to_view(id, row)
        plan = plan_hints(hints) if hints else None
        if hints is None and view.schema_name is not None:
            plan = self._definitions.as_of(reading, by.owner_id, newest).rules(view.schema_name).hint_plan
        if plan is not None:
            shown = apply_plan(view.context, plan, title=view.title)
            view = view if shown is view.context else msgspec.structs.replace(view, context=shown)
        return view, row[8]

    def _count_read(self, writing: WriteTransaction, id: str, by: Principal) -> None:
        values = {"id": id, "now": writing.wall, **seen_by(by)}
        if not writing.run(f"UPDATE breadcrumbs b SET read_count = read_count + 1 {OF_ID}", values):
            raise NotFound("breadcrumb", id)

    async def list(
        self,
        selector: Selector = EVERYTHING,
        *,
        by: Principal,
        limit: int = 50,
        cursor: str | None = None,
        oldest_first: bool = False,
    ) -> Page:
        by.require("read")
        check_selector(selector)
        check_page(limit)
        after = unpack_cursor(cursor) if cursor is not None else None
        return await self._engine.read(
            lambda reading: self._list(reading, selector, by, limit, after, oldest_first), by=by
        )

    def _list(
        self,
        reading: ReadTransaction,
        selector: Selector,
        by: Principal,
        limit: int,
        after: int | None,
        oldest_first: bool,
    ) -> Page:
        where, values = build_where(selector, by, self._engine.wall())
        order, beyond = ("ASC", ">") if oldest_first else ("DESC", "<")
        chunk = CHUNK if needs_content(selector) else min(CHUNK, limit + 1)
        items: list[Breadcrumb] = []
        room, last, place = MAX_BYTES, after or 0, after
        while True:
            more = f" AND b.rid {beyond} %(after)s" if place is not None else ""
            sql = f"{CURRENT} WHERE {where}{more} ORDER BY b.rid {order} LIMIT {chunk}"
            rows = reading.rows(sql, {**values, "after": place})
            for row in rows:
                record, place = to_record(row), row[0]
                if not matches_content(selector, record):
                    continue
                if len(items) == limit or room <= 0:
                    return Page(items=tuple(items), cursor=pack_cursor(last), end=pack_cursor(last))
                items.append(record)
                last, room = row[0], room - len(row[6])
            if len(rows) < chunk:
                return Page(items=tuple(items), cursor=None, end=pack_cursor(last) if last else None)

    async def history(self, id: str, *, by: Principal) -> Sequence[VersionInfo]:
        by.require("read")
        return await self._engine.read(lambda reading: self._history(reading, id, by), by=by)

    def _history(self, reading: ReadTransaction, id: str, by: Principal) -> Sequence[VersionInfo]:
        row = self._find(reading, id, by, self._engine.wall())
        older = reading.rows(
            "SELECT version, updated_at, updated_by, checksum FROM versions WHERE rid = %s ORDER BY version",
            (row[0],),
        )
        lines = [*older, (row[3], row[17], row[19], row[15])]
        return [
            VersionInfo(version=version, updated_at=from_micros(at), updated_by=agent, checksum=to_checksum(checksum))
            for version, at, agent, checksum in lines
        ]

    def _find(
        self, reading: ReadTransaction, id: str, by: Principal, now: int, sql: str = CURRENT_OF_ID
    ) -> Sequence[Any]:
        """The row of a live breadcrumb that the caller may see. Raises NotFound."""
        row = reading.row(sql, {"id": id, "now": now, **seen_by(by)}) if id.isascii() and "\0" not in id else None
        if row is None:
            raise NotFound("breadcrumb", id)
        return row
