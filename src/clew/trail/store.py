"""The interfaces of a trail, one per capability. Their docstrings are the contract; every backend passes
tests/conformance. A trail is opened with `open_trail` and closed by its owner."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import Literal, Protocol

import msgspec

from clew.access import Principal
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft, Page, Update, View
from clew.trail.model.edge import Direction, Edge, Link, Reached
from clew.trail.model.event import DEFAULT_LEASE, Claim, Consumer, ConsumerState, DeadLetter, Event, QueueLoad
from clew.trail.model.query import SearchRequest, SearchResult
from clew.trail.model.selector import EVERYTHING, Selector


class Embedder(Protocol):
    """Turns texts into vectors of one length. `name` identifies the model: vectors of different names are
    never mixed on one trail."""

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> Sequence[bytes]:
        """For each text a little-endian float32 vector of unit length. Same text, same bytes."""
        ...


class VersionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a breadcrumb's history."""

    version: int
    updated_at: datetime
    updated_by: str | None
    checksum: str


class Records(Protocol):
    """Versioned breadcrumbs. To a caller, a breadcrumb that it may not see does not exist."""

    async def create(self, draft: Draft, *, by: Principal) -> Breadcrumb:
        """Write version 1, its tags, vector and event, or nothing. Durable when it returns.

        The same idempotency key by the same owner returns the record of the first call.
        Raises InvalidInput, SchemaViolation, AccessDenied, AlreadyExists (an id that is taken).
        """
        ...

    async def create_many(self, drafts: Sequence[Draft], *, by: Principal) -> list[Breadcrumb]:
        """Create all in one transaction, in order, or none."""
        ...

    async def get(self, id: str, *, by: Principal, version: int | None = None, vector: bool = False) -> Breadcrumb:
        """A breadcrumb as stored, or one of its older versions; with its vector if asked.

        Raises NotFound, or Corrupted when the content does not fit its checksum.
        """
        ...

    async def find_many(self, ids: Sequence[str], *, by: Principal) -> dict[str, Breadcrumb]:
        """Return those of these breadcrumbs that the caller sees, by id, in one query. Raises Corrupted as `get`."""
        ...

    async def read(self, id: str, *, by: Principal) -> View:
        """A breadcrumb as a consumer sees it: llm_hints applied, and counted as a read if the TTL counts reads."""
        ...

    async def update(self, id: str, change: Change, *, expect: int, by: Principal) -> Breadcrumb:
        """Write the next version and its event, or nothing.

        Raises NotFound when `by` may not see it, Conflict when its version is not `expect`.
        """
        ...

    async def update_many(self, updates: Sequence[Update], *, by: Principal) -> list[Breadcrumb]:
        """Update all in one transaction, in order, or none. Raises as `update`, and InvalidInput for an id that comes
        twice."""
        ...

    async def delete(self, id: str, *, by: Principal, expect: int | None = None) -> None:
        """Remove a breadcrumb with its versions, vector and edges, and log the event. Raises as `update`."""
        ...

    async def list(
        self,
        selector: Selector = EVERYTHING,
        *,
        by: Principal,
        limit: int = 50,
        cursor: str | None = None,
        oldest_first: bool = False,
    ) -> Page:
        """One page in order of creation. Breadcrumbs that are created or deleted between pages neither repeat nor hide
        others."""
        ...

    async def history(self, id: str, *, by: Principal) -> Sequence[VersionInfo]:
        """All versions that are kept, oldest first, the present one last."""
        ...


class Log(Protocol):
    """The ordered log of changes, as far as the caller may see it."""

    async def read(
        self, after: int, *, by: Principal, selector: Selector = EVERYTHING, limit: int = 500
    ) -> tuple[list[Event], int]:
        """Events with a greater `seq` in order, and the `seq` up to which the log was looked at."""
        ...

    async def head(self) -> int:
        """The `seq` of the newest event, 0 at the beginning."""
        ...

    async def creation_of(self, breadcrumb_id: str, *, by: Principal) -> int:
        """The `seq` of the event that created a breadcrumb. Raises NotFound when the caller may not see it."""
        ...

    async def wait(self, after: int, timeout: float, *, selector: Selector = EVERYTHING) -> bool:
        """Return True as soon as the head is past `after`, False after `timeout` seconds. With a selector, events that
        do not match need not end the wait."""
        ...

    def follow(self, after: int, *, by: Principal, selector: Selector = EVERYTHING) -> AsyncIterator[Event]:
        """Yield events without end. Each write wakes the iterator."""
        ...


class Deliveries(Protocol):
    """Durable consumers: each event is handled once per consumer however many workers run.

    Events of one session are handled in order; sessions do not wait for each other. Without a session, the events of
    one run are handled in order, without a run those of one breadcrumb. A claim is a lease: if it runs out, the event
    is claimed again. The limits of a consumer hold over all processes. Its groups take turns, so that none of them
    blocks the others.
    """

    async def register(self, consumer: Consumer, *, by: Principal) -> ConsumerState:
        """Create the consumer with the caller's owner and scopes, or change its selector and retry policy. An existing
        consumer keeps its place. The `after` that is stored is the event after which a consumer really began.

        Raises AlreadyExists if a consumer of that name needs scopes that the caller lacks.
        """
        ...

    async def unregister(self, name: str, *, by: Principal) -> None:
        """Remove a consumer and its pending events. Raises NotFound."""
        ...

    async def consumers(self, *, by: Principal) -> list[ConsumerState]:
        """The owner's consumers by name."""
        ...

    async def claim(
        self,
        consumer: str,
        *,
        by: Principal,
        worker: str,
        limit: int = 1,
        lease: timedelta = DEFAULT_LEASE,
        wait: float = 0.0,
        with_refused: bool = False,
    ) -> list[Claim]:
        """Claim up to `limit` events that no other worker handles. If there are none, wait up to `wait` seconds for the
        first: a new event, a released claim, or a retry or lease that falls due ends the wait. Empty if no event came.
        A cancelled call keeps no claims. An event with too many deaths or past its deadline becomes a dead letter; if
        `with_refused`, it is claimed with a `refusal` instead. Raises NotFound."""
        ...

    async def extend(self, claim: Claim, *, by: Principal, lease: timedelta) -> Claim:
        """Extend the lease of a claim. Raises LeaseLost."""
        ...

    async def release(self, claim: Claim, *, by: Principal, delay: float = 0.0) -> None:
        """Give a claim back untried: it can be claimed at once, or after `delay` seconds, and the attempt does not
        count. Raises LeaseLost."""
        ...

    async def finish(self, claim: Claim, outputs: Sequence[Draft], *, by: Principal) -> list[Breadcrumb]:
        """Write the outputs and acknowledge the event in one transaction. Raises LeaseLost, writing nothing."""
        ...

    async def fail(self, claim: Claim, reason: str, *, by: Principal, retry: bool = True) -> bool:
        """Give the event back for a later attempt; True when it became a dead letter instead."""
        ...

    async def workers(self, *, by: Principal) -> list[str]:
        """The workers that hold claims on events of the owner's consumers, by name."""
        ...

    async def abandon(self, worker: str, *, by: Principal) -> int:
        """Make the claims of a worker that is known to be dead claimable at once, and return their number. A death does
        not count as a failed attempt, but too many deaths make a dead letter. If the worker is alive after all, it has
        lost its leases."""
        ...

    async def load(self, consumer: str, *, by: Principal) -> QueueLoad | None:
        """The claimed and the waiting events of a consumer with limits; None for one without. Raises NotFound."""
        ...

    async def due_in(self, consumer: str, *, by: Principal) -> float | None:
        """Seconds until a waiting event, a retry or a lease is due. None if there is no waiting or claimed event."""
        ...


class DeadLetters(Protocol):
    """Events that a consumer gave up on."""

    async def list(self, *, by: Principal, consumer: str | None = None, limit: int = 100) -> Sequence[DeadLetter]:
        """Dead letters of the owner, oldest first."""
        ...

    async def replay(self, id: str, *, by: Principal) -> None:
        """Make a dead letter pending again, with the full number of attempts. It returns to its place in its session:
        before waiting events, but after an event that is being handled. Raises NotFound."""
        ...

    async def drop(self, id: str, *, by: Principal) -> None:
        """Forget a dead letter. Raises NotFound."""
        ...


class Search(Protocol):
    async def warm(self) -> None:
        """Get ready for the first search, so that it does not have to wait."""
        ...

    async def search(self, request: SearchRequest, *, by: Principal) -> SearchResult:
        """The best breadcrumbs, including those of every write that has returned. There are `limit` hits if at least
        that many match the filters and the arms. The same trail always gives the same answer."""
        ...


class Edges(Protocol):
    """Typed, weighted, directed edges between breadcrumbs. A caller sees an edge if it sees both ends."""

    async def add(self, edges: Sequence[Edge], *, by: Principal, replace: bool = False) -> list[Edge]:
        """Write all edges or none. Raises NotFound for an end that the caller cannot see, AlreadyExists for an existing
        triple (unless `replace`), CycleRefused for a cycle in a type that must stay acyclic, even if the caller cannot
        see all of the cycle. The error names only the two given ends."""
        ...

    async def remove(self, source: str, target: str, type: str, *, by: Principal) -> None:
        """Raises NotFound."""
        ...

    async def of(
        self,
        id: str,
        *,
        by: Principal,
        types: Sequence[str] = (),
        direction: Direction = "both",
        limit: int = 1000,
    ) -> list[Edge]:
        """Edges at a breadcrumb, ordered by type, then source, then target."""
        ...

    async def around(
        self, ids: Sequence[str], *, by: Principal, since: datetime | None = None, limit: int = 10_000
    ) -> list[Link]:
        """The edges at any of these breadcrumbs, in both directions and in no order. If there are more than `limit`,
        the cheapest are returned, then by ids and type. With `since`, only edges written then or later. An edge between
        two of the given breadcrumbs appears twice. A deleted or invisible breadcrumb has no links."""
        ...

    async def walk(
        self,
        starts: Sequence[str],
        *,
        by: Principal,
        types: Sequence[str] = (),
        direction: Direction = "outgoing",
        depth: int = 3,
        limit: int = 1000,
    ) -> list[Reached]:
        """Breadth first from the starts, each breadcrumb once, without the starts; at most `limit`."""
        ...

    async def paths(
        self,
        starts: Sequence[str],
        *,
        by: Principal,
        types: Sequence[str] = (),
        direction: Direction = "both",
        max_cost: float = 3.0,
        limit: int = 1000,
    ) -> list[Reached]:
        """The cheapest way from any start to each breadcrumb within `max_cost`, cheapest first, starts included
        at cost 0."""
        ...


class HygieneStats(msgspec.Struct, frozen=True, kw_only=True):
    runs_completed: int
    total_breadcrumbs_purged: int
    last_run_duration_ms: float
    hygiene_enabled: bool


class Purged(msgspec.Struct, frozen=True, kw_only=True):
    """The records that one hygiene run removed."""

    breadcrumbs: int
    agents: int
    subscriptions: int


class TrailStats(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of the records that the caller may see."""

    breadcrumbs: int
    events: int
    edges: int
    schemas: dict[str, int]


class EngineFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One line about the engine of a trail. `todo` is the next step, if there is one."""

    name: str
    level: Literal["ok", "note", "wrong"] = "ok"
    what: str
    todo: str = ""


class Upkeep(Protocol):
    """Maintenance of a trail. It is for the process that runs the trail, not for tenants."""

    async def purge(self, *, idle_after: timedelta | None = timedelta(days=7)) -> Purged:
        """Remove expired breadcrumbs (logging each), agents not seen for `idle_after`, and their subscriptions.

        With None only expired breadcrumbs are removed.
        """
        ...

    async def stats(self, *, by: Principal) -> TrailStats: ...

    async def webhook_senders(self) -> list[Principal]:
        """One principal for each owner that has webhooks. It may claim events for all webhooks of the owner."""
        ...

    async def identity(self) -> str:
        """A random id that no other trail has. It is created with the trail, and `adopt` replaces it."""
        ...

    async def is_foreign(self) -> bool:
        """Whether the trail was moved here by a user who had not made it, and nobody has adopted it since."""
        ...

    async def adopt(self) -> str:
        """Take over a trail of somebody else, in one transaction: give it a new identity, which is returned, and drop
        all events that wait for consumers of any owner. A consumer that is registered later cannot start before this
        point of the log. Breadcrumbs and dead letters stay."""
        ...

    async def check(self) -> list[str]:
        """Find damage: one line each, empty when all is well. Reads everything."""
        ...

    async def examine(self) -> list[EngineFinding]:
        """The state of the database server that stores the trail, such as its version, settings and sizes, one finding
        for each check. Empty for a trail in a file."""
        ...

    def reembed(self, *, batch: int = 500) -> AsyncIterator[tuple[int, int]]:
        """Give every breadcrumb a vector of the present embedder, yielding (done, total). Can be interrupted and
        started again; the old vectors serve until the last one is replaced."""
        ...


class Secrets(Protocol):
    """Values that only code may see, never a model or a reader. Breadcrumbs hold `{"$secret": "name"}`; no read ever
    returns the value."""

    async def put(self, name: str, value: str, *, by: Principal) -> None: ...

    async def names(self, *, by: Principal) -> list[str]: ...

    async def drop(self, name: str, *, by: Principal) -> None: ...

    async def reveal(self, name: str, *, by: Principal) -> str:
        """The value, for code that runs with it. Raises NotFound."""
        ...


class Trail(Protocol):
    """A trail: the only place where Clew stores state."""

    @property
    def records(self) -> Records: ...

    @property
    def log(self) -> Log: ...

    @property
    def deliveries(self) -> Deliveries: ...

    @property
    def dead_letters(self) -> DeadLetters: ...

    @property
    def index(self) -> Search: ...

    @property
    def edges(self) -> Edges: ...

    @property
    def upkeep(self) -> Upkeep: ...

    @property
    def secrets(self) -> Secrets: ...

    async def close(self) -> None:
        """Finish the accepted writes, then close the file or the connections. Calling it twice is harmless."""
        ...
