"""`why` explains for every route why a caller can or cannot use it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clew.access import Principal
from clew.catalog.domain import Domain
from clew.catalog.resource import Resource
from clew.errors import HandleRefused, InvalidInput
from tests.tools.fraud import ANALYST, ME, SUPPORT, USER, VIP, WAREHOUSE, ask, catalog_at, get


@pytest.mark.req("BEY-12")
async def test_a_tool_is_visible_by_its_scopes_and_by_what_was_shown(tmp_path: Path) -> None:
    async with catalog_at(tmp_path, WAREHOUSE, SUPPORT) as (catalog, _):
        entry, hidden = await catalog.why(ANALYST, by=ME), await catalog.why(USER, by=ME)
        assert entry.is_visible
        assert entry.reasons == ["It is an entry point: every `ask` shows it."]
        assert (entry.kind, entry.source, entry.is_searchable, entry.exposed) == ("tool", "local", True, None)
        assert entry.tokens > 0
        assert not hidden.is_visible
        assert "only the guidance of another route shows it" in hidden.reasons[0]
        denied = await catalog.why(VIP, by=ME)
        assert (denied.is_visible, denied.needs, denied.lacking) == (False, ["vip"], ["vip"])
        assert denied.reasons == ["It needs the scopes vip, which you do not hold."]
        handle = (await get(catalog, ANALYST)).handle
        guided = await catalog.why(USER, by=ME, handle=handle)
        assert guided.is_visible
        assert guided.exposed is not None
        assert guided.exposed.via == "guidance"
        assert f"by guidance: {ANALYST}: Look closely at one user" in guided.reasons[0]


@pytest.mark.req("BEY-12")
async def test_a_strict_catalog_says_what_it_refuses_and_until_when(tmp_path: Path) -> None:
    async with catalog_at(tmp_path, WAREHOUSE, strict=True) as (catalog, _):
        before = await catalog.why(ANALYST, by=ME)
        assert "refuses it until `ask` or guidance has shown it" in before.reasons[-1]
        handle = (await ask(catalog, "orders")).handle
        after = await catalog.why(ANALYST, by=ME, handle=handle)
        assert len(after.reasons) == 1
        assert "by ask: ask: orders" in after.reasons[0]


@pytest.mark.req("BEY-12")
async def test_a_resource_is_explained_without_running_the_code_of_its_domain(tmp_path: Path) -> None:
    ran: list[str] = []

    async def fetch(client: Any) -> str:
        ran.append("fetch")
        return "text"

    pages = [
        Resource(path="open", name="Open", description="About orders", fetch=fetch),
        Resource(path="closed", name="Closed", description="Closed", fetch=fetch, scopes=frozenset({"staff"})),
    ]
    async with catalog_at(tmp_path, Domain(name="docs", description="Handbook", resources=pages)) as (catalog, _):
        handle = (await ask(catalog, "orders")).handle
        ran.clear()
        shown = await catalog.why("docs://resources/open", by=ME, handle=handle)
        assert shown.is_visible
        assert "by ask" in shown.reasons[0]
        closed = await catalog.why("docs://resources/closed", by=ME)
        assert not closed.is_visible
        staff = Principal(owner_id="acme", agent_id="ann", scopes=frozenset({"staff"}))
        seen = await catalog.why("docs://resources/closed", by=staff)
        assert (seen.is_visible, seen.needs) == (True, ["staff"])
        late = Domain(name="late", description="Later", resources=[pages[0]])
        await catalog.add(late)
        waiting = await catalog.why("late://resources/open", by=ME)
        assert (waiting.is_visible, "not indexed" in waiting.reasons[0]) == (True, True)
        assert ran == []


@pytest.mark.req("BEY-12")
async def test_a_missing_name_is_reported_with_the_nearest_one(tmp_path: Path, stranger: Principal) -> None:
    async with catalog_at(tmp_path, WAREHOUSE) as (catalog, _):
        why = await catalog.why("warehouse://tools/analist", by=ME)
        assert why.reasons == [f"No domain registers this route. {ANALYST} is spelled alike."]
        assert not (await catalog.why("warehouse://resources/none", by=ME)).is_visible
        other = await catalog.why(ANALYST, by=stranger)
        assert (other.is_visible, other.reasons) == (False, ["No domain registers this route."])
        with pytest.raises(InvalidInput):
            await catalog.why("analyst", by=ME)
        with pytest.raises(HandleRefused):
            await catalog.why(ANALYST, by=ME, handle="clew-invented")
