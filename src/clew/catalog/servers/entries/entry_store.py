"""The entries of all servers on the trail, with a copy in memory. Only changed entries are written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from clew.access import Principal
from clew.catalog.operations.text import one_line
from clew.catalog.servers.entries.entries import (
    KINDS,
    SCHEMAS,
    SERVER_SCHEMA,
    Kind,
    ServerAbout,
    ServerEntry,
    about_draft,
    build_entry,
    change_of,
    draft_of,
    entry_id,
    entry_of,
    kept_text,
)
from clew.catalog.servers.entries.listing_cleanup import MAX_ENTRIES
from clew.catalog.servers.entries.schemas import compiled
from clew.errors import AlreadyExists, Conflict, InvalidInput, NotFound
from clew.trail.bulk import each_record
from clew.trail.model.breadcrumb import Breadcrumb, Change
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

Key = tuple[str, Kind, str]


class Synced(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of a listing: names of entries, and messages about those that were left out."""

    added: Sequence[str] = ()
    changed: Sequence[str] = ()
    removed: Sequence[str] = ()
    left_out: Sequence[str] = ()

    def with_more(self, other: Synced) -> Synced:
        return Synced(
            added=(*self.added, *other.added),
            changed=(*self.changed, *other.changed),
            removed=(*self.removed, *other.removed),
            left_out=(*self.left_out, *other.left_out),
        )


class EntryStore:
    """Reads from memory, writes to the trail first. `by` must hold every scope that servers ask for."""

    def __init__(self, trail: Trail, by: Principal) -> None:
        self._trail = trail
        self._by = by
        self._about: dict[str, ServerAbout] = {}
        self._entries: dict[Key, tuple[ServerEntry, int]] = {}
        self._by_id: dict[str, ServerEntry] = {}

    def widen(self, scopes: Iterable[str]) -> None:
        """Add scopes to the store's principal, so that it can read and write entries that require them."""
        self._by = msgspec.structs.replace(self._by, scopes=self._by.scopes | frozenset(scopes))

    def about(self, server: str) -> ServerAbout | None:
        """The server's description of itself from its last listing; None before the first."""
        return self._about.get(server)

    def find(self, server: str, kind: Kind, name: str) -> ServerEntry | None:
        found = self._entries.get((server, kind, name))
        return found[0] if found is not None else None

    def find_id(self, id: str) -> ServerEntry | None:
        return self._by_id.get(id)

    def of(self, server: str, kind: Kind | None = None) -> list[ServerEntry]:
        """The entries of a server that it has at present, in the order in which they were first seen."""
        return [
            entry
            for entry, _ in self._entries.values()
            if entry.server == server and kind in (None, entry.kind) and entry.state != "gone"
        ]

    async def load(self, server: str) -> None:
        """Load all entries of a server from the trail at once, so that no caller sees half of them."""
        schemas = (*SCHEMAS.values(), SERVER_SCHEMA)
        selector = Selector(schema_names=schemas, all_tags=(f"server:{server}",))
        found = [each async for each in each_record(self._trail, selector, by=self._by)]
        self._forget(server)
        self._keep(found)

    async def sync(
        self,
        server: str,
        kind: Kind,
        listed: Iterable[dict[str, Any]],
        scopes: tuple[str, ...],
        *,
        is_whole: bool = True,
    ) -> Synced:
        """Update the trail from a server's listing. `is_whole` says that the listing contains all entries of this kind.
        A tool that differs from its approved version is flagged and stays unchanged. A tool that is no longer listed is
        kept as gone, so that it cannot come back in another form unnoticed.
        """
        left_out: list[str] = []
        fresh = self._build(server, kind, listed, left_out)
        known = {
            entry.name: entry for entry, _ in self._entries.values() if (entry.server, entry.kind) == (server, kind)
        }
        new = [entry for name, entry in fresh.items() if name not in known]
        if len(known) + len(new) > 2 * MAX_ENTRIES:
            left_out.append(f"{len(new):,} new {kind}s: it had too many others before")
            new = []
        changes = [turn for name, entry in fresh.items() if name in known and (turn := _turn(known[name], entry))]
        here = [entry for entry in known.values() if entry.state != "gone"]
        missing = [entry for entry in here if entry.name not in fresh] if is_whole else []
        await self._create(new, scopes)
        for entry in changes:
            await self._update(entry, scopes)
        for entry in missing:
            await self._retire(entry, scopes)
        return Synced(
            added=[entry.name for entry in new],
            changed=[entry.name for entry in changes],
            removed=[entry.name for entry in missing],
            left_out=left_out,
        )

    async def save_about(self, server: str, about: ServerAbout, scopes: tuple[str, ...]) -> bool:
        """Store a server's description of itself. Returns whether it was new."""
        if self._about.get(server) == about:
            return False
        draft = about_draft(about, server, self._by.owner_id, scopes)
        try:
            known = await self._trail.records.get(str(draft.id), by=self._by)
            change = Change(context=draft.context, scopes=draft.scopes)
            await self._trail.records.update(known.id, change, expect=known.version, by=self._by)
        except NotFound:
            with suppress(AlreadyExists):  # another process was quicker
                await self._trail.records.create(draft, by=self._by)
        except Conflict:  # another process wrote it first; use that version
            return False
        self._about[server] = about
        return True

    async def known_servers(self) -> set[str]:
        """The servers that the trail has entries of."""
        page = await self._trail.records.list(Selector(schema_name=SERVER_SCHEMA), by=self._by, limit=1_000)
        return {str(item.context.get("server")) for item in page.items}

    async def approve(self, entry: ServerEntry, scopes: tuple[str, ...]) -> ServerEntry:
        """Approve the pending version of an entry, and return the entry."""
        if entry.pending is None:
            return entry
        fresh = build_entry(entry.server, entry.kind, entry.pending)
        approved = msgspec.structs.replace(fresh, digest=entry.digest, approved=entry.digest)
        await self._update(approved, scopes)
        return approved

    async def remove(self, server: str) -> None:
        """Delete all entries of a server."""
        await self.load(server)
        for (owner, _, _), (entry, _) in list(self._entries.items()):
            if owner == server:
                await self._delete(entry)
        with suppress(NotFound):
            await self._trail.records.delete(entry_id(self._by.owner_id, server, "server", server), by=self._by)
        self._about.pop(server, None)

    def _build(
        self, server: str, kind: Kind, listed: Iterable[dict[str, Any]], left_out: list[str]
    ) -> dict[str, ServerEntry]:
        fresh: dict[str, ServerEntry] = {}
        for given in listed:
            try:
                entry = build_entry(server, kind, given)
                known = self.find(server, kind, entry.name)
                if kind == "tool" and (known is None or known.digest != entry.digest):
                    compiled(entry.schema)
            except InvalidInput as error:
                name = one_line(kept_text(str(given.get("name", ""))), 80)
                left_out.append(f"{kind} {name}: {one_line(str(error.message), 200)}")
                continue
            fresh.setdefault(entry.name, entry)
        return fresh

    async def _create(self, entries: list[ServerEntry], scopes: tuple[str, ...]) -> None:
        drafts = [draft_of(entry, self._by.owner_id, scopes) for entry in entries]
        for start in range(0, len(drafts), 500):
            try:
                self._keep(await self._trail.records.create_many(drafts[start : start + 500], by=self._by))
            except AlreadyExists:  # another process has written some of them
                for draft in drafts[start : start + 500]:
                    try:
                        self._keep([await self._trail.records.create(draft, by=self._by)])
                    except AlreadyExists:
                        self._keep([await self._trail.records.get(str(draft.id), by=self._by)])

    async def _update(self, entry: ServerEntry, scopes: tuple[str, ...]) -> None:
        id, change = entry.id_for(self._by.owner_id), change_of(entry, scopes)
        _, version = self._entries[(entry.server, entry.kind, entry.name)]
        try:
            self._keep([await self._trail.records.update(id, change, expect=version, by=self._by)])
        except Conflict:  # another process wrote it first; use that version
            self._keep([await self._trail.records.get(id, by=self._by)])

    async def _retire(self, entry: ServerEntry, scopes: tuple[str, ...]) -> None:
        if entry.kind == "tool":
            await self._update(msgspec.structs.replace(entry, state="gone"), scopes)
        else:
            await self._delete(entry)

    async def _delete(self, entry: ServerEntry) -> None:
        id = entry.id_for(self._by.owner_id)
        with suppress(NotFound):  # another process was quicker
            await self._trail.records.delete(id, by=self._by)
        del self._entries[(entry.server, entry.kind, entry.name)]
        self._by_id.pop(id, None)

    def _keep(self, breadcrumbs: Iterable[Breadcrumb]) -> None:
        for breadcrumb in breadcrumbs:
            if breadcrumb.schema_name == SERVER_SCHEMA:
                self._about[str(breadcrumb.context.get("server"))] = msgspec.convert(breadcrumb.context, ServerAbout)
            elif (entry := entry_of(breadcrumb)) is not None and entry.kind in KINDS:
                self._entries[(entry.server, entry.kind, entry.name)] = (entry, breadcrumb.version)
                self._by_id[breadcrumb.id] = entry

    def _forget(self, server: str) -> None:
        self._about.pop(server, None)
        for key in [key for key in self._entries if key[0] == server]:
            entry, _ = self._entries.pop(key)
            self._by_id.pop(entry.id_for(self._by.owner_id), None)


def _turn(known: ServerEntry, listed: ServerEntry) -> ServerEntry | None:
    """The new state of an entry that is listed again; None if nothing changes."""
    if known.kind != "tool" or listed.digest == known.approved:
        return listed if listed != known else None
    if listed.digest == known.digest and known.state == "changed":
        return None
    now = {
        "name": listed.name,
        "title": listed.title,
        "description": listed.description,
        "inputSchema": listed.schema,
        "outputSchema": listed.output_schema,
        "annotations": listed.annotations,
    }
    return msgspec.structs.replace(known, digest=listed.digest, state="changed", pending=now)
