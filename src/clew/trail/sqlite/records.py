"""Breadcrumbs on SQLite: the `Records` interface."""

from __future__ import annotations

import contextlib
import hashlib
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from clew.access import GuardedSchemas, Principal
from clew.clock import Clock, from_micros
from clew.errors import AlreadyExists, Busy, Conflict, NotFound
from clew.sqlite_file import Sql
from clew.trail.bootstrap import piece_id
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft, Page, Update, View
from clew.trail.model.definitions import Definitions
from clew.trail.model.flow import KEY, guarded_schemas
from clew.trail.model.page_cursor import check_page, pack_cursor, unpack_cursor
from clew.trail.model.prepare import Prepared, as_breadcrumb
from clew.trail.model.rows import to_breadcrumb, to_checksum, to_view
from clew.trail.model.selector import EVERYTHING, Selector, check_selector
from clew.trail.model.write_checks import (
    INLINE_TEXTS,
    PATIENCE,
    TOO_FAST,
    Outdated,
    Present,
    WriteChecks,
    check_batch,
    check_schemas,
    check_updates,
    fresh_copy,
)
from clew.trail.sqlite import version_writes as write
from clew.trail.sqlite.definitions import NEWEST, SqliteDefinitions
from clew.trail.sqlite.engine import Engine, Writing
from clew.trail.sqlite.log import MAX_BYTES, read_head
from clew.trail.sqlite.rows import ALIVE, CURRENT, OLDER, TAGGED, VIEWED, Audiences
from clew.trail.sqlite.selector_sql import build_where, leading_tag
from clew.trail.store import Embedder, VersionInfo
from clew.trail.templates.hints import apply_plan, plan_hints
from clew.trail.work.recent_events import EmptyLists

FRESH_AT_MOST = 50
"""Up to this many breadcrumbs of a batch are cached for the handlers that get them in the same transaction."""
CURRENT_OF_ID = f"{CURRENT} WHERE b.id = :id AND {ALIVE}"
VIEW_OF_ID = f"{VIEWED}, ({NEWEST}) FROM breadcrumbs b WHERE b.id = :id AND {ALIVE}"


class SqliteRecords:
    """See `clew.trail.store.Records`."""

    def __init__(
        self, engine: Engine, audiences: Audiences, empty: EmptyLists, clock: Clock, embedder: Embedder | None
    ) -> None:
        self._engine = engine
        self._audiences = audiences
        self._empty = empty
        self._checks = WriteChecks(embedder, clock)
        self._book = SqliteDefinitions(engine)
        self.space = f"{embedder.name}:{embedder.dimension}" if embedder is not None else None

    # -- writing ------------------------------------------------------------------------------------------

    async def create(self, draft: Draft, *, by: Principal) -> Breadcrumb:
        return (await self.create_many([draft], by=by))[0]

    async def create_many(self, drafts: Sequence[Draft], *, by: Principal) -> list[Breadcrumb]:
        by.require("create")
        return await self.create_with(drafts, lambda writing: None, by=by)

    async def create_with(
        self, drafts: Sequence[Draft], first: Callable[[Writing], None], *, by: Principal
    ) -> list[Breadcrumb]:
        """Call `first` and then create all records, in one transaction. If a definition changes in the meantime, the
        drafts are checked again, so that a written record always fits the definitions at the time of the write."""
        for _ in range(PATIENCE):
            prepared = await self._prepare_all(drafts, by)
            with contextlib.suppress(Outdated):
                return await self._engine.write(partial(self._create, prepared=prepared, first=first, by=by))
        raise Busy(TOO_FAST)

    def _create(
        self, writing: Writing, prepared: Sequence[Prepared], first: Callable[[Writing], None], by: Principal
    ) -> list[Breadcrumb]:
        if prepared:
            self._refuse_outdated(writing, prepared[0])
        first(writing)
        return self._insert_all(writing, prepared, by)

    def _refuse_outdated(self, writing: Writing, prepared: Prepared) -> None:
        if prepared.as_of != write.marks(writing).newest:
            self._book.forget()
            raise Outdated

    def _definitions(self, by: Principal) -> Definitions:
        """The definitions as last read; a write checks whether they are still current."""
        found = self._book.recent(by.owner_id)
        return found or self._engine.read(lambda connection: self._book.of(connection, by.owner_id))

    async def _prepare_all(self, drafts: Sequence[Draft], by: Principal) -> list[Prepared]:
        """Check and embed drafts before any transaction begins."""
        if drafts:
            by.require("create")
        check_schemas((draft.schema_name for draft in drafts), self._guarded(by), by)
        check_batch(drafts)
        prepared = self._checks.prepare_drafts(self._definitions(by), drafts, by, self._engine.wall())
        await self._checks.embed(prepared)
        return prepared

    def _guarded(self, by: Principal) -> GuardedSchemas | None:
        """The schema names that are guarded from the caller."""
        if by.may_write_all:
            return None
        id, owner = piece_id(by, KEY), Principal(owner_id=by.owner_id)
        return guarded_schemas(self._engine.read(lambda sql: self._find_many(sql, [id], owner)).get(id))

    def _insert_all(self, writing: Writing, prepared: Sequence[Prepared], by: Principal) -> list[Breadcrumb]:
        """Write all records in the caller's transaction. For a draft whose idempotency key was used before, return the
        record that the earlier call wrote."""
        now, agent_id = from_micros(writing.now), by.agent_id or None
        keyed = self._find_all_keyed(writing, prepared, by) if any(each.key for each in prepared) else {}
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
            first = write.insert(writing, new, by, self.space)
            if len(new) <= FRESH_AT_MOST:
                fresh = writing.memo.setdefault(write.FRESH, {})
                fresh.update((rid, partial(fresh_copy, each, written[each.id])) for rid, each in enumerate(new, first))
            keys = [(by.owner_id, each.key, each.id, writing.now) for each in new if each.key is not None]
            if keys:
                writing.executemany("INSERT INTO idempotency (owner_id, key, id, created_at) VALUES (?, ?, ?, ?)", keys)
        return [written.get(each.id) or keyed[str(each.key)] for each in prepared]

    def _find_all_keyed(self, writing: Writing, prepared: Sequence[Prepared], by: Principal) -> dict[str, Breadcrumb]:
        """The records that earlier calls with these keys wrote."""
        found = {}
        for key in {each.key for each in prepared if each.key is not None}:
            row = self._find_keyed(writing, key, by)
            if row is not None:
                found[key] = to_breadcrumb(row, self._audiences.of(writing.connection, row[2]))
        return found

    def _find_keyed(self, writing: Writing, key: str, by: Principal) -> Any:
        """The record that the first call with this key wrote. Raises AlreadyExists when the caller may not see it."""
        sql = "SELECT id FROM idempotency WHERE owner_id = ? AND key = ?"
        id = writing.execute(sql, (by.owner_id, key)).get
        if id is None:
            return None
        rows = writing.execute(CURRENT_OF_ID, {"id": id, "now": writing.wall}).fetchall()
        row = next((row for row in rows if self._audiences.may_see(writing.connection, row[2], by)), None)
        if row is None:
            raise AlreadyExists("idempotency key", repr(key))
        if row[3] == 1:
            return row
        return writing.execute(f"{OLDER} WHERE v.rid = ? AND v.version = 1", (row[0],)).fetchone()

    async def update(self, id: str, change: Change, *, expect: int, by: Principal) -> Breadcrumb:
        return (await self.update_many([Update(id=id, change=change, expect=expect)], by=by))[0]

    async def update_many(self, updates: Sequence[Update], *, by: Principal) -> list[Breadcrumb]:
        by.require("update")
        check_updates(updates)
        if not updates:
            return []
        present = await self._read_present(updates, by)
        for _ in range(PATIENCE):
            prepared = self._checks.prepare_changes(self._definitions(by), updates, present, self._guarded(by), by)
            await self._checks.embed(prepared)
            with contextlib.suppress(Outdated):
                return await self._engine.write(partial(self._replace_all, updates=updates, prepared=prepared, by=by))
        raise Busy(TOO_FAST)

    async def _read_present(self, updates: Sequence[Update], by: Principal) -> list[Present]:
        def read(connection: Sql) -> list[Present]:
            return [self._present(connection, each, by) for each in updates]

        return self._engine.read(read) if len(updates) <= INLINE_TEXTS else await self._engine.read_aside(read)

    def _present(self, connection: Sql, update: Update, by: Principal) -> Present:
        row = self._find(connection, update.id, by)
        if row[3] != update.expect:
            raise Conflict(update.id, expected=update.expect, actual=row[3])
        vector = connection.execute("SELECT vector FROM vectors WHERE rid = ?", (row[0],)).get
        return to_breadcrumb(row, self._audiences.of(connection, row[2])), vector

    def _replace_all(
        self, writing: Writing, updates: Sequence[Update], prepared: Sequence[Prepared], by: Principal
    ) -> list[Breadcrumb]:
        self._refuse_outdated(writing, prepared[0])
        return [self._replace(writing, *pair, by) for pair in zip(updates, prepared, strict=True)]

    def _replace(self, writing: Writing, update: Update, prepared: Prepared, by: Principal) -> Breadcrumb:
        row = self._find_in(writing, update.id, by)
        if row[3] != update.expect:
            raise Conflict(update.id, expected=update.expect, actual=row[3])
        write.replace(writing, row, prepared, by, self.space)
        row = writing.execute(f"{CURRENT} WHERE b.rid = ?", (row[0],)).fetchone()
        return to_breadcrumb(row, self._audiences.of(writing.connection, row[2]))

    async def delete(self, id: str, *, by: Principal, expect: int | None = None) -> None:
        by.require("delete")
        await self._engine.write(lambda writing: self._delete(writing, id, expect, by))

    def _delete(self, writing: Writing, id: str, expect: int | None, by: Principal) -> None:
        row = self._find_in(writing, id, by)
        if expect is not None and row[3] != expect:
            raise Conflict(id, expected=expect, actual=row[3])
        write.remove(writing, row)

    # -- reading ------------------------------------------------------------------------------------------

    async def get(self, id: str, *, by: Principal, version: int | None = None, vector: bool = False) -> Breadcrumb:
        by.require("read")
        return self._engine.read(lambda connection: self._get(connection, id, by, version, vector))

    def _get(self, connection: Sql, id: str, by: Principal, version: int | None, vector: bool) -> Breadcrumb:
        row = self._find(connection, id, by)
        audience = self._audiences.of(connection, row[2])
        if version is not None and version != row[3]:
            older = connection.execute(f"{OLDER} WHERE v.rid = ? AND v.version = ?", (row[0], version)).fetchone()
            if older is None:
                raise NotFound("breadcrumb version", f"{id} v{version}")
            return to_breadcrumb(older, audience)
        found = to_breadcrumb(row, audience)
        packed = connection.execute("SELECT vector FROM vectors WHERE rid = ?", (row[0],)).get if vector else None
        if packed is None:
            return found
        return msgspec.structs.replace(found, embedding=struct.unpack(f"<{len(packed) // 4}f", packed))

    async def find_many(self, ids: Sequence[str], *, by: Principal) -> dict[str, Breadcrumb]:
        by.require("read")
        return self._engine.read(lambda connection: self._find_many(connection, ids, by))

    def _find_many(self, connection: Sql, ids: Sequence[str], by: Principal) -> dict[str, Breadcrumb]:
        sql = f"{CURRENT} WHERE b.id IN (SELECT value FROM json_each(:ids)) AND {ALIVE}"
        values = {"ids": msgspec.json.encode(ids).decode(), "now": self._engine.wall()}
        return {
            row[1]: to_breadcrumb(row, self._audiences.of(connection, row[2]))
            for row in connection.execute(sql, values).fetchall()
            if self._audiences.may_see(connection, row[2], by)
        }

    async def read(self, id: str, *, by: Principal) -> View:
        by.require("read")
        view, max_reads = self._engine.read(lambda connection: self._view(connection, id, by))
        if max_reads is not None:
            await self._engine.write(lambda writing: self._count_read(writing, id, by))
        return view

    def _view(self, connection: Sql, id: str, by: Principal) -> tuple[View, int | None]:
        """The breadcrumb with its hints applied, and its limit of reads."""
        *row, newest = self._one(connection, id, by, self._engine.wall(), VIEW_OF_ID, audience=0)
        view, hints = to_view(id, row)
        plan = plan_hints(hints) if hints else None
        if hints is None and view.schema_name is not None:
            plan = self._book.as_of(connection, by.owner_id, newest).rules(view.schema_name).hint_plan
        if plan is not None:
            shown = apply_plan(view.context, plan, title=view.title)
            view = view if shown is view.context else msgspec.structs.replace(view, context=shown)
        return view, row[8]

    def _count_read(self, writing: Writing, id: str, by: Principal) -> None:
        row = self._find_in(writing, id, by)
        writing.execute("UPDATE breadcrumbs SET read_count = read_count + 1 WHERE rid = ?", (row[0],))

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
        check_page(limit)
        check_selector(selector)
        question = (_digest(selector), by.owner_id, by.scopes) if cursor is None else None
        was_empty = question is not None and self._empty.has(question)
        if was_empty and self._empty.knows(question, selector, self._engine.read(read_head)):
            return Page(items=(), cursor=None)
        after = unpack_cursor(cursor) if cursor is not None else None

        def read(connection: Sql) -> Page:
            page = self._list(connection, selector, by, limit, after, oldest_first)
            if question is not None and not page.items:
                self._empty.note(question, read_head(connection))
            return page

        return await self._engine.read_either(read)

    def _list(
        self,
        connection: Sql,
        selector: Selector,
        by: Principal,
        limit: int,
        after: int | None,
        oldest_first: bool,
    ) -> Page:
        visible, now = self._visible(connection, by), self._engine.wall()
        lead = leading_tag(selector, visible)
        where, values = build_where(selector, visible, now, after=after, oldest_first=oldest_first, lead=lead)
        source, rid = (CURRENT, "b.rid") if lead is None else (TAGGED, "t.rid")
        order = f"{rid} {'ASC' if oldest_first else 'DESC'}"
        items: list[Breadcrumb] = []
        room, last = MAX_BYTES, after or 0
        for row in connection.execute(f"{source} WHERE {where} ORDER BY {order} LIMIT {limit + 1}", values):
            if len(items) == limit or room <= 0:
                return Page(items=tuple(items), cursor=pack_cursor(last), end=pack_cursor(last))
            items.append(to_breadcrumb(row, self._audiences.of(connection, row[2])))
            last, room = row[0], room - len(row[6])
        return Page(items=tuple(items), cursor=None, end=pack_cursor(last) if last else None)

    async def history(self, id: str, *, by: Principal) -> Sequence[VersionInfo]:
        by.require("read")
        return self._engine.read(lambda connection: self._history(connection, id, by))

    def _history(self, connection: Sql, id: str, by: Principal) -> Sequence[VersionInfo]:
        row = self._find(connection, id, by)
        older = connection.execute(
            "SELECT version, updated_at, updated_by, checksum FROM versions WHERE rid = ? ORDER BY version",
            (row[0],),
        ).fetchall()
        lines = [*older, (row[3], row[17], row[19], row[15])]
        return [
            VersionInfo(version=version, updated_at=from_micros(at), updated_by=agent, checksum=to_checksum(checksum))
            for version, at, agent, checksum in lines
        ]

    # -- what the caller may see --------------------------------------------------------------------------

    def _visible(self, connection: Sql, by: Principal) -> tuple[int, ...]:
        return self._audiences.visible(connection, by.owner_id, by.scopes)

    def _find(self, connection: Sql, id: str, by: Principal) -> Any:
        return self._one(connection, id, by, self._engine.wall())

    def _find_in(self, writing: Writing, id: str, by: Principal) -> Any:
        return self._one(writing.connection, id, by, writing.wall)

    def _one(
        self, connection: Sql, id: str, by: Principal, now: int, sql: str = CURRENT_OF_ID, *, audience: int = 2
    ) -> Any:
        """The row of a live breadcrumb that the caller may see; `audience` is the place of its audience in the row.
        Raises NotFound."""
        if not id.isascii():
            raise NotFound("breadcrumb", id)
        for row in connection.execute(sql, {"id": id, "now": now}).fetchall():
            if self._audiences.may_see(connection, row[audience], by):
                return row
        raise NotFound("breadcrumb", id)


def _digest(selector: Selector) -> bytes:
    """A short key for a selector. It differs for 1 and true, which are equal in Python."""
    return hashlib.sha256(msgspec.json.encode(selector)).digest()
