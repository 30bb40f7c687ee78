"""Refreshing one source: list, fetch changed documents, write them, and only then remove deleted ones.

A refresh may be killed at any point. The ledger then marks it as unfinished, and the next run first compares the trail
with the ledger.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from clew.access import Principal
from clew.catalog.domain import Domain
from clew.catalog.indexing.document_nodes import SourcePlace, node_digest, place_of
from clew.catalog.indexing.document_reader import Read, explain, read_document
from clew.catalog.indexing.freshness import recipe_of
from clew.catalog.indexing.refresh_plan import RefreshPlan
from clew.catalog.indexing.resource_writer import ResourceWriter
from clew.catalog.indexing.source_ledger import LEASE_MS, SourceEntry, SourceLedger, keeper, now_ms
from clew.catalog.resource import DocumentListing, Pipeline, RawDocument, Skipped
from clew.clock import Clock
from clew.errors import ClewError, SourceError
from clew.trail.store import Trail

Progress = Callable[[int, int, str], None]
"""Called with the number of finished documents, the total, and the name of the last document."""
Outcome = Literal["refreshed", "fresh", "failed", "dropped"]

FETCHES = 8
WINDOW = 100
"""The maximum number of documents that are held in memory before they are written."""
MANY = 10
"""If a source had at least this many documents and now lists none, the refresh fails and keeps them, unless `force` is
set."""


class RefreshPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How to refresh. `ignore_cache` fetches and writes everything again. `force` accepts a source that is suddenly
    empty. `patience_ms` limits the wait for another process that is refreshing the source."""

    ignore_cache: bool = False
    force: bool = False
    patience_ms: int = 2 * LEASE_MS
    lease_ms: int = LEASE_MS


INCREMENTAL = RefreshPolicy()


class Report(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of a refresh. `documents` and `nodes` count the present content of the source. `unhandled` counts
    documents by content types that no format reads. `reason` says why the source was fresh or dropped, `error` why the
    refresh failed."""

    domain: str
    source_id: str
    outcome: Outcome
    documents: int = 0
    nodes: int = 0
    unchanged: int = 0
    changed: int = 0
    removed: int = 0
    nodes_written: int = 0
    nodes_removed: int = 0
    failed: int = 0
    skipped: Sequence[Skipped] = ()
    unhandled: Mapping[str, int] = {}
    reason: str = ""
    error: str = ""


async def run_pipeline(
    trail: Trail,
    domain: Domain,
    pipeline: Pipeline,
    *,
    by: Principal,
    clock: Clock,
    report: Progress | None = None,
    policy: RefreshPolicy = INCREMENTAL,
) -> Report:
    """Bring the resources of one source up to date. Nothing is dropped before its replacement is on the trail: if a
    document fails, its nodes stay, and if listing fails, everything stays. Errors of the source or a format are
    reported and not raised. Errors of the trail are raised."""
    place = place_of(domain, pipeline, by.owner_id)
    ledger = SourceLedger(trail, place, by=by, clock=clock, lease_ms=policy.lease_ms)
    try:
        async with ledger.hold(policy.patience_ms) as before:
            others = {each.source.id for each in domain.extractors} - {place.source_id}
            swap = ResourceWriter(trail, place, others=others, by=keeper(by, ledger.entry.scopes))
            return await _PipelineRun(pipeline, place, ledger, swap, before, clock, policy).refresh(report)
    except SourceError as error:
        return Report(domain=place.domain, source_id=place.source_id, outcome="failed", error=str(error))


class _PipelineRun:
    """One refresh, from the list to the last removal. `before` is the source's ledger entry at the start."""

    def __init__(
        self,
        pipeline: Pipeline,
        place: SourcePlace,
        ledger: SourceLedger,
        swap: ResourceWriter,
        before: SourceEntry,
        clock: Clock,
        policy: RefreshPolicy,
    ) -> None:
        self._pipeline = pipeline
        self._place = place
        self._ledger = ledger
        self._writer = swap
        self._before = before
        self._clock = clock
        self._policy = policy
        self._recipe = recipe_of(pipeline)
        self._started = now_ms(clock)
        self._has_written = False
        self._changed = self._nodes_written = 0

    async def refresh(self, report: Progress | None) -> Report:
        scopes = self._ledger.entry.scopes
        try:
            scopes = await self._apply_scopes()
            listing = await self._list()
            plan = await self._plan(listing)
            present = await self._compare_with_trail(plan)
            await self._index(plan, present, report or _say_nothing)
            gone, dropped = await self._remove_vanished(plan, present)
            return await self._close(plan, gone, dropped)
        except ClewError as error:
            with contextlib.suppress(ClewError):
                await self._give_up(str(error), scopes)
            raise

    async def _apply_scopes(self) -> Sequence[str]:
        """Apply the scopes of the present configuration, even if the source cannot be reached."""
        if tuple(self._before.scopes) != self._place.scopes or not self._before.is_whole:
            await self._writer.rescope()
        return self._place.scopes

    async def _list(self) -> DocumentListing:
        try:
            return await self._pipeline.source.list_documents()
        except SourceError:
            raise
        except Exception as error:  # the boundary of a task: the source may be anybody's code
            raise SourceError(self._place.source_id, explain(error)) from error

    async def _plan(self, listing: DocumentListing) -> RefreshPlan:
        """Plan the refresh of the listed documents. Raises SourceError if the source had many documents and now lists
        none, unless `force` is set."""
        entries = await self._ledger.documents()
        had = sum(1 for entry in entries.values() if entry.nodes)
        if not listing.documents and had >= MANY and not self._policy.force:
            reason = f"lists no documents, and had {had:,}; they are kept"
            raise SourceError(self._place.source_id, reason, hint="If it is really empty now, refresh it with force")
        reread = self._policy.ignore_cache
        plan = RefreshPlan(
            self._place, self._before, entries, recipe=self._recipe, started=self._started, reread=reread
        )
        plan.choose(listing, self._pipeline)
        return plan

    async def _compare_with_trail(self, plan: RefreshPlan) -> set[str]:
        """The ids of the nodes on the trail if the ledger cannot be trusted, as after an interrupted run; otherwise
        empty. Documents whose nodes differ from the ledger are read again."""
        if self._before.is_whole and not self._policy.ignore_cache:
            return set()
        actual = {each.id: node_digest(each) async for each in self._writer.present()}
        plan.distrust(actual)
        return set(actual)

    async def _index(self, plan: RefreshPlan, present: set[str], report: Progress) -> None:
        stale = plan.stale()
        room, done = asyncio.Semaphore(FETCHES), itertools.count(1)

        async def read(document: RawDocument) -> Read:
            async with room:
                known_hash, now = plan.known_hash(document.id), now_ms(self._clock)
                found = await read_document(self._pipeline, self._place, document, known_hash=known_hash, now_ms=now)
            report(next(done), len(stale), document.name)
            return found

        for start in range(0, len(stale), WINDOW):
            reads = await asyncio.gather(*(read(document) for document in stale[start : start + WINDOW]))
            self._ledger.check_held()
            await self._write(plan, reads, present)

    async def _write(self, plan: RefreshPlan, reads: Sequence[Read], present: set[str]) -> None:
        """Write the nodes, then the ledger entries of their documents."""
        self._has_written = True
        claims = [plan.claim(read) for read in reads]
        drafts = [draft for claim in claims for draft in claim.values()]
        known = present | plan.known(drafts)
        swapped = await self._writer.write(drafts, known=known, rewrite=self._policy.ignore_cache)
        entries = []
        for read, claim in zip(reads, claims, strict=True):
            plan.skip(read.document.id, *(swapped.refused[uri] for uri in claim if uri in swapped.refused))
            nodes = {uri: node_digest(draft) for uri, draft in claim.items() if uri not in swapped.refused}
            entries.append(plan.settle(read, nodes, now_ms(self._clock)))
        await self._ledger.put([entry for entry in entries if entry is not None])
        self._nodes_written += swapped.written
        self._changed += sum(read.indexed is not None for read in reads)

    async def _remove_vanished(self, plan: RefreshPlan, present: set[str]) -> tuple[int, int]:
        """Remove vanished documents, and nodes that no longer belong to any document. Returns the number of documents
        and of nodes."""
        gone = plan.forget_vanished()
        vanished = sorted(plan.vanished() | (present - plan.nodes() if present else set()))
        if not gone and not vanished:
            return 0, 0
        self._ledger.check_held()
        self._has_written = True
        dropped = await self._writer.drop(vanished)
        await self._ledger.forget(gone)
        return len(gone), dropped

    async def _close(self, plan: RefreshPlan, gone: int, dropped: int) -> Report:
        entry = SourceEntry(
            domain=self._place.domain,
            source_id=self._place.source_id,
            recipe=self._recipe,
            scopes=self._place.scopes,
            documents=len(plan.entries),
            nodes=sum(len(each.nodes) for each in plan.entries.values()),
            failed=len(plan.failing()),
            verified_at=self._started,
            oldest=plan.oldest(),
            is_whole=True,
        )
        await self._ledger.write(entry)
        return Report(
            domain=entry.domain,
            source_id=entry.source_id,
            outcome="refreshed",
            documents=entry.documents,
            nodes=entry.nodes,
            unchanged=entry.documents - entry.failed - self._changed,
            changed=self._changed,
            removed=gone,
            nodes_written=self._nodes_written,
            nodes_removed=dropped,
            failed=entry.failed,
            skipped=tuple(plan.skipped),
            unhandled=dict(plan.unhandled),
        )

    async def _give_up(self, error: str, scopes: Sequence[str]) -> None:
        """Record why the refresh failed. If nothing was written, `is_whole` keeps its earlier value."""
        is_whole = self._before.is_whole and not self._has_written
        kept = msgspec.structs.replace(self._before, error=error, scopes=scopes, is_whole=is_whole)
        await self._ledger.write(msgspec.structs.replace(kept, holder="", held_until=0))


def _say_nothing(done: int, total: int, what: str) -> None:
    pass
