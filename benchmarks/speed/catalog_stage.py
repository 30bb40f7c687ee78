"""The catalog that is measured: real tools in domains of sixty, on a trail of its own."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from clew.access import Principal
from clew.catalog.catalog import Catalog
from clew.catalog.domain import Domain
from clew.clock import SystemClock
from clew.config import Config
from clew.llm.embedders import open_embedder
from clew.trail import open_trail
from clew.trail.bootstrap import bootstrap
from discovery_peers.data import Row, read_queries, read_tools, spread
from discovery_peers.ours import build_domains

ME = Principal(owner_id=Config().owner, agent_id="bench")
ROWS_VARIABLE = "BENCH_ROWS"
"""Names the file of the tools that a measured process serves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How much is measured, and on what."""

    data: Path
    scratch: Path
    tools: int = 3_000
    routes: int = 10_000
    resources: int = 100_000
    rounds: int = 5
    samples: int = 60

    def rows(self) -> list[Row]:
        return choose(self.data, self.tools)

    def questions(self) -> list[str]:
        return [query[:4_000] for query in spread(read_queries(self.data), self.samples)]


def choose(folder: Path, number: int) -> list[Row]:
    """This number of all real tools, evenly spaced."""
    return spread(read_tools(folder), number)


def served_domains() -> list[Domain]:
    """The domains that `clew mcp` loads in the measured process, like those of a user's package. They come from a file
    that is read quickly, because reading the public sets is not measured."""
    rows = msgspec.json.decode(Path(os.environ[ROWS_VARIABLE]).read_bytes(), type=list[Row])
    return build_domains(rows, by_home=False)


@contextlib.asynccontextmanager
async def open_filled(folder: Path, domains: list[Domain]) -> AsyncIterator[Catalog]:
    """A catalog of these domains on a trail in the folder, ready to be asked."""
    folder.mkdir(parents=True, exist_ok=True)
    trail = await open_trail(f"sqlite://{folder / 'trail.db'}", embedder=open_embedder("wordllama"))
    try:
        await bootstrap(trail, ME)
        catalog = Catalog(trail, SystemClock(), owner=ME)
        for domain in domains:
            await catalog.add(domain)
        await trail.index.warm()
        yield catalog
    finally:
        await trail.close()
