"""Resources defined in code: indexed by the same pipeline, loaded anew on `get`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clew.access import Principal
from clew.catalog.domain import Domain
from clew.catalog.indexing.code_resources import DefinedFormat, DefinedSource, with_defined
from clew.catalog.resource import Resource
from clew.errors import NotFound
from tests.tools.fraud import WAREHOUSE, ask, catalog_at, get, refresh, resources_of


async def fetch(client: Any) -> str:
    return str(client["text"])


def domain(client: dict[str, str]) -> Domain:
    pages = [
        Resource(path="guide/rules", name="Rules", description="The rules of settlement", fetch=fetch),
        Resource(path="guide/plan", name="Plan", description="A plan", fetch=fetch, scopes=frozenset({"staff"})),
    ]
    return Domain(name="docs", description="Handbook", resources=pages, client=client)


@pytest.mark.req("ERN-03")
async def test_content_is_indexed_and_get_loads_it_again(tmp_path: Path) -> None:
    client = {"text": "wombat colonies"}
    async with catalog_at(tmp_path, domain(client)) as (catalog, trail):
        answer = await ask(catalog, "wombat")
        assert resources_of(answer) == ["docs://resources/guide/rules"]
        assert "wombat" not in answer.markdown
        client["text"] = "quokka colonies"
        data = (await get(catalog, "docs://resources/guide/rules")).results[0].data
        assert data is not None
        assert "quokka colonies" in data.content
        await refresh(catalog, trail)
        assert resources_of(await ask(catalog, "quokka")) == ["docs://resources/guide/rules"]


@pytest.mark.req("ERN-21")
async def test_each_set_of_scopes_is_a_separate_source(tmp_path: Path) -> None:
    client = {"text": "wombat colonies"}
    assert len(with_defined(domain(client)).extractors) == 2
    assert with_defined(WAREHOUSE) is WAREHOUSE
    async with catalog_at(tmp_path, domain(client)) as (catalog, _):
        staff = Principal(owner_id="acme", agent_id="ann", scopes=frozenset({"staff"}))
        found = resources_of(await ask(catalog, "wombat", by=staff))
    assert sorted(found) == ["docs://resources/guide/plan", "docs://resources/guide/rules"]


async def test_a_source_knows_its_resources_and_no_others() -> None:
    client = {"text": "text"}
    made = domain(client)
    source = DefinedSource(made, made.resources, frozenset())
    assert [each.id for each in (await source.list_documents()).documents] == ["guide/rules", "guide/plan"]
    content = await source.fetch_content("guide/rules")
    assert DefinedFormat().can_handle(content.content_type)
    (node,) = DefinedFormat().parse(content, "")
    assert (node.path, node.name, node.description, node.content) == (
        "guide/rules",
        "Rules",
        "The rules of settlement",
        "text",
    )
    with pytest.raises(NotFound):
        await source.fetch_content("other")
    await source.close()
    await source.close()
