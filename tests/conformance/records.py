"""Short ways to write and read a trail, shared by the tests of this folder."""

from __future__ import annotations

import asyncio
import math
import struct
from collections.abc import Awaitable, Sequence
from datetime import timedelta
from typing import Any

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import NotFound
from clew.trail.model.breadcrumb import Breadcrumb, Draft, Ttl
from clew.trail.model.event import Claim, Consumer, Event
from clew.trail.model.query import SearchRequest, SearchResult
from clew.trail.model.selector import EVERYTHING, Selector
from clew.trail.store import Trail


class LetterEmbedder:
    """A second embedder to change to: the counts of letters in a text. Remembers how much it did."""

    dimension = 26

    def __init__(self, name: str = "letters") -> None:
        self.name = name
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str]) -> list[bytes]:
        self.embedded += texts
        return [self.pack(text) for text in texts]

    @staticmethod
    def pack(text: str) -> bytes:
        counts = [text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"]
        length = math.sqrt(sum(count * count for count in counts)) or 1.0
        return struct.pack("<26f", *(count / length for count in counts))


def unpack(vector: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(vector) // 4}f", vector)


UNKNOWN = "00000000-0000-7000-8000-000000000000"
"""An id that no breadcrumb has."""

PATIENCE = 60.0
"""Seconds after which a test that waits has failed."""


def short(value: object) -> str:
    """A test's name for a value."""
    return ascii(value)[:40]


def draft(title: str = "Note", /, **fields: Any) -> Draft:
    """A draft for which a test gives only the fields that matter."""
    return Draft(title=title, **{"context": {}, **fields})


def lasting(clock: ManualClock, **amount: float) -> Ttl:
    return Ttl(kind="datetime", expires_at=clock.now() + timedelta(**amount))


FULL_ID = "0198c0de-0000-7000-8000-00000000c1e3"
HALF = "half of a pair: \ud83d"
"""Text that is no Unicode."""

WIDE = Principal(owner_id="acme", agent_id="ann", scopes=frozenset({"ops", "docs"}))
"""One who may see what `full_draft` makes."""


def full_draft(clock: ManualClock) -> Draft:
    """A draft that uses every field."""
    return Draft(
        id=FULL_ID,
        title="Deploy guide",
        context={"text": "Roll out slowly", "steps": [1, 2.5, None, True, {"a": []}], "n": -(2**63), "m": 2**64 - 1},
        tags=("guide", "session:s1", "status:active"),
        schema_name="guide.v1",
        scopes=("ops", "docs"),
        llm_hints={"include": ["text"]},
        ttl=Ttl(kind="hybrid", expires_at=clock.now() + timedelta(days=1), max_reads=9),
        entities={"people": ["Ann"]},
        embedding=(3.0, 4.0),
        idempotency_key="guide-1",
    )


async def make(trail: Trail, by: Principal, title: str = "Note", /, **fields: Any) -> Breadcrumb:
    return await trail.records.create(draft(title, **fields), by=by)


async def make_all(trail: Trail, by: Principal, *titles: str, **fields: Any) -> list[str]:
    """Ids of new breadcrumbs with these titles, in one transaction."""
    made = await trail.records.create_many([draft(title, **fields) for title in titles], by=by)
    return [each.id for each in made]


async def list_all(trail: Trail, by: Principal, selector: Selector = EVERYTHING) -> list[Breadcrumb]:
    """All records of the selector, oldest first, over all pages."""
    page = await trail.records.list(selector, by=by, limit=1_000, oldest_first=True)
    items = list(page.items)
    while page.cursor is not None:
        page = await trail.records.list(selector, by=by, limit=1_000, cursor=page.cursor, oldest_first=True)
        items += page.items
    return items


async def list_titles(trail: Trail, by: Principal, **parts: Any) -> list[str]:
    return [each.title for each in await list_all(trail, by, Selector(**parts))]


async def read_log(trail: Trail, by: Principal, after: int = 0) -> list[Event]:
    return (await trail.log.read(after, by=by, limit=10_000))[0]


async def look_for(trail: Trail, by: Principal, text: str = "", **parts: Any) -> SearchResult:
    return await trail.index.search(SearchRequest(text=text, **parts), by=by)


async def found_titles(trail: Trail, by: Principal, text: str = "", **parts: Any) -> list[str]:
    return [hit.breadcrumb.title for hit in (await look_for(trail, by, text, **parts)).hits]


async def is_there(trail: Trail, by: Principal, id: str) -> bool:
    try:
        await trail.records.get(id, by=by)
    except NotFound:
        return False
    return True


async def claim_one(trail: Trail, by: Principal, consumer: str, **options: Any) -> Claim:
    async with asyncio.timeout(PATIENCE):
        (claim,) = await trail.deliveries.claim(consumer, by=by, worker="w", **options)
    return claim


LEASE = timedelta(seconds=30)
"""The default length of a claim."""


async def register(trail: Trail, by: Principal, name: str = "c", **parts: Any) -> None:
    await trail.deliveries.register(Consumer(name=name, **parts), by=by)


async def claim(
    trail: Trail, by: Principal, name: str = "c", limit: int = 100, lease: timedelta = LEASE
) -> list[Claim]:
    async with asyncio.timeout(PATIENCE):
        return await trail.deliveries.claim(name, by=by, worker="w", limit=limit, lease=lease)


def titles(claims: list[Claim]) -> list[str]:
    return [each.event.breadcrumb.title if each.event.breadcrumb else "gone" for each in claims]


async def session(trail: Trail, by: Principal, name: str, *parts: str) -> list[str]:
    return await make_all(trail, by, *parts, tags=[f"session:{name}"])


async def succeeds(attempt: Awaitable[Any], *errors: type[Exception]) -> bool:
    """Whether it worked; one of these errors means no."""
    try:
        await attempt
    except errors:
        return False
    return True
