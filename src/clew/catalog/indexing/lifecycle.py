"""Refresh the catalog's sources: after a start, one at a time, or all from scratch."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable

import msgspec

from clew.access import Principal
from clew.catalog.domain import Domain
from clew.catalog.indexing.document_nodes import SourcePlace
from clew.catalog.indexing.document_reader import explain
from clew.catalog.indexing.freshness import judge, read_freshness
from clew.catalog.indexing.pipeline import INCREMENTAL, Progress, RefreshPolicy, Report, run_pipeline
from clew.catalog.indexing.resource_writer import ResourceWriter
from clew.catalog.indexing.source_ledger import SourceEntry, SourceLedger, keeper, now_ms, read_sources
from clew.catalog.resource import Pipeline
from clew.clock import Clock
from clew.errors import NotFound
from clew.trail.store import Trail

AT_ONCE = 4
"""How many sources are refreshed together."""


class SourceState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of a configured source on the trail. `oldest` is the time (epoch ms) from which its age counts, 0 if it
    was never fully indexed. `reason` says why the source is not fresh, `error` why its last refresh failed."""

    domain: str
    source_id: str
    is_fresh: bool
    documents: int = 0
    nodes: int = 0
    failed: int = 0
    oldest: int = 0
    reason: str = ""
    error: str = ""


class Lifecycle:
    """The sources of some domains. A failed source gets a report and does not stop the others. Records of `spared`
    domains (None means all domains) are never dropped, even if their sources are no longer configured."""

    def __init__(
        self,
        trail: Trail,
        domains: Iterable[Domain],
        *,
        by: Principal,
        clock: Clock,
        report: Progress | None = None,
        policy: RefreshPolicy = INCREMENTAL,
        spared: Collection[str] | None = (),
    ) -> None:
        self._trail = trail
        self._by = by
        self._clock = clock
        self._progress = _RefreshTally(report)
        self._policy = policy
        self._spared = spared
        self._pipelines: dict[tuple[str, str], tuple[Domain, Pipeline]] = {}
        for domain in domains:
            for pipeline in domain.extractors:
                self._pipelines[domain.name, pipeline.source.id] = (domain, pipeline)

    async def restart(self) -> list[Report]:
        """Refresh outdated sources, and remove sources that are no longer configured."""
        reports = await self._each(self._pipelines.values(), self._refresh_unless_fresh)
        return [*reports, *await self._drop_unconfigured()]

    async def wipe_and_rebuild(self) -> list[Report]:
        """Fetch and write everything again, without using the cache. The old resources of each source are dropped only
        after their replacements have been written."""
        policy = msgspec.structs.replace(self._policy, ignore_cache=True)

        async def rebuild(domain: Domain, pipeline: Pipeline) -> Report:
            return await self._run(domain, pipeline, policy)

        reports = await self._each(self._pipelines.values(), rebuild)
        return [*reports, *await self._drop_unconfigured()]

    async def refresh_source(self, id: str, *, force: bool = False) -> list[Report]:
        """Refresh only this source, even if it is fresh, in each domain that has it. Raises NotFound."""
        chosen = [found for (_, source_id), found in self._pipelines.items() if source_id == id]
        if not chosen:
            error = NotFound("source", id)
            error.hint = f"Sources are {', '.join(sorted({key[1] for key in self._pipelines})) or 'not configured'}"
            raise error
        policy = msgspec.structs.replace(self._policy, force=force)

        async def refresh(domain: Domain, pipeline: Pipeline) -> Report:
            return await self._run(domain, pipeline, policy)

        return await self._each(chosen, refresh)

    async def sources(self) -> list[SourceState]:
        """The configured sources in the order of their domains."""
        books = {(entry.domain, entry.source_id): entry for entry in await read_sources(self._trail, by=self._by)}
        now = now_ms(self._clock)
        return [_state(books.get(key), domain, pipeline, now) for key, (domain, pipeline) in self._pipelines.items()]

    async def _each(
        self,
        chosen: Iterable[tuple[Domain, Pipeline]],
        refresh: Callable[[Domain, Pipeline], Awaitable[Report]],
    ) -> list[Report]:
        room = asyncio.Semaphore(AT_ONCE)

        async def one(domain: Domain, pipeline: Pipeline) -> Report:
            try:
                async with room:
                    return await refresh(domain, pipeline)
            except Exception as error:  # the boundary of a task: others go on
                failed = Report(domain=domain.name, source_id=pipeline.source.id, outcome="failed")
                return msgspec.structs.replace(failed, error=explain(error))

        return await asyncio.gather(*(one(domain, pipeline) for domain, pipeline in chosen))

    async def _refresh_unless_fresh(self, domain: Domain, pipeline: Pipeline) -> Report:
        found = await read_freshness(self._trail, domain, pipeline, by=self._by, clock=self._clock)
        if not found.is_fresh:
            return await self._run(domain, pipeline, self._policy)
        reason = f"its oldest document is {(found.age_ms or 0) // 1_000:,} s old"
        return Report(domain=domain.name, source_id=found.source_id, outcome="fresh", reason=reason)

    async def _run(self, domain: Domain, pipeline: Pipeline, policy: RefreshPolicy) -> Report:
        report = self._progress.part(f"{domain.name} {pipeline.source.id}")
        return await run_pipeline(
            self._trail, domain, pipeline, by=self._by, clock=self._clock, report=report, policy=policy
        )

    async def _drop_unconfigured(self) -> list[Report]:
        books = await read_sources(self._trail, by=self._by)
        gone = [each for each in books if (each.domain, each.source_id) not in self._pipelines]
        spared = self._spared
        return [await self._drop(each) for each in gone if spared is not None and each.domain not in spared]

    async def _drop(self, book: SourceEntry) -> Report:
        place = SourcePlace(owner_id=self._by.owner_id, domain=book.domain, source_id=book.source_id)
        swap = ResourceWriter(self._trail, place, others=(), by=keeper(self._by, book.scopes))
        dropped = await swap.drop([each.id async for each in swap.present()])
        await SourceLedger(self._trail, place, by=self._by, clock=self._clock).close_for_good()
        return Report(
            domain=book.domain,
            source_id=book.source_id,
            outcome="dropped",
            removed=book.documents,
            nodes_removed=dropped,
            reason=f"the domain {book.domain} is no longer configured with it",
        )


class _RefreshTally:
    """Adds up the progress of sources that are refreshed together."""

    def __init__(self, report: Progress | None) -> None:
        self._report = report
        self._parts: dict[str, tuple[int, int]] = {}

    def part(self, source: str) -> Progress | None:
        report = self._report
        if report is None:
            return None

        def tell(done: int, total: int, what: str) -> None:
            self._parts[source] = (done, total)
            report(
                sum(part[0] for part in self._parts.values()),
                sum(part[1] for part in self._parts.values()),
                f"{source}: {what}",
            )

        return tell


def _state(entry: SourceEntry | None, domain: Domain, pipeline: Pipeline, now: int) -> SourceState:
    found = judge(entry, domain, pipeline, now)
    state = SourceState(domain=domain.name, source_id=pipeline.source.id, is_fresh=found.is_fresh, reason=found.reason)
    if entry is None:
        return state
    return msgspec.structs.replace(
        state,
        documents=entry.documents,
        nodes=entry.nodes,
        failed=entry.failed,
        oldest=entry.oldest,
        error=entry.error,
    )
