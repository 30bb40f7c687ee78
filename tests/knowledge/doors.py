"""Helpers for tests of knowledge through its interfaces: a small shop with an app, its questions and its notes."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from clew.access import Principal
from clew.app import App, open_app
from clew.catalog.operations.answers import CatalogAnswer, Item, Question
from clew.catalog.operations.markdown import cited_line, known_lines
from clew.clock import ManualClock
from clew.config import Config, HygieneConfig, KnowledgeConfig
from tests.knowledge.code.repositories import make_repository

PATIENCE = 60.0
FILES = {
    "src/retry.py": (
        '"""Trying again."""\n\n\ndef backoff(attempt):\n    """Seconds to wait before the next attempt."""\n'
        "    return 2**attempt\n"
    ),
    "src/cache.py": "import redis\n\n\ndef open_cache():\n    return redis.Redis()\n",
    "README.md": "# Shop\n\nA shop of kettles.\n\n## Payments\n\nPayments are settled at noon by src/retry.py.\n",
    "pyproject.toml": '[project]\nname = "shop"\nversion = "1"\n\n[tool.ruff]\nline-length = 100\n',
    ".gitignore": ".clew/\n",
}
SETTINGS = HygieneConfig(enabled=False)


@asynccontextmanager
async def opened(
    tmp_path: Path,
    clock: ManualClock | None = None,
    model: str = "",
    hygiene: HygieneConfig = SETTINGS,
    scopes: frozenset[str] = frozenset(),
) -> AsyncIterator[App]:
    root = make_repository(tmp_path / "shop", FILES)
    config = Config(folder=root / ".clew", knowledge=KnowledgeConfig(model=model), hygiene=hygiene)
    async with open_app(config, clock, scopes=scopes) as app:
        await app.bootstrap()
        yield app


async def ask(app: App, query: str, by: Principal | None = None) -> CatalogAnswer:
    return await (await app.workspace()).catalog.ask(Question(query=query), by=by or app.me)


async def known(app: App, query: str, by: Principal | None = None) -> list[str]:
    """The lines under `Known` in an answer of `ask`: notes, words of a model, citations."""
    answer = await ask(app, query, by)
    return [*known_lines(answer.notes, answer.text), *map(cited_line, answer.known)]


async def get(app: App, route: str, by: Principal | None = None, **params: Any) -> str:
    catalog = (await app.workspace()).catalog
    results = await catalog.get([Item(route=route, params=params)], by=by or app.me)
    assert results.summary.failed == 0, results.markdown
    return results.markdown


async def store(app: App, content: str, by: Principal | None = None, **params: Any) -> tuple[str, str]:
    """Store a summary, and return its id and the answer to the caller."""
    params = {"content": content, "summary_type": "decision"} | params
    told = await get(app, "history://tools/store_summary", by, **params)
    found = re.search(r"Stored as ([^\s;,]+)", told)
    assert found is not None, told
    return found[1], told


def of_session(app: App, session: str, *scopes: str) -> Principal:
    return Principal(owner_id=app.me.owner_id, agent_id="ann", session=session, scopes=frozenset(scopes))
