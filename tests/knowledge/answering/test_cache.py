"""Cached answers: by exact words, audience and state of all sources; never stale, and never for another caller."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import InvalidInput
from clew.knowledge.answering.resolver import MAX_ENTRIES, MAX_QUESTION, SCHEMA, SCOPE, AnswerCache
from clew.knowledge.base import Knowledge, open_knowledge
from clew.knowledge.nodes.kinds import NodeDomain, NodeType
from clew.knowledge.nodes.node_graph import NodeGraph
from clew.knowledge.nodes.node_store import build_node
from clew.llm import open_embedder
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.query import SearchRequest
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.knowledge.code.repositories import make_repository, write

FILES = {
    "src/retry.py": (
        '"""Trying again."""\n\n\ndef backoff(attempt):\n    """Seconds to wait."""\n    return 2**attempt\n'
    ),
    "src/client.py": "from src.retry import backoff\n\n\ndef fetch(url):\n    return backoff(1)\n",
}
WHERE = "where is backoff"
WHY = "why did we choose postgres for billing"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "shop", FILES)


@pytest.fixture
async def knowledge(
    trail: Trail, clock: ManualClock, me: Principal, root: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Knowledge]:
    monkeypatch.setattr("clew.knowledge.code.graph.UNWATCHED_SECONDS", 0.0)
    found = open_knowledge(trail, clock, root.parent, root, me, open_embedder("wordllama"), None)
    await found.gather()
    yield found
    await found.close()


async def layers(knowledge: Knowledge, by: Principal, *questions: str, session_id: str = "") -> list[str]:
    return [(await knowledge.resolver.resolve(each, by=by, session_id=session_id)).layer for each in questions]


@pytest.mark.req("SYL-60", "SYL-61", "O10")
async def test_the_same_words_are_served_from_the_cache(knowledge: Knowledge, me: Principal) -> None:
    assert await layers(knowledge, me, WHERE, WHERE, "  Where is  backoff? ") == ["graph", "cache", "cache"]
    first = await knowledge.resolver.resolve(WHERE, by=me)
    assert (first.tokens, first.items[0].path) == (0, "src/retry.py")


@pytest.mark.req("SYL-60")
async def test_other_words_are_looked_up_again(knowledge: Knowledge, me: Principal) -> None:
    assert await layers(knowledge, me, WHERE, "where is the backoff", "where is fetch") == ["graph"] * 3


@pytest.mark.req("SYL-60", "SYL-63")
async def test_a_changed_file_invalidates_every_answer(knowledge: Knowledge, me: Principal, root: Path) -> None:
    await layers(knowledge, me, WHERE, "where is fetch")
    write(root, "src/retry.py", "# moved\n" + FILES["src/retry.py"])
    moved = await knowledge.resolver.resolve(WHERE, by=me)
    assert (moved.layer, moved.items[0].start) == ("graph", 5)
    assert await layers(knowledge, me, "where is fetch", "where is fetch") == ["graph", "cache"]


@pytest.mark.req("SYL-60", "BEY-06")
async def test_cached_citations_are_checked_even_where_no_look_at_all_files_is_due(
    knowledge: Knowledge, me: Principal, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.knowledge.code.graph.UNWATCHED_SECONDS", 3_600.0)
    await layers(knowledge, me, WHERE, WHERE)
    for number in range(1, 4):
        write(root, "src/retry.py", "# moved\n" * number + FILES["src/retry.py"])
        moved = await knowledge.resolver.resolve(WHERE, by=me)
        assert (moved.layer, moved.items[0].start) == ("graph", 4 + number)


@pytest.mark.req("SYL-60", "SYL-63")
async def test_new_and_deleted_files_are_in_the_next_answer(knowledge: Knowledge, me: Principal, root: Path) -> None:
    await layers(knowledge, me, WHERE, WHERE)
    write(root, "src/other.py", "def backoff(seconds):\n    return seconds\n")
    found = await knowledge.resolver.resolve(WHERE, by=me)
    assert {"src/retry.py", "src/other.py"} <= {item.path for item in found.items}
    (root / "src/retry.py").unlink()
    found = await knowledge.resolver.resolve(WHERE, by=me)
    assert "src/retry.py" not in {item.path for item in found.items}


@pytest.mark.req("SYL-64")
async def test_a_new_note_and_a_deleted_one_change_the_next_answer(
    knowledge: Knowledge, trail: Trail, me: Principal
) -> None:
    graph = NodeGraph(trail, me)
    one = await graph.add_node("Billing", NodeDomain.HISTORY, NodeType.DECISION, "We chose postgres for billing")
    assert await layers(knowledge, me, WHY, WHY) == ["graph", "cache"]
    two = await graph.add_node("Again", NodeDomain.HISTORY, NodeType.DECISION, "We chose postgres for billing, twice")
    more = await knowledge.resolver.resolve(WHY, by=me)
    assert {one.id, two.id} <= {item.id for item in more.items}
    record = await trail.records.get(one.id, by=me)
    await trail.records.delete(record.id, expect=record.version, by=me)
    less = await knowledge.resolver.resolve(WHY, by=me)
    assert one.id not in {item.id for item in less.items}
    assert two.id in {item.id for item in less.items}


@pytest.mark.req("SYL-60")
async def test_an_answer_is_for_its_owner_and_scopes_alone(
    knowledge: Knowledge, trail: Trail, me: Principal, stranger: Principal
) -> None:
    cleared = msgspec.structs.replace(me, scopes=frozenset({"vault"}))
    secret = build_node("Billing", NodeDomain.HISTORY, NodeType.DECISION, "We chose postgres: a turnip demanded it", {})
    await trail.records.create(msgspec.structs.replace(secret, scopes=("vault",)), by=cleared)
    for by, sees in ((cleared, True), (me, False), (stranger, False), (cleared, True)):
        found = await knowledge.resolver.resolve(WHY, by=by)
        assert ("turnip" in "".join(item.text for item in found.items)) is sees


@pytest.mark.req("SYL-64")
async def test_sessions_do_not_share_answers(knowledge: Knowledge, me: Principal) -> None:
    assert await layers(knowledge, me, WHERE, session_id="s1") == ["graph"]
    assert await layers(knowledge, me, WHERE, session_id="s2") == ["graph"]
    assert await layers(knowledge, me, WHERE, session_id="s1") == ["cache"]


@pytest.mark.req("SYL-89")
async def test_every_answer_leaves_a_breadcrumb(knowledge: Knowledge, trail: Trail, me: Principal) -> None:
    await layers(knowledge, me, WHERE, WHERE, "what did zzqx blorf", session_id="s1")
    await knowledge.resolver.flush()
    reader = msgspec.structs.replace(me, scopes=frozenset({SCOPE}))
    page = await trail.records.list(Selector(schema_name=SCHEMA), by=reader, oldest_first=True)
    first, second, third = (each.context for each in page.items)
    assert SCHEMA == "system.answer.v1"
    assert [first["layer"], second["layer"], third["status"]] == ["graph", "cache", "no_matches"]
    assert first["sources"][0]["place"].startswith("src/retry.py:4")
    assert (first["question"], first["kind"], first["tokens"]) == (WHERE, "code", 0)
    assert first["latency_ms"] > 0
    assert {"layer:cache", "session:s1"} <= set(page.items[1].tags)


@pytest.mark.req("SYL-89")
async def test_a_question_that_leaves_no_breadcrumb_costs_no_other_its_own(
    knowledge: Knowledge, trail: Trail, me: Principal
) -> None:
    await layers(knowledge, me, WHERE, "\u200b\u200b\u2060")
    await layers(knowledge, me, WHERE, session_id="no\x00session")
    await knowledge.resolver.flush()
    reader = msgspec.structs.replace(me, scopes=frozenset({SCOPE}))
    page = await trail.records.list(Selector(schema_name=SCHEMA), by=reader, oldest_first=True)
    assert [each.context["question"] for each in page.items] == [WHERE, "\u200b\u200b\u2060"]


@pytest.mark.req("SYL-89")
async def test_breadcrumbs_of_answers_appear_in_no_search(knowledge: Knowledge, trail: Trail, me: Principal) -> None:
    draft = Draft(title="How backoff waits", context={"text": "backoff waits twice as long"})
    await trail.records.create(draft, by=me)
    wanted = SearchRequest(text="where is backoff")
    before = await trail.index.search(wanted, by=me)
    await layers(knowledge, me, WHERE, "which function does backoff call")
    await knowledge.resolver.flush()
    assert (await trail.index.search(wanted, by=me)).hits == before.hits


@pytest.mark.req("SYL-89")
async def test_citations_are_lines_of_the_content_they_name(knowledge: Knowledge, me: Principal, root: Path) -> None:
    for question in (WHERE, "what calls backoff", "explain how fetch works"):
        answer = await knowledge.resolver.resolve(question, by=me)
        assert answer.items
        for number, item in enumerate(answer.items, 1):
            lines = (root / item.path).read_text().splitlines()
            assert 1 <= item.start <= item.end <= len(lines)
            assert item.blob == (await knowledge.code.symbol(item.path)).content_hash
            assert item.number == number
            assert 0 <= item.score <= 1


@pytest.mark.parametrize("question", ["", "  \n\t", "x" * (MAX_QUESTION + 1)])
async def test_an_empty_or_huge_question_is_refused(knowledge: Knowledge, me: Principal, question: str) -> None:
    with pytest.raises(InvalidInput):
        await knowledge.resolver.resolve(question, by=me)


@pytest.mark.req("O10")
async def test_the_least_recently_used_entries_leave_first(trail: Trail, me: Principal) -> None:
    cache: AnswerCache[int] = AnswerCache(trail)
    keys = [await cache.key(f"where is thing{number}", "1", me, "") for number in range(MAX_ENTRIES + 1)]
    for number, key in enumerate(keys[:MAX_ENTRIES]):
        cache.put(key, number)
    assert cache.get(keys[0]) == 0
    cache.put(keys[-1], MAX_ENTRIES)
    assert [cache.get(keys[at]) for at in (0, 1, MAX_ENTRIES)] == [0, None, MAX_ENTRIES]
    cache.clear()
    assert cache.get(keys[0]) is None
