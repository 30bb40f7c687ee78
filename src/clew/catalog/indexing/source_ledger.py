"""The ledger of one source: which documents were indexed from which version, and how the last refresh ended. Its
entries are breadcrumbs that only the catalog's own principal sees. A refresh holds a lease on the ledger, so that two
processes never refresh a source at once and a killed refresh is noticed by the next.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from uuid import UUID, uuid5

import msgspec

from clew.access import Principal
from clew.catalog.indexing.document_nodes import SourcePlace, document_tag, source_tag
from clew.clock import Clock
from clew.errors import AlreadyExists, ClewError, Conflict, NotFound, SourceError
from clew.trail.bulk import drop_records, each_record
from clew.trail.model.breadcrumb import MAX_TITLE, NEVER, Change, Draft, Update
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

KEEPER = "catalog:keeper"
"""The scope that reading and writing a ledger requires."""
SOURCE_SCHEMA, DOCUMENT_SCHEMA = "source.v1", "document.v1"
LEASE_MS = 30_000
_NAMESPACE = UUID("5be8f9c4-19a1-5b7e-8b32-0f6f3f1e6a77")


class DocumentEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A document as it was last indexed. If `version` and `hash` are empty, the next refresh reads the document again.
    `failure` says why it could not be refreshed since `verified_at`, which is None if it was never verified."""

    document: str
    name: str
    version: str = ""
    hash: str = ""
    recipe: str = ""
    nodes: dict[str, str] = {}
    """From the uri of each node to its digest."""
    order: Sequence[str] = ()
    """The uris in document order."""
    indexed_at: int = 0
    failure: str = ""
    verified_at: int | None = None


class SourceEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A source as the last refresh left it. Times are epoch milliseconds."""

    domain: str
    source_id: str
    recipe: str = ""
    """The digest of the settings, other than the documents, that determine its resources."""
    scopes: Sequence[str] = ()
    """All scopes that any resource of the source may require."""
    documents: int = 0
    nodes: int = 0
    failed: int = 0
    verified_at: int = 0
    oldest: int = 0
    """The earliest verification time among its documents; 0 if one was never verified."""
    error: str = ""
    is_whole: bool = False
    """Whether the last refresh that wrote anything was completed."""
    holder: str = ""
    held_until: int = 0


def keeper(by: Principal, scopes: Iterable[str] = ()) -> Principal:
    """The caller with the added scope to read and write ledgers, and with these scopes."""
    return msgspec.structs.replace(by, scopes=by.scopes | {KEEPER, *scopes})


def now_ms(clock: Clock) -> int:
    return int(clock.now().timestamp() * 1_000)


async def read_sources(trail: Trail, *, by: Principal) -> list[SourceEntry]:
    """The ledger entries of all the owner's sources, oldest first."""
    found = each_record(trail, Selector(schema_name=SOURCE_SCHEMA), by=keeper(by))
    return [msgspec.convert(each.context, SourceEntry) async for each in found]


async def find_document(trail: Trail, tag: str, *, by: Principal) -> DocumentEntry | None:
    """The ledger entry of the document whose resources have this tag; None if there is none."""
    selector = Selector(schema_name=DOCUMENT_SCHEMA, all_tags=(tag,))
    page = await trail.records.list(selector, by=keeper(by), limit=1)
    return msgspec.convert(page.items[0].context, DocumentEntry) if page.items else None


class SourceLedger:
    """The ledger of one source of one domain."""

    def __init__(
        self, trail: Trail, place: SourcePlace, *, by: Principal, clock: Clock, lease_ms: int = LEASE_MS
    ) -> None:
        self._trail = trail
        self._place = place
        self._by = keeper(by)
        self._clock = clock
        self._lease_ms = lease_ms
        self._holder = clock.new_id()
        self._id = self._id_of("source", place.source_id)
        self._version = 0
        self._entry = SourceEntry(domain=place.domain, source_id=place.source_id)
        self._versions: dict[str, int] = {}
        self._writing = asyncio.Lock()
        self._is_lost = False

    @property
    def entry(self) -> SourceEntry:
        return self._entry

    async def find(self) -> SourceEntry | None:
        """The current entry of the source; None before its first refresh."""
        try:
            found = await self._trail.records.get(self._id, by=self._by)
        except NotFound:
            return None
        self._version = found.version
        return msgspec.convert(found.context, SourceEntry)

    # -- holding ------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def hold(self, patience_ms: int) -> AsyncIterator[SourceEntry]:
        """Hold the lease while the block runs, so that no other process refreshes the source. Yields the entry that the
        last refresh left; its `is_whole` says whether that refresh was completed. Raises SourceError if another process
        keeps the lease for longer than `patience_ms`."""
        before = await self._take(patience_ms)
        renewing = asyncio.create_task(self._renew_for_ever())
        try:
            yield before
        finally:
            renewing.cancel()
            with contextlib.suppress(asyncio.CancelledError, ClewError):
                await renewing
            if self._entry.holder:
                with contextlib.suppress(ClewError):
                    await self.write(msgspec.structs.replace(self._entry, holder="", held_until=0))

    async def _take(self, patience_ms: int) -> SourceEntry:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience_ms / 1_000
        longest = max(LEASE_MS, self._lease_ms)
        silent: dict[int, float] = {}  # since when the book was seen in this version
        while True:
            head = await self._trail.log.head()
            found = await self.find() or self._entry
            left = found.held_until - now_ms(self._clock) if found.holder else 0
            if left > longest:
                # no lease is that long: the clock was set back. A living holder would have renewed its lease before
                # that
                left = longest - int(1_000 * (loop.time() - silent.setdefault(self._version, loop.time())))
            if left <= 0 and await self._try_to_take(found):
                return found
            if loop.time() >= deadline:
                hint = "Wait for it to finish, then try again"
                raise SourceError(self._place.source_id, "is being refreshed by another process", hint=hint)
            if left > 0:
                await self._trail.log.wait(head, min(left / 1_000, deadline - loop.time()))

    async def _try_to_take(self, found: SourceEntry) -> bool:
        scopes = sorted({*found.scopes, *self._place.scopes})
        until = now_ms(self._clock) + self._lease_ms
        taken = msgspec.structs.replace(
            found, scopes=scopes, holder=self._holder, held_until=until, is_whole=False, error=""
        )
        try:
            await self.write(taken)
        except (Conflict, AlreadyExists):
            return False
        return True

    async def _renew_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._lease_ms / 3_000)
            until = now_ms(self._clock) + self._lease_ms
            try:
                await self.write(msgspec.structs.replace(self._entry, held_until=until))
            except (Conflict, NotFound):
                self._is_lost = True
                return

    def check_held(self) -> None:
        """Raise SourceError if the lease expired or was lost, so that another process may hold it by now."""
        if self._is_lost or now_ms(self._clock) >= self._entry.held_until:
            raise SourceError(
                self._place.source_id, "made no progress for too long during its refresh", hint="Try again"
            )

    async def write(self, entry: SourceEntry) -> None:
        """Write the source's entry. Raises Conflict if another process has written it since it was read."""
        async with self._writing:
            context = msgspec.to_builtins(entry)
            if self._version:
                change = Change(context=context)
                kept = await self._trail.records.update(self._id, change, expect=self._version, by=self._by)
            else:
                draft = self._draft(self._id, SOURCE_SCHEMA, f"Source {entry.source_id}", context)
                kept = await self._trail.records.create(draft, by=self._by)
            self._version, self._entry = kept.version, entry

    # -- documents ----------------------------------------------------------------------------------------

    async def documents(self) -> dict[str, DocumentEntry]:
        """The ledger's document entries by document id."""
        tags = (f"domain:{self._place.domain}", source_tag(self._place.source_id))
        entries = {}
        async for each in each_record(self._trail, Selector(schema_name=DOCUMENT_SCHEMA, all_tags=tags), by=self._by):
            entry = msgspec.convert(each.context, DocumentEntry)
            entries[entry.document] = entry
            self._versions[entry.document] = each.version
        return entries

    async def put(self, entries: Sequence[DocumentEntry]) -> None:
        """Create or update the entries of these documents."""
        before = frozenset(self._versions)
        new = [entry for entry in entries if entry.document not in before]
        if new:
            await self._trail.records.create_many([self._document_draft(entry) for entry in new], by=self._by)
            self._versions |= {entry.document: 1 for entry in new}
        known = [entry for entry in entries if entry.document in before]
        await self._trail.records.update_many([self._update(entry) for entry in known], by=self._by)
        self._versions |= {entry.document: self._versions[entry.document] + 1 for entry in known}

    def _update(self, entry: DocumentEntry) -> Update:
        draft = self._document_draft(entry)
        change = Change(title=draft.title, context=draft.context, embed="never")
        return Update(id=str(draft.id), change=change, expect=self._versions[entry.document])

    async def forget(self, documents: Iterable[str]) -> None:
        """Delete the entries of these documents."""
        ids = [self._id_of("document", document) for document in documents]
        await drop_records(self._trail, ids, by=self._by)

    async def close_for_good(self) -> None:
        """Delete the ledger of a source that is no longer wanted."""
        await self.forget(await self.documents())
        await drop_records(self._trail, [self._id], by=self._by)

    def _document_draft(self, entry: DocumentEntry) -> Draft:
        place = self._place
        context = {"domain": place.domain, "source_id": place.source_id, **msgspec.to_builtins(entry)}
        id, tag = self._id_of("document", entry.document), document_tag(place, entry.document)
        return self._draft(id, DOCUMENT_SCHEMA, f"Document {entry.name}", context, tag)

    def _draft(self, id: str, schema_name: str, title: str, context: dict[str, object], *tags: str) -> Draft:
        return Draft(
            id=id,
            schema_name=schema_name,
            title=title.encode("utf-8", "replace").decode().replace("\x00", "")[:MAX_TITLE],
            context=context,
            tags=(f"domain:{self._place.domain}", source_tag(self._place.source_id), *tags),
            scopes=(KEEPER,),
            ttl=NEVER,
            embed="never",
        )

    def _id_of(self, kind: str, name: str) -> str:
        place = self._place
        return str(uuid5(_NAMESPACE, "\n".join((place.owner_id, kind, place.domain, place.source_id, name))))
