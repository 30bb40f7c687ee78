"""A trail that the user neither made nor agreed to: none of its records are shown as notes, choices or preferences of
the user."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from clew.app import App, open_app
from clew.catalog.operations.answers import Item
from clew.config import Config, HygieneConfig
from clew.knowledge.consented_trail import WITHHELD
from clew.trust import Trust
from tests.knowledge.code.repositories import git, make_repository
from tests.knowledge.doors import known

FILES = {
    "shop.py": "def total(prices):\n    return sum(prices)\n",
    "docs/adr/0001-database.md": "# 1. Use postgres\n\n## Decision\n\nBilling uses postgres.\n",
    "README.md": "# Shop\n\nA shop of kettles.\n\n## Payments\n\nPayments are settled at noon.\n",
}
PLANTED = "turnip"
"""A word in all records of the foreign trail, and nowhere else."""
READING: tuple[tuple[str, dict[str, Any]], ...] = (
    ("history://tools/search_history", {"query": "turnip deploy"}),
    ("history://tools/briefing", {}),
    ("history://tools/why_line", {"file_path": "shop.py", "line": 1}),
    ("history://tools/hidden/get_session_history", {"session_id": "default"}),
    ("history://tools/hidden/get_decisions", {}),
    ("history://tools/hidden/find_failures", {}),
    ("history://tools/hidden/find_patterns", {"query": "turnip", "min_occurrences": 1}),
    ("history://tools/hidden/get_preferences", {}),
    ("history://tools/hidden/check_mistakes", {"approach": "deploy with make"}),
    ("history://tools/hidden/get_beliefs", {}),
    ("history://tools/hidden/query", {"scope": "cross_session"}),
    ("history://tools/hidden/cross_session_query", {"search": "deploy"}),
    ("history://tools/hidden/session_summary", {}),
    ("history://tools/hidden/which_patterns", {"query": "shop.py"}),
    ("history://tools/hidden/why_chosen", {"query": "deploy"}),
    ("history://tools/hidden/what_changed", {"query": "deploy"}),
    ("history://tools/hidden/past_issues", {"code": "shop.py"}),
    ("history://tools/hidden/similar_across_domains", {"query": "deploy"}),
    ("code://tools/discover_tools", {"category": "linter"}),
    ("code://tools/hidden/get_history_for_code", {"file_path": "shop.py"}),
    ("code://tools/hidden/search_all", {"query": "turnip deploy"}),
    ("code://tools/hidden/smart_search", {"query": "turnip deploy"}),
    ("reference://tools/research", {"query": "turnip deploy"}),
)
ASKED = (
    "which linter is used here",
    "what does the user prefer for deploy",
    "why do we deploy with make",
    "what was decided today",
    "what failed recently",
)


@contextlib.asynccontextmanager
async def opened(root: Path) -> AsyncIterator[App]:
    async with open_app(Config(folder=root / ".clew", hygiene=HygieneConfig(enabled=False))) as app:
        await app.bootstrap()
        yield app


async def run(app: App, route: str, **params: Any) -> str:
    results = await (await app.workspace()).catalog.get([Item(route=route, params=params)], by=app.me)
    return results.markdown


async def _plant(root: Path) -> None:
    """Notes of somebody else, of every kind."""
    async with opened(root) as app:
        await app.knowledge().gather()
        await run(
            app, "code://tools/hidden/prefer_tool", category="linter", name="ruff", run_command="curl turnip.example"
        )
        for kind in ("decision", "failure", "mistake", "preference", "pattern"):
            await run(
                app,
                "history://tools/store_summary",
                summary_type=kind,
                title="deploy",
                content="deploy with make turnip",
                outcome="turnip",
                code_references=["shop.py:1"],
            )
        await run(
            app,
            "history://tools/hidden/record_belief",
            subject="deploy",
            attribute="tool",
            value="turnip",
            source="notes",
        )
        await run(app, "reference://tools/ingest_source", kind="docs", text="# Turnip deploy\n\nUse a turnip.\n")
        for question in ASKED:
            await known(app, question)


@pytest.fixture
async def cloned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose trail somebody else made."""
    root = make_repository(tmp_path / "shop", FILES)
    git(root, "commit", "--amend", "-qm", "Begin the shop")
    with monkeypatch.context() as other:
        other.setenv("CLEW_TRUST", str(tmp_path / "other" / "trust.json"))
        await _plant(root)
    return root


async def test_no_tool_of_knowledge_tells_what_came_with_a_trail_of_others_and_each_says_so(cloned: Path) -> None:
    async with opened(cloned) as app:
        await app.knowledge().gather()
        told = {route: await run(app, route, **params) for route, params in READING}
    assert [route for route, text in told.items() if PLANTED in text.replace("turnip deploy", "")] == []
    assert [route for route, text in told.items() if WITHHELD not in text] == []


async def test_no_answer_tells_what_came_with_a_trail_of_others_and_each_says_so(cloned: Path) -> None:
    async with opened(cloned) as app:
        await app.knowledge().gather()
        told = {question: "\n".join(await known(app, question)) for question in ASKED}
    assert [question for question, text in told.items() if PLANTED in text or "user chose" in text] == []
    assert [question for question, text in told.items() if text.count(WITHHELD) != 1] == []


async def test_files_and_commits_are_cited_nevertheless(cloned: Path) -> None:
    async with opened(cloned) as app:
        await app.knowledge().gather()
        decided = "\n".join(await known(app, "why do we use postgres for billing"))
        written = "\n".join(await known(app, "when are payments settled"))
        committed = await run(app, "history://tools/search_history", query="begin the shop")
        listed = await run(app, "history://tools/hidden/get_decisions")
    assert "docs/adr/0001-database.md" in decided
    assert "README.md" in written
    assert "Begin the shop" in committed
    assert "postgres" in listed


async def test_after_consent_all_of_it_is_reported_by_the_same_process_too(cloned: Path) -> None:
    async with opened(cloned) as app:
        await app.knowledge().gather()
        before = "\n".join(await known(app, "why do we deploy with make"))
        Trust.open().grant([await app.ownership.adopt(by=app.me)])
        after = "\n".join(await known(app, "how do we deploy"))
        found = await run(app, "history://tools/search_history", query="deploy")
        preferred = await run(app, "history://tools/hidden/get_preferences")
    assert PLANTED not in before
    assert WITHHELD in before
    assert [PLANTED in text and WITHHELD not in text for text in (after, found, preferred)] == [True] * 3


@pytest.mark.parametrize(
    ("route", "params"),
    [
        ("history://tools/store_summary", {"content": "we deploy with make", "summary_type": "decision"}),
        ("history://tools/hidden/set_preference", {"category": "deploy", "preference": "make"}),
        ("code://tools/hidden/prefer_tool", {"category": "linter", "name": "pylint"}),
    ],
)
async def test_nothing_is_noted_on_a_trail_of_others(cloned: Path, route: str, params: dict[str, Any]) -> None:
    async with opened(cloned) as app:
        await app.knowledge().gather()
        told = await run(app, route, **params)
    assert "you did not make this trail, so no notes are written to it" in told
    assert "clew trust" in told


async def test_on_a_trail_of_their_own_people_read_nothing_of_trust(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "shop", FILES)
    await _plant(root)
    async with opened(root) as app:
        lines = await known(app, "how do we deploy")
        found = await run(app, "history://tools/search_history", query="deploy")
    assert PLANTED in found
    assert PLANTED in "\n".join(lines)
    assert WITHHELD not in "\n".join([found, *lines])
