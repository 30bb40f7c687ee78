"""The time to open a large catalog that is already on the trail, and to answer the first question."""

from __future__ import annotations

import time
from collections.abc import Sequence

from clew.catalog.domain import Domain
from clew.catalog.indexing.document_nodes import SCHEMA
from clew.catalog.operations.answers import Question
from clew.llm.embedders import open_embedder
from clew.trail import open_trail
from clew.trail.model.breadcrumb import Draft
from discovery_peers.data import Row as Described
from discovery_peers.ours import build_domains
from speed.catalog_stage import ME, Settings, choose, open_filled
from speed.report import Finding, Promise, Row
from speed.timing import settle, tell

MEASURE = "loading"
MOST_LOAD, BATCH, ROUTES_A_DOMAIN = 2.0, 1_000, 200


async def measure(settings: Settings) -> list[Finding]:
    domains = many_domains(settings)
    folder = settings.scratch / "loads"
    tell(f"{MEASURE}: writing {settings.routes:,} routes and {settings.resources:,} resources")
    async with open_filled(folder, domains):
        pass
    await write_resources(settings)
    loads, firsts = [], []
    for _ in range(settings.rounds):
        began = time.perf_counter()
        async with open_filled(folder, domains) as catalog:
            loads.append(time.perf_counter() - began)
            await catalog.ask(Question(query=settings.questions()[0]), by=ME)
            firsts.append(time.perf_counter() - began)
    load, first = sorted(loads)[len(loads) // 2], sorted(firsts)[len(firsts) // 2]
    size = settings.routes + settings.resources
    return [
        Row(measure=MEASURE, records=size, contender="clew", values={"loaded s": load, "first answer s": first}),
        Promise(name="load from the trail, s", records=size, value=load, target=MOST_LOAD, at_least=False),
    ]


def many_domains(settings: Settings) -> list[Domain]:
    """Real tools, again and again under other names, until there are enough routes."""
    rows = choose(settings.data, 10_000)
    repeated = [copy(rows[at % len(rows)], at) for at in range(settings.routes)]
    return build_domains(repeated, ROUTES_A_DOMAIN, by_home=False)


def copy(row: Described, at: int) -> Described:
    return Described(
        id=f"{row.id}-{at}", name=f"{row.name[:80]}-{at}", description=row.description, text="", schema=row.schema
    )


async def write_resources(settings: Settings) -> None:
    rows = choose(settings.data, 10_000)
    trail = await open_trail(f"sqlite://{settings.scratch / 'loads' / 'trail.db'}", embedder=open_embedder("wordllama"))
    try:
        for first in range(0, settings.resources, BATCH):
            numbers = range(first, min(first + BATCH, settings.resources))
            await trail.records.create_many(build_drafts(rows, numbers), by=ME)
        await trail.index.warm()
        await settle()
    finally:
        await trail.close()


def build_drafts(rows: Sequence[Described], numbers: range) -> list[Draft]:
    """Resources with the fields that a pipeline gives them and that a search looks at."""
    return [
        Draft(
            title=f"{row.name} {at}",
            schema_name=SCHEMA,
            context={
                "uri": f"part-0://resources/{at}",
                "domain": "part-0",
                "name": f"{row.name} {at}",
                "description": row.description,
                "content": row.text[:1_000],
            },
            tags=["domain:part-0", "type:text"],
            llm_hints={"include": ["description", "content"]},
        )
        for at in numbers
        for row in (rows[at % len(rows)],)
    ]
