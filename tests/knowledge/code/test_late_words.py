"""Words that are indexed in parallel with value tracking are found like all others, after any interruption and
change."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from clew.knowledge.code import index
from clew.knowledge.code.graph import CodeGraph
from tests.knowledge.code.repositories import make_repository, write
from tests.knowledge.code.sample_project import SAMPLE, opened

PRICES = "shop/prices.py"
QUERY = "round cents"


@pytest.fixture(autouse=True)
def small_projects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "WORKER_FROM", 0)


async def test_the_index_is_the_same_as_with_words_at_once(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", SAMPLE)
    async with opened(root, tmp_path / "at once") as graph:
        await graph.refresh()
        await graph.follow()
        at_once = contents_of(graph)
    async with opened(root, tmp_path / "late") as graph:
        await graph.refresh(until="read", has_late_words=True)
        assert not graph.is_whole
        assert PRICES not in await found_by_words(graph)
        await graph.follow()
        assert graph.is_whole
        assert contents_of(graph) == at_once
        assert PRICES in await found_by_words(graph)


async def test_an_interrupted_command_leaves_no_file_without_words(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", SAMPLE)
    async with opened(root) as graph:
        await graph.refresh(until="read", has_late_words=True)
    async with opened(root) as graph:
        assert not graph.is_whole
        assert (await graph.refresh(until="linked")).parsed == 0
        assert graph.is_whole
        assert PRICES in await found_by_words(graph)


async def test_a_content_that_comes_back_after_its_words_were_left_is_found(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", SAMPLE)
    async with opened(root) as graph:
        await graph.refresh(until="read", has_late_words=True)
        write(root, PRICES, "def other():\n    pass\n")
        await graph.follow()
        await graph.refresh()
        assert PRICES not in await found_by_words(graph)
        write(root, PRICES, SAMPLE[PRICES])
        await graph.refresh()
        assert PRICES in await found_by_words(graph)


async def found_by_words(graph: CodeGraph) -> set[str]:
    """The files that contain the words of a query, as stored."""
    return {hit.path for hit in await asyncio.to_thread(graph.text.search, QUERY)}


def contents_of(graph: CodeGraph) -> list[list[tuple[Any, ...]]]:
    """The stored contents, symbols and edges."""
    queries = (
        "SELECT blob, language, packed, texts FROM passages ORDER BY 1, 2",
        "SELECT blob, language, facts, summary FROM blobs ORDER BY 1, 2",
        "SELECT f.path, s.qualname, s.kind, s.line_start FROM symbols s JOIN files f ON f.id = s.file ORDER BY 1, 2, 4",
        "SELECT a.qualname, e.type, b.qualname, e.line FROM edges e JOIN symbols a ON a.id = e.source"
        " JOIN symbols b ON b.id = e.target ORDER BY 1, 2, 3, 4",
    )
    with graph.store.reading() as sql:
        return [sql.execute(query).fetchall() for query in queries]
