"""The plan of a refresh: which documents to read, which nodes they may write, and the new ledger entries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from clew.catalog.indexing.document_nodes import SourcePlace, resource_id
from clew.catalog.indexing.document_reader import Read
from clew.catalog.indexing.source_ledger import DocumentEntry, SourceEntry
from clew.catalog.resource import DocumentListing, Pipeline, RawDocument, Skipped
from clew.trail.model.breadcrumb import Draft


class RefreshPlan:
    """The documents of one source during a refresh. `before` is the ledger entry at the start, `recipe` the digest of
    the current settings that determine nodes. With `reread`, every document is read."""

    def __init__(
        self,
        place: SourcePlace,
        before: SourceEntry,
        entries: Mapping[str, DocumentEntry],
        *,
        recipe: str,
        started: int,
        reread: bool,
    ) -> None:
        self._owner_id = place.owner_id
        self.entries = dict(entries)
        self._former = self._uris()
        self.skipped: list[Skipped] = []
        self.unhandled: Counter[str] = Counter()
        self._before = before
        self._recipe = recipe
        self._started = started
        self._reread = reread
        self._damaged: frozenset[str] = frozenset()
        self._wanted: dict[str, RawDocument] = {}
        self._holders: dict[str, str] = {}

    def choose(self, listing: DocumentListing, pipeline: Pipeline) -> None:
        """Choose the listed documents that some format may read, each id once."""
        self.skipped += listing.skipped
        types = {each.content_type for each in listing.documents}
        handled = {each for each in types if not each or any(format.can_handle(each) for format in pipeline.formats)}
        for document in listing.documents:
            if document.id in self._wanted:
                self.skip(document.id, "it is listed twice; the first counts")
            elif not _is_text(document.id):
                self.skip(repr(document.id)[:200], "its id is not Unicode text")
            elif document.content_type not in handled:
                self.unhandled[document.content_type] += 1
            else:
                self._wanted[document.id] = document

    def distrust(self, actual: Mapping[str, str]) -> None:
        """Mark documents to be read again if their nodes on the trail (`actual`, id → digest) differ from the
        ledger."""
        self._damaged = frozenset(
            entry.document
            for entry in self.entries.values()
            if any(actual.get(self._id_of(uri)) != digest for uri, digest in entry.nodes.items())
        )

    def stale(self) -> list[RawDocument]:
        """The documents that must be read. All other documents keep their addresses, so that these cannot claim
        them."""
        found = []
        for id, document in self._wanted.items():
            entry = self.entries.get(id)
            if entry is None or not document.version or document.version != entry.version or self._is_void(entry):
                found.append(document)
            else:
                self._holders |= dict.fromkeys(entry.nodes, id)
        return found

    def known_hash(self, document: str) -> str:
        """The content hash from the last run; content with this hash need not be parsed again. Empty if there is none
        to rely on."""
        entry = self.entries.get(document)
        return "" if entry is None or self._is_void(entry) else entry.hash

    def claim(self, read: Read) -> dict[str, Draft]:
        """Claim the addresses of a document that no other document has claimed, and return their drafts. A document
        that was not parsed again keeps its addresses."""
        id = read.document.id
        if read.indexed is None:
            entry = self.entries.get(id)
            for uri in entry.nodes if entry is not None else ():
                self._holders.setdefault(uri, id)
            return {}
        self.skipped += read.indexed.skipped
        claimed = {}
        for uri, draft in read.indexed.drafts.items():
            if self._holders.setdefault(uri, id) == id:
                claimed[uri] = draft
            else:
                self.skip(id, f"{uri} belongs to {self._holders[uri]!r}, which came first")
        return claimed

    def settle(self, read: Read, nodes: Mapping[str, str], now_ms: int) -> DocumentEntry | None:
        """The ledger entry of a document whose nodes (uri → digest) were written; None if there is nothing to
        change."""
        id = read.document.id
        if read.unhandled:
            self.unhandled[read.unhandled] += 1
            del self._wanted[id]
            return None
        known = self.entries.get(id)
        entry = self._failed(read, known) if read.failure else self._good(read, known, nodes, now_ms)
        if known is not None and msgspec.structs.replace(entry, indexed_at=known.indexed_at) == known:
            return None
        self.entries[id] = entry
        return entry

    def forget_vanished(self) -> list[str]:
        """Remove the entries of documents that are no longer wanted. Returns their ids."""
        gone = [id for id in self.entries if id not in self._wanted]
        for id in gone:
            del self.entries[id]
        return gone

    def nodes(self) -> set[str]:
        """The ids of the nodes of all documents in the ledger. Slow for many nodes, since each id is a digest."""
        return set(map(self._id_of, self._uris()))

    def known(self, drafts: Iterable[Draft]) -> set[str]:
        """The ids of the drafts whose nodes were in the ledger at the start."""
        return {str(draft.id) for draft in drafts if draft.context["uri"] in self._former}

    def vanished(self) -> set[str]:
        """The ids of the nodes that were in the ledger at the start and no longer are."""
        return set(map(self._id_of, self._former - self._uris()))

    def failing(self) -> list[DocumentEntry]:
        return [entry for entry in self.entries.values() if entry.failure]

    def oldest(self) -> int:
        """The earliest verification time among all documents; 0 if one was never verified."""
        return min((self._started, *(entry.verified_at or 0 for entry in self.failing())))

    def skip(self, document: str, *reasons: str) -> None:
        self.skipped += (Skipped(document=document, reason=reason) for reason in reasons)

    def _uris(self) -> set[str]:
        return {uri for entry in self.entries.values() for uri in entry.nodes}

    def _id_of(self, uri: str) -> str:
        return resource_id(self._owner_id, uri)

    def _is_void(self, entry: DocumentEntry) -> bool:
        """Whether to ignore the version and hash that the ledger records for the document."""
        return self._reread or entry.recipe != self._recipe or entry.document in self._damaged

    def _good(self, read: Read, known: DocumentEntry | None, nodes: Mapping[str, str], now_ms: int) -> DocumentEntry:
        document = read.document
        if read.indexed is None and known is not None:
            return msgspec.structs.replace(known, name=document.name, version=document.version)
        # if the address of a node was taken, the document is checked at each refresh: it may be free by then
        is_contested = read.indexed is not None and len(nodes) < len(read.indexed.drafts)
        return DocumentEntry(
            document=document.id,
            name=document.name,
            version="" if is_contested else document.version,
            hash="" if is_contested else read.hash,
            recipe=self._recipe,
            nodes=dict(nodes),
            order=[uri for uri in (read.indexed.drafts if read.indexed is not None else ()) if uri in nodes],
            indexed_at=now_ms,
        )

    def _failed(self, read: Read, known: DocumentEntry | None) -> DocumentEntry:
        self.skip(read.document.id, read.failure)
        entry = known or DocumentEntry(document=read.document.id, name=read.document.name)
        verified_at = self._last_verified(known, read)
        return msgspec.structs.replace(entry, version="", hash="", failure=read.failure, verified_at=verified_at)

    def _last_verified(self, known: DocumentEntry | None, read: Read) -> int | None:
        """The time when a document that now fails was last known to be correct; None if never. A document that was
        fetched but could never be parsed counts as verified now, so that its source does not look outdated."""
        if known is None or (known.failure and known.verified_at is None):
            return self._started if read.was_fetched else None
        return known.verified_at if known.failure else max(self._before.verified_at, known.indexed_at)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
