"""The fields of `known` in answers over REST and MCP; `tests/cli/test_knowledge.py` has those of the command line."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from clew.app import App
from clew.knowledge.code.file_content import blob_id
from tests.adapters.mcp.catalogs import ERAS, serve_catalog
from tests.adapters.test_rest_catalog import Site, serve
from tests.knowledge.answering.shop import FILES, Shop
from tests.knowledge.doors import PATIENCE
from tests.servers import give_key

QUESTIONS = {
    "method": "where is ConnectionPool.release_connection",
    "use": "what calls backoff",
    "section": "how do I deploy",
    "commit": "which commits touched shop/jobs/report.py",
    "change": "what changed in 2.0.1",
    "nothing": "where is the kubernetes operator reconciled",
}


@pytest.fixture
async def site(shop: Shop) -> AsyncIterator[Site]:
    folder = shop.root / ".clew"
    give_key(folder)
    async with serve(folder) as served:
        await served.app.bootstrap()
        served.app.knowledge().patience = PATIENCE
        await served.app.knowledge().gather()
        yield served


async def over_rest(site: Site, query: str) -> dict[str, Any]:
    async with site.client() as http:
        answer = await http.post("/ask", json={"query": query})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def over_mcp(app: App, shop: Shop, query: str) -> dict[str, Any]:
    catalog = (await app.workspace()).catalog
    async with serve_catalog(shop.root / ".clew", catalog) as door, door.client(ERAS[0], by=app.me) as client:
        answer = await client.call_tool("ask", {"query": query})
    assert answer.structured_content is not None
    return dict(answer.structured_content)


@pytest.mark.req("BEY-13")
async def test_known_is_a_list_of_objects_over_rest_and_mcp(site: Site, shop: Shop) -> None:
    rest = {kind: await over_rest(site, query) for kind, query in QUESTIONS.items()}
    for kind in ("method", "use", "section"):
        first = rest[kind]["known"][0]
        assert first["kind"] == kind
        assert first["blob"] == blob_id(FILES[first["path"]].encode())
        assert first["place"].startswith(f"{first['path']}:{first['start']}")
        assert 1 <= first["start"] <= first["end"] <= len(FILES[first["path"]].splitlines())
        assert 0 < first["score"] <= 1
        assert first["text"]
    assert rest["method"]["known"][0]["owner"] == "ConnectionPool"
    assert rest["section"]["known"][0]["owner"] == "Guide › Deployment"
    [commit] = rest["commit"]["known"]
    assert re.fullmatch(r"[0-9a-f]{40}", commit["commit"])
    assert (commit["kind"], "path" in commit, "blob" in commit) == ("commit", False, False)
    [change] = rest["change"]["known"]
    assert (change["kind"], change["path"], change["start"]) == ("change", "docs/news.rst", 15)
    assert rest["nothing"]["known"] == []
    assert rest["nothing"]["notes"][0].startswith("Nothing in this folder answers that.")
    for kind in ("method", "nothing"):
        mcp = await over_mcp(site.app, shop, QUESTIONS[kind])
        assert (mcp["known"], mcp["notes"]) == (rest[kind]["known"], rest[kind]["notes"])
