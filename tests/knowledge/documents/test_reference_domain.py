"""The domain `reference` through the catalog: its tools, provenance, conflicts and retrieval."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from clew.app import App
from clew.catalog.operations.answers import Item, Question
from clew.knowledge.documents.ingest import NewSource
from tests.knowledge.documents.sample_documents import RETRIES, RFC, practice, verified
from tests.knowledge.doors import get, of_session, opened, store

REFERENCE = "reference://tools"
HIDDEN = f"{REFERENCE}/hidden"


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    async with opened(tmp_path) as found:
        await found.knowledge().gather()
        yield found


async def tools_shown(app: App, query: str) -> list[str]:
    """The tools of the domain that `ask` shows, best first."""
    answer = await (await app.workspace()).catalog.ask(Question(query=query), by=app.me)
    return re.findall(rf"{REFERENCE}/(\w+)", answer.markdown)


async def refused(app: App, route: str, **params: Any) -> str:
    results = await (await app.workspace()).catalog.get([Item(route=route, params=params)], by=app.me)
    assert results.summary.failed == 1
    return results.markdown


@pytest.mark.req("SYL-27")
@pytest.mark.parametrize(
    ("query", "tool"),
    [
        ("Read this RFC for me", "ingest_source"),
        ("ingest the paper that I downloaded", "ingest_source"),
        ("write a design proposal", "design_proposal"),
        ("best practices for retries", "find_best_practices"),
        ("compare two approaches", "compare_approaches"),
    ],
)
async def test_a_question_finds_the_tool_that_it_needs_first(app: App, query: str, tool: str) -> None:
    assert (await tools_shown(app, query))[0] == tool


@pytest.mark.req("SYL-27")
async def test_an_ingested_rfc_is_found_by_every_tool_of_the_domain(app: App) -> None:
    told = await get(app, f"{REFERENCE}/ingest_source", kind="rfc", title="RFC 9110: HTTP Semantics", text=RFC)
    assert "RFC 9110: HTTP Semantics" in told
    assert "unverified, trust 20" in told
    assert "clew verify" in told
    for name, params in {
        "research": {"query": "Retry-After", "depth": "quick"},
        "compare_approaches": {"approaches": ["Retry-After", "delay"], "criteria": ["seconds"]},
        "design_proposal": {"request": "Honour Retry-After"},
    }.items():
        found = await get(app, f"{REFERENCE}/{name}", **params)
        assert "RFC 9110" in found, name
        assert "UNVERIFIED" in found, name
    await get(app, f"{REFERENCE}/ingest_source", kind="best_practice", title="Limits", text=RETRIES)
    assert "five times" in await get(app, f"{REFERENCE}/find_best_practices", topic="limits of retries")


@pytest.mark.req("SYL-92")
async def test_a_miss_is_short_and_names_the_domains_that_know_more(app: App) -> None:
    missed = await app.knowledge().library(app.me).research("backoff attempt")
    assert (missed.status, missed.sources, missed.also_exists_in) == ("no_matches", (), ("code",))
    assert missed.text.endswith("Try code.")
    assert len(missed.text.split()) <= 30
    await verified(app.knowledge().library(app.me), practice("Backoff", "A backoff waits after each attempt."))
    assert "Also in: code" in await get(app, f"{REFERENCE}/research", query="backoff attempt")


@pytest.mark.req("SYL-82")
async def test_the_provenance_of_a_note_is_its_code_and_its_references(app: App) -> None:
    library = app.knowledge().library(app.me)
    [document] = (await verified(library, practice("Backoff", "Clients wait longer each time."))).ids
    id, _ = await store(app, "Wait longer", code_references=["src/retry.py#backoff"], inspired_by=[document])
    lines = re.findall(r"^- (\w+), ([^,\s]+).*\(confidence ([\d.]+), (\w+)\)", await provenance(app, id), re.M)
    assert lines[0] == ("code", "src/retry.py", "1.00", "verified")
    assert ("academic", document, "0.80", "verified") in lines
    assert [confidence for _, _, confidence, _ in lines] == sorted((line[2] for line in lines), reverse=True)


async def provenance(app: App, id: str) -> str:
    return await get(app, f"{HIDDEN}/provenance", node_id=id)


@pytest.mark.req("SYL-82")
async def test_an_ingested_source_knows_its_origin(app: App) -> None:
    source = NewSource(kind="blog", title="Waiting", text="Wait.", url="https://blog.example/wait")
    [id] = (await verified(app.knowledge().library(app.me), source)).ids
    assert re.search(r"^- user, .*verified\)\n- academic, ", await provenance(app, id), re.M)


@pytest.mark.req("SYL-85")
async def test_conflicts_that_research_finds_are_listed_and_resolved(app: App) -> None:
    assert "no unresolved conflicts" in await get(app, f"{HIDDEN}/list_conflicts")
    library = app.knowledge().library(app.me)
    await verified(library, practice("One", "The login service uses JWT for its sessions."))
    await verified(library, practice("Two", "The login service uses cookies for its sessions."))
    assert "disagreement" in await get(app, f"{REFERENCE}/research", query="login service sessions")
    listed = await get(app, f"{HIDDEN}/list_conflicts", of_session(app, "tomorrow"))
    assert "JWT" in listed
    [id] = re.findall(r"\(([0-9a-f-]{36})\)", listed)
    done = await get(app, f"{HIDDEN}/resolve_conflict", conflict_id=id, resolution="cookies, since version 2")
    assert "cookies, since version 2" in done
    await get(app, f"{REFERENCE}/research", query="login service sessions")
    assert "no unresolved conflicts" in await get(app, f"{HIDDEN}/list_conflicts")


@pytest.mark.req("SYL-100")
async def test_research_stops_at_the_threshold_at_its_tokens_or_at_its_depth(app: App) -> None:
    library = app.knowledge().library(app.me)
    for number in range(25):
        await verified(library, practice(f"Retries {number}", f"{RETRIES}\nKind {number}."))

    async def count(**params: Any) -> tuple[int, str]:
        found = await get(app, f"{REFERENCE}/research", query="retries with backoff", **params)
        stopped = re.search(r"Retrieval: (.+)\.", found)
        return len(re.findall(r"^\[\d+\] ", found, re.M)), stopped[1] if stopped else ""

    assert await count(depth=2) == (20, "")
    assert await count(depth=3, confidence_threshold=0.8) == (10, "sufficient after 1 of 3 steps")
    few, stopped = await count(depth=3, confidence_threshold=1.0, max_tokens=100)
    assert 0 < few < 10
    assert stopped.startswith(("tokens", "sufficient"))


@pytest.mark.req("SYL-97")
async def test_papers_that_a_tool_ingests_are_found_by_year_and_venue(app: App) -> None:
    for year, venue in ((2015, "OldConf"), (2023, "NetConf")):
        paper = {"title": f"Jitter in {year}", "text": f"Jitter spreads retries, as of {year}.", "venue": venue}
        told = {"kind": "paper", "authors": ["A. Author"], "published": f"{year}-05"}
        await get(app, f"{REFERENCE}/ingest_source", **paper, **told, url=f"https://docs.example/{year}")
    found = await get(app, f"{HIDDEN}/find_papers", query="jitter", venues=["netconf"])
    assert found.index("A. Author, 2023, NetConf") < found.index("A. Author, 2015, OldConf")
    assert "docs.example" not in found, "an address that nobody checked is no citation"
    assert "2015" not in await get(app, f"{HIDDEN}/find_papers", query="jitter", min_year=2020)
    assert "is not a date" in await refused(app, f"{REFERENCE}/ingest_source", kind="text", text="x", published="soon")
