"""Write the resources of a source to the trail: new ones in bulk, others only if they differ."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Sequence

import msgspec

from clew.access import Principal
from clew.catalog.indexing.document_nodes import SourcePlace, node_digest, scope_fields
from clew.catalog.indexing.resource_queries import select_resources
from clew.errors import AlreadyExists, Conflict, InvalidInput, NotFound
from clew.trail.bulk import AT_ONCE, drop_records, each_record
from clew.trail.mirror import batches, change_to
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft, Update
from clew.trail.store import Trail

ATTEMPTS = 5


class WriteOutcome(msgspec.Struct, kw_only=True):
    """The number of drafts that were written, and the errors of the others by uri."""

    written: int = 0
    refused: dict[str, str] = {}


class ResourceWriter:
    """The resources of one source on the trail. `others` are the domain's other sources, whose resources are never
    overwritten. Resources of any further source are leftovers and may be taken over."""

    def __init__(self, trail: Trail, place: SourcePlace, *, others: Collection[str], by: Principal) -> None:
        self._trail = trail
        self._place = place
        self._others = others
        self._by = by

    async def present(self) -> AsyncIterator[Breadcrumb]:
        """Every resource of the source on the trail, whether or not the ledger lists it."""
        selector = select_resources(domain=self._place.domain, source_id=self._place.source_id)
        async for each in each_record(self._trail, selector, by=self._by):
            yield each

    async def write(self, drafts: Sequence[Draft], *, known: Collection[str], rewrite: bool = False) -> WriteOutcome:
        """Write these drafts to the trail. `known` are the ids that exist already according to the ledger. Equal
        records are not written unless `rewrite` is set."""
        outcome = WriteOutcome()
        new = [draft for draft in drafts if draft.id not in known]
        doubtful = [draft for draft in drafts if draft.id in known]
        for some in batches(new):
            try:
                await self._trail.records.create_many(some, by=self._by)
                outcome.written += len(some)
            except (AlreadyExists, InvalidInput):
                # one bad draft fails the whole batch, so each is tried alone
                doubtful += some
        for some in batches(doubtful):
            await self._replace_all(some, rewrite, outcome)
        return outcome

    async def rescope(self) -> int:
        """Set the scopes of every resource of the source to the effective scopes. Returns the number of changed
        resources."""
        scopes = self._place.scopes
        wrong = [
            Update(
                id=each.id,
                change=Change(scopes=scopes, context=each.context | scope_fields(scopes)),
                expect=each.version,
            )
            async for each in self.present()
            if each.scopes != scopes
        ]
        for some in batches(wrong):
            await self._trail.records.update_many(some, by=self._by)
        return len(wrong)

    async def drop(self, ids: Iterable[str]) -> int:
        """Delete these resources, ignoring those that are already gone. Returns the number of deleted ones."""
        return await drop_records(self._trail, ids, by=self._by)

    async def _replace_all(self, drafts: Sequence[Draft], rewrite: bool, outcome: WriteOutcome) -> None:
        """Write all differing drafts in one batch. If one of them makes the batch fail, write each by itself."""
        alone: list[Draft] = []
        together: list[Draft] = []
        updates: list[Update] = []
        for draft in drafts:
            found = await self._find(draft)
            if found is None or self._is_foreign(found):
                alone.append(draft)
            elif rewrite or _differs(found, draft):
                together.append(draft)
                updates.append(Update(id=found.id, change=change_to(draft), expect=found.version))
        try:
            await self._trail.records.update_many(updates, by=self._by)
            outcome.written += len(updates)
        except (Conflict, NotFound, InvalidInput):
            alone += together
        for some in batches(alone, AT_ONCE):
            await asyncio.gather(*(self._replace(draft, rewrite, outcome) for draft in some))

    async def _replace(self, draft: Draft, rewrite: bool, outcome: WriteOutcome) -> None:
        uri = draft.context["uri"]
        try:
            is_written = await self._put(draft, rewrite)
            outcome.written += is_written
        except AlreadyExists:
            outcome.refused[uri] = f"{uri} is taken by a record of another source"
        except InvalidInput as error:
            outcome.refused[uri] = f"{uri} cannot be stored: {error.message}"

    async def _put(self, draft: Draft, rewrite: bool) -> bool:
        """Write one draft if it differs; return whether it was written. Raises AlreadyExists if its address belongs to
        another source."""
        for _ in range(ATTEMPTS):
            found = await self._find(draft)
            if found is None:
                await self._trail.records.create(draft, by=self._by)
                return True
            if self._is_foreign(found):
                raise AlreadyExists("resource", draft.context["uri"])
            if not rewrite and not _differs(found, draft):
                return False
            try:
                await self._trail.records.update(found.id, change_to(draft), expect=found.version, by=self._by)
                return True
            except Conflict:
                continue
        raise AlreadyExists("resource", draft.context["uri"])

    async def _find(self, draft: Draft) -> Breadcrumb | None:
        try:
            return await self._trail.records.get(str(draft.id), by=self._by)
        except NotFound:
            return None

    def _is_foreign(self, found: Breadcrumb) -> bool:
        return found.context.get("source_id") in self._others


def _differs(found: Breadcrumb, draft: Draft) -> bool:
    return found.scopes != tuple(draft.scopes) or node_digest(found) != node_digest(draft)
