"""The four questions across code, history and references, through the catalog and without a model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest

from clew.app import App
from clew.knowledge.nodes.kinds import NodeDomain
from tests.knowledge.code.repositories import git, write
from tests.knowledge.doors import get, of_session, opened, store

HIDDEN = "history://tools/hidden"


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    async with opened(tmp_path) as found:
        root = found.knowledge().root
        write(root, "CHANGELOG.md", "# 1.0.0\n\n- Changed: the backoff waits longer now\n")
        git(root, "add", "-A")
        git(root, "commit", "-qm", "Wait longer in backoff\n\nFixes #12")
        await found.knowledge().gather()
        yield found


async def document_id(app: App) -> str:
    found = await app.knowledge().search.search(NodeDomain.ACADEMIC, "payments settled at noon", by=app.me)
    return found[0].node.id


@pytest.mark.req("SYL-77")
async def test_which_patterns_does_this_code_implement(app: App) -> None:
    await store(app, "Growing pause", summary_type="pattern", code_references=["src/retry.py#backoff"])
    shown = await get(app, f"{HIDDEN}/which_patterns", query="backoff")
    assert "src/retry.py" in shown
    assert "history: " in shown
    assert "Growing pause" in shown
    assert "No pattern is linked" in await get(app, f"{HIDDEN}/which_patterns", query="backoff", path="docs/*")


@pytest.mark.req("SYL-77")
async def test_why_was_this_chosen_names_grounds_and_code_and_no_changelog(app: App) -> None:
    document = await document_id(app)
    await store(app, "We chose backoff over a queue", code_references=["src/retry.py#backoff"], inspired_by=[document])
    shown = await get(app, f"{HIDDEN}/why_chosen", query="why did we choose backoff")
    assert "We chose backoff over a queue" in shown
    assert "code: backoff" in shown or "code: src/retry.py" in shown or "  code: " in shown
    assert "  reference: " in shown
    assert "README.md" in shown
    assert "waits longer now" not in shown


@pytest.mark.req("SYL-77")
async def test_a_question_about_last_week_lists_entries_and_commits(app: App) -> None:
    await store(app, "Backoff is bounded now", summary_type="feature", code_references=["src/retry.py"])
    shown = await get(app, f"{HIDDEN}/what_changed", query="backoff")
    assert "Backoff is bounded now" in shown
    assert "Wait longer in backoff" in shown
    of_file = await get(app, f"{HIDDEN}/what_changed", path="CHANGELOG.md")
    assert "Wait longer in backoff" in of_file
    assert "Nothing changed in 7 days" in await get(app, f"{HIDDEN}/what_changed", path="nowhere.py")


@pytest.mark.req("SYL-77")
async def test_past_issues_are_entries_and_commits_that_fix(app: App) -> None:
    await store(app, "Backoff overflowed", summary_type="failure", code_references=["src/retry.py#backoff"])
    noted = await get(app, f"{HIDDEN}/past_issues", code="src/retry.py#backoff")
    assert "Backoff overflowed" in noted
    assert "Wait longer in backoff" in await get(app, f"{HIDDEN}/past_issues", code="CHANGELOG.md")
    assert "No issue is known" in await get(app, f"{HIDDEN}/past_issues", code="src/cache.py")


@pytest.mark.req("SYL-77")
async def test_similar_nodes_come_with_their_neighbours_and_a_node_shows_its_own(app: App) -> None:
    id, _ = await store(app, "Backoff doubles", summary_type="decision", code_references=["src/retry.py#backoff"])
    shown = await get(app, f"{HIDDEN}/similar_across_domains", query="backoff doubles", k=5)
    assert "Backoff doubles" in shown
    assert "  code: " in shown
    assert "Backoff doubles" in await get(app, f"{HIDDEN}/get_related", of="src/retry.py#backoff")
    assert "src/retry.py" in await get(app, f"{HIDDEN}/get_related", of=id)


@pytest.mark.req("SYL-96")
async def test_decisions_are_those_that_somebody_took(app: App) -> None:
    await store(app, "We chose backoff over a queue")
    shown = await get(app, f"{HIDDEN}/get_decisions", of_session(app, "later"), query="backoff")
    assert "We chose backoff over a queue" in shown
    assert "waits longer now" not in shown


@pytest.mark.req("SYL-76")
async def test_similar_nodes_leave_the_node_out_and_edges_are_followed(app: App) -> None:
    first, _ = await store(app, "Backoff doubles after each attempt", code_references=["src/retry.py#backoff"])
    second, _ = await store(app, "Backoff doubles after each failed attempt")
    near = await get(app, f"{HIDDEN}/similar_nodes", of=first, k=5)
    assert second in near
    assert first not in near
    named = await get(app, f"{HIDDEN}/follow_edges", of=first, edge_type="referenced_in")
    assert "src/retry.py" in named
    back = await get(app, f"{HIDDEN}/follow_edges", of="src/retry.py#backoff", edge_type="references", depth=2)
    assert first in back
    assert "There is none" in await get(app, f"{HIDDEN}/follow_edges", of=second, edge_type="inspired_by")


@pytest.mark.req("SYL-81")
async def test_a_superseded_entry_leads_to_the_one_that_counts_now(app: App) -> None:
    ids = [(await store(app, text))[0] for text in ("We poll", "We listen", "We stream")]
    for old, new in pairwise(ids):
        assert f"{old} is superseded by {new}" in await get(app, f"{HIDDEN}/supersede", old=old, new=new)
    assert "We stream" in await get(app, f"{HIDDEN}/get_current", of=ids[0])
    older = await get(app, f"{HIDDEN}/follow_edges", of=ids[2], edge_type="supersedes", depth=2)
    assert "We listen" in older
    assert "We poll" in older
