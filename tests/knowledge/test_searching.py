"""Search over the domains of knowledge (SYL-92, SYL-93, SYL-94) and the shelves behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from clew.access import Principal
from clew.errors import InvalidInput, NotFound
from clew.knowledge.membership import REBUILD_AT
from clew.knowledge.searching import PER_DOMAIN, Shelves, search, search_all, smart_search
from clew.knowledge.shelves import CodeShelf, NodeShelf
from clew.llm.tokens import count_tokens
from clew.trail.kinds import NodeDomain, NodeType
from clew.trail.nodes import NodeFilter, NodeGraph
from clew.trail.store import Trail
from tests.knowledge.code_in_memory import Code
from tests.knowledge.nodes import ACADEMIC, CODE, HISTORY


class Counted:
    """The index of a trail, with its searches counted."""

    def __init__(self, trail: Trail, monkeypatch: pytest.MonkeyPatch) -> None:
        self.searches, ask = 0, trail.index.search

        async def counted(*asked: Any, **more: Any) -> Any:
            self.searches += 1
            return await ask(*asked, **more)

        monkeypatch.setattr(trail.index, "search", counted)


@pytest.fixture
def graph(trail: Trail, me: Principal) -> NodeGraph:
    return NodeGraph(trail, me)


@pytest.fixture
def code() -> Code:
    return Code({"retry": "waits and tries a request again", "parser": "reads tokens of a text"})


@pytest.fixture
async def shelves(trail: Trail, me: Principal, graph: NodeGraph, code: Code) -> AsyncIterator[Shelves]:
    await graph.add_node("Retries", HISTORY, NodeType.DECISION, "A request is tried again three times", verified=True)
    await graph.add_node("Colours", HISTORY, NodeType.DECISION, "Buttons are green")
    await graph.add_node("Backoff", ACADEMIC, NodeType.PAPER, "Exponential backoff spreads load", verified=True)
    history, academic = NodeShelf(trail, HISTORY, me), NodeShelf(trail, ACADEMIC, me)
    yield {CODE: CodeShelf(code), HISTORY: history, ACADEMIC: academic}
    await history.close()
    await academic.close()


@pytest.mark.req("SYL-92")
@pytest.mark.req("O2")
@pytest.mark.parametrize("domain", [HISTORY, ACADEMIC, CODE])
async def test_what_a_domain_cannot_have_is_not_looked_for(
    shelves: Shelves, trail: Trail, code: Code, me, clock, monkeypatch, domain: NodeDomain
) -> None:
    counted = Counted(trail, monkeypatch)
    answer = await search(shelves, domain, "kubernetes ingress zebra", by=me, at=clock.now())
    assert (counted.searches, code.searches) == (0, 0)
    shown = msgspec.to_builtins(answer)
    assert set(shown) == {"status", "hint"}
    assert shown["status"] == "no_matches"
    assert shown["hint"]
    assert count_tokens(msgspec.json.encode(answer).decode()) <= 30


@pytest.mark.req("SYL-92")
async def test_a_miss_names_the_domains_that_have_something(shelves: Shelves, me, clock) -> None:
    answer = await search(shelves, ACADEMIC, "tries a request again", by=me, at=clock.now())
    assert answer.status == "no_matches"
    assert answer.hint == "No academic on this. Try code, history."
    assert count_tokens(msgspec.json.encode(answer).decode()) <= 30


@pytest.mark.req("SYL-92")
async def test_a_hit_names_the_other_domains_that_have_something(shelves: Shelves, me, clock) -> None:
    found = await search(shelves, CODE, "request tried again", by=me, at=clock.now())
    assert found.status == "ok"
    assert [each.source for each in found.results] == ["src/retry.py:1"]
    assert found.also_exists_in == ("history",)
    assert found.suggestions == ("Related content in: history",)
    alone = await search(shelves, HISTORY, "green buttons", by=me, at=clock.now())
    assert alone.results[0].name == "Colours"
    assert (alone.also_exists_in, alone.suggestions) == ((), ())


@pytest.mark.req("SYL-92")
async def test_one_known_word_of_many_is_enough_for_a_search(shelves: Shelves, me, clock) -> None:
    found = await search(shelves, HISTORY, "zebra buttons kubernetes", by=me, at=clock.now(), limit=1)
    assert [each.name for each in found.results] == ["Colours"]


@pytest.mark.req("SYL-91")
@pytest.mark.req("SYL-92")
async def test_what_was_just_written_is_found_by_the_next_search(shelves: Shelves, graph: NodeGraph, me, clock) -> None:
    before = await search(shelves, HISTORY, "kubernetes", by=me, at=clock.now())
    await graph.add_node("Cluster", HISTORY, NodeType.DECISION, "Kubernetes runs it")
    after = await search(shelves, HISTORY, "kubernetes", by=me, at=clock.now())
    assert (before.status, after.status) == ("no_matches", "ok")
    assert after.results[0].name == "Cluster"


@pytest.mark.req("SYL-79")
async def test_a_finding_shows_the_mark_of_what_is_unverified_and_no_keys(shelves: Shelves, graph, me, clock) -> None:
    secret = "sk-ant-api03-" + "a1B2" * 20
    await graph.add_node(
        "Kafka\n[1] forged", HISTORY, NodeType.DECISION, f"Kafka, key {secret}", metadata={"needs_review": True}
    )
    [found] = (await search(shelves, HISTORY, "Kafka", by=me, at=clock.now(), limit=1)).results
    assert found.snippet.startswith("[UNVERIFIED] Kafka")
    assert found.trust == 20
    assert secret not in msgspec.json.encode(found).decode()
    assert "\n" not in found.name


@pytest.mark.req("SYL-93")
@pytest.mark.req("O2")
async def test_one_search_over_all_domains_equals_three(shelves: Shelves, me, clock) -> None:
    query = "tries a request again with backoff"
    found = await search_all(shelves, query, by=me, at=clock.now())
    assert (found.query, list(found.results)) == (query, ["code", "history", "academic"])
    for domain in NodeDomain:
        alone = await search(shelves, domain, query, by=me, at=clock.now(), limit=PER_DOMAIN)
        assert found.results[domain.label].results == alone.results
        assert found.results[domain.label].status == alone.status == "ok"


@pytest.mark.req("SYL-93")
async def test_each_domain_has_its_status_its_limit_and_may_be_left_out(shelves: Shelves, graph, me, clock) -> None:
    for at in range(8):
        await graph.add_node(f"Button {at}", HISTORY, NodeType.DECISION, "Buttons are large")
    found = await search_all(shelves, "buttons", by=me, at=clock.now())
    assert {name: each.status for name, each in found.results.items()} == {
        "code": "no_matches",
        "history": "ok",
        "academic": "no_matches",
    }
    assert len(found.results["history"].results) == 5
    two = await search_all(shelves, "buttons", by=me, at=clock.now(), domains=["history", "code"], limit_per_domain=2)
    assert list(two.results) == ["history", "code"]
    assert len(two.results["history"].results) == 2
    lone = await search_all({HISTORY: shelves[HISTORY]}, "buttons", by=me, at=clock.now())
    assert lone.results["code"].status == "no_matches"
    with pytest.raises(InvalidInput) as refused:
        await search_all(shelves, "buttons", by=me, at=clock.now(), domains=["weather"])
    assert "code, history, academic" in str(refused.value.hint)


@pytest.mark.req("SYL-93")
async def test_older_history_stands_after_newer_that_is_as_close(shelves: Shelves, graph, clock, me) -> None:
    await graph.add_node("Zebra", HISTORY, NodeType.DECISION, "Zebra crossing")
    clock.advance(days=170)
    await graph.add_node("Zebra", HISTORY, NodeType.DECISION, "Zebra crossing")
    found = (await search_all(shelves, "zebra", by=me, at=clock.now())).results["history"].results
    assert "170 days old" in found[1].warning
    assert found[0].score > 3 * found[1].score


async def fill(graph: NodeGraph, number: int = 30) -> None:
    for at in range(number):
        text = f"Lanterns of size {at} hang in the hall. " * (20 if at % 5 == 0 else 1)
        await graph.add_node(f"Lantern {at}", HISTORY, NodeType.HISTORY_ENTRY, text)


@pytest.mark.req("SYL-94")
@pytest.mark.req("O2")
@pytest.mark.parametrize("budget", [0, 1, 60, 200, 700, 1_000, 5_000])
async def test_a_smart_search_stays_in_its_budget_and_repeats_nothing(shelves, graph, me, clock, budget: int) -> None:
    await fill(graph)
    for thoroughness in ("quick", "moderate", "thorough"):
        found = await smart_search(
            shelves, "lanterns", by=me, at=clock.now(), token_budget=budget, thoroughness=thoroughness
        )
        ids = [each.id for each in found.results]
        assert found.tokens_used <= found.budget == budget
        assert len(ids) == len(set(ids))
        assert sum(count_tokens(msgspec.json.encode(each).decode()) for each in found.results) <= max(budget, 1)


@pytest.mark.req("SYL-94")
async def test_a_thorough_search_brings_more_than_a_quick_one(shelves: Shelves, graph, me, clock) -> None:
    await fill(graph)
    found = {
        each: await smart_search(shelves, "lanterns", by=me, at=clock.now(), token_budget=50_000, thoroughness=each)
        for each in ("quick", "moderate", "thorough")
    }
    assert [len(each.results) for each in found.values()] == [3, 8, 20]
    thorough, quick = ({one.id for one in found[each].results} for each in ("thorough", "quick"))
    assert quick <= thorough


@pytest.mark.req("SYL-94")
async def test_a_smart_search_takes_from_all_domains_and_ends_when_there_is_no_more(shelves, me, clock) -> None:
    found = await smart_search(
        shelves, "tries a request again with backoff", by=me, at=clock.now(), thoroughness="thorough"
    )
    assert {each.domain for each in found.results} == {"code", "history", "academic"}
    assert len(found.results) <= 4
    assert found.status == "ok"


@pytest.mark.req("SYL-94")
async def test_a_smart_search_for_what_nobody_has_looks_nowhere(shelves, trail, me, clock, code, monkeypatch) -> None:
    counted = Counted(trail, monkeypatch)
    found = await smart_search(shelves, "kubernetes", by=me, at=clock.now())
    assert (found.status, found.results, found.tokens_used) == ("no_matches", (), 0)
    assert found.hint
    assert (counted.searches, code.searches) == (0, 0)


async def test_a_shelf_gives_the_nodes_of_its_own_domain(shelves: Shelves, graph, me, stranger) -> None:
    paper = await graph.add_node("Paper", ACADEMIC, NodeType.PAPER, "x")
    assert (await shelves[ACADEMIC].get(paper.id, by=me)).name == "Paper"
    for shelf, by in ((shelves[HISTORY], me), (shelves[ACADEMIC], stranger)):
        with pytest.raises(NotFound):
            await shelf.get(paper.id, by=by)
    code_node = await shelves[CODE].get("code:src/retry.py#retry", by=me)
    assert code_node.path == "src/retry.py"


async def test_a_shelf_filters_leaves_out_and_says_how_near(shelves: Shelves, graph, me) -> None:
    kept = await graph.add_node("Buttons again", HISTORY, NodeType.OUTCOME, "Buttons are blue", session_id="s1")
    outcomes = await shelves[HISTORY].search("buttons", by=me, filter=NodeFilter(node_types=[NodeType.OUTCOME]))
    assert [each.node.id for each in outcomes] == [kept.id]
    rest = await shelves[HISTORY].search("buttons", by=me, exclude={kept.id})
    assert kept.id not in {each.node.id for each in rest}
    near = [each.similarity for each in await shelves[HISTORY].search("buttons", by=me)]
    assert near == sorted(near, reverse=True)
    assert 0 < near[0] <= 1
    assert await shelves[CODE].search("parser", by=me, filter=NodeFilter(session_id="s1")) == []
    functions = NodeFilter(node_types=[NodeType.FUNCTION])
    assert len(await shelves[CODE].search("parser", by=me, filter=functions)) == 1
    assert await shelves[CODE].search("parser", by=me, filter=NodeFilter(node_types=[NodeType.FILE])) == []


@pytest.mark.req("SYL-91")
async def test_the_filter_tells_nobody_of_what_they_may_not_see(trail: Trail, stranger: Principal) -> None:
    keeper = Principal(owner_id="acme", agent_id="ann", scopes=frozenset({"secret"}))
    plain = Principal(owner_id="acme", agent_id="bob")
    shelf = NodeShelf(trail, HISTORY, keeper)
    assert shelf.contains("anything", by=plain), "before anything was read, nothing can be said"
    graph = NodeGraph(trail, keeper)
    await graph.add_node("Takeover", HISTORY, NodeType.DECISION, "Buy them", scopes=("secret",))
    await graph.add_node("Lunch", HISTORY, NodeType.DECISION, "Pizza")
    await shelf.catch_up()
    assert shelf.contains("takeover", by=keeper)
    assert not shelf.contains("takeover", by=plain)
    assert shelf.contains("lunch", by=plain)
    assert shelf.contains("takeover", by=stranger), "of other owners nothing is known"


@pytest.mark.req("SYL-91")
async def test_a_shelf_makes_its_filter_anew_in_the_background_and_misses_nothing(trail: Trail, me: Principal) -> None:
    shelf, graph = NodeShelf(trail, HISTORY, me), NodeGraph(trail, me)
    await shelf.catch_up()
    letters = "bcdfghjklm"
    words = ["z" + "".join(letters[int(digit)] for digit in f"{at:05d}") + "z" for at in range(REBUILD_AT + 200)]
    await graph.add_node("many", HISTORY, NodeType.HISTORY_ENTRY, " ".join(words))
    await shelf.catch_up()
    assert shelf.is_rebuilding
    await graph.add_node("meanwhile", HISTORY, NodeType.HISTORY_ENTRY, "written meanwhile")
    await shelf.catch_up()
    async with asyncio.timeout(30):
        await shelf.settled()
    assert not shelf.is_rebuilding
    assert all(shelf.contains(word, by=me) for word in (*words[::50], "many", "meanwhile"))
    await shelf.close()
