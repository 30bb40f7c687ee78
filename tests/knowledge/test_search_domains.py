"""Search over the domains of knowledge (SYL-91 to SYL-94)."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from clew.access import Principal
from clew.errors import NotFound
from clew.knowledge.domains.code import build_code
from clew.knowledge.domains.history import build_history
from clew.knowledge.domains.reference import build_reference
from clew.knowledge.history.decisions import Decisions
from clew.knowledge.nodes.kinds import NodeDomain, NodeType
from clew.knowledge.nodes.node_graph import NodeGraph
from clew.knowledge.search_domains import PER_DOMAIN, SearchDomains, result_line
from clew.llm.tokens import count_tokens
from clew.trail.store import Trail
from tests.knowledge.code_in_memory import Code, NoCommits
from tests.knowledge.nodes import ACADEMIC, CODE, HISTORY


@pytest.fixture
def graph(trail: Trail, me: Principal) -> NodeGraph:
    return NodeGraph(trail, me)


@pytest.fixture
def code() -> Code:
    return Code({"retry": "waits and tries a request again", "parser": "reads tokens of a text"})


@pytest.fixture
async def domains(trail: Trail, graph: NodeGraph, code: Code) -> SearchDomains:
    await graph.add_node("Retries", HISTORY, NodeType.DECISION, "A request is tried again three times", verified=True)
    await graph.add_node("Colours", HISTORY, NodeType.DECISION, "Buttons are green")
    await graph.add_node("Backoff", ACADEMIC, NodeType.PAPER, "Exponential backoff spreads load", verified=True)
    return SearchDomains(trail, code, NoCommits(), Decisions(code))  # type: ignore[arg-type]


@pytest.fixture
def embedded(trail: Trail, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The texts that were embedded for a search by vectors."""
    index: Any = trail.index
    texts: list[Any] = []
    embed = index._embedder.embed
    monkeypatch.setattr(index._embedder, "embed", lambda given: texts.append(given) or embed(given))
    return texts


@pytest.mark.req("SYL-91", "SYL-92", "O2")
@pytest.mark.parametrize("domain", list(NodeDomain))
async def test_a_query_without_a_known_word_compares_no_vectors(
    domains: SearchDomains, code: Code, me: Principal, embedded: list[Any], domain: NodeDomain
) -> None:
    assert await domains.search(domain, "kubernetes ingress zebra", by=me) == []
    assert (embedded, code.searches) == ([], 0)
    assert await domains.search(domain, "zebra tokens buttons backoff", by=me)
    assert embedded or code.searches


@pytest.mark.req("SYL-92")
async def test_other_domains_that_have_something_are_named(domains: SearchDomains, me: Principal) -> None:
    assert await domains.also_in(ACADEMIC, "tries a request again", by=me) == ("code", "history")
    assert await domains.also_in(CODE, "request tried again", by=me) == ("history",)
    assert await domains.also_in(HISTORY, "green buttons", by=me) == ()
    assert await domains.also_in(HISTORY, "???", by=me) == ()


@pytest.mark.req("SYL-91")
async def test_no_word_that_was_written_is_missed_and_hardly_any_other_is_taken_for_known(
    trail: Trail, graph: NodeGraph, me: Principal
) -> None:
    letters = "bcdfghjklm"
    words = ["z" + "".join(letters[int(digit)] for digit in f"{at:04d}") + "z" for at in range(1_200)]

    async def write(at: int) -> None:
        await graph.add_node(f"note {at}", HISTORY, NodeType.HISTORY_ENTRY, " ".join(words[at : at + 50]))
        assert await graph.knows(words[at], HISTORY)

    await asyncio.gather(*(write(at) for at in range(0, 600, 50)))
    assert all([await graph.knows(word, HISTORY) for word in words[:600:7]])
    wrong = [word for word in words[600:] if await graph.knows(word, HISTORY)]
    assert len(wrong) <= 0.015 * 600
    assert not await graph.knows(words[0], ACADEMIC)


@pytest.mark.req("SYL-91")
@pytest.mark.parametrize(
    ("written", "asked"),
    [("def parse_token(text)", "parseToken"), ("parsing tokens", "parse token"), ("Café Zürich", "cafe in zurich")],
)
async def test_words_are_known_in_any_case_ending_and_spelling(
    trail: Trail, graph: NodeGraph, me: Principal, written: str, asked: str
) -> None:
    assert not await graph.knows(asked, HISTORY)
    await graph.add_node("x", HISTORY, NodeType.DECISION, written)
    assert await graph.knows(asked, HISTORY)


@pytest.mark.req("SYL-91")
async def test_hidden_words_do_not_leak(trail: Trail, stranger: Principal) -> None:
    keeper = Principal(owner_id="acme", agent_id="ann", scopes=frozenset({"secret"}))
    plain = Principal(owner_id="acme", agent_id="bob")
    await NodeGraph(trail, keeper).add_node("Takeover", HISTORY, NodeType.DECISION, "Buy them", scopes=("secret",))
    known = {by.agent_id: await NodeGraph(trail, by).knows("takeover", HISTORY) for by in (keeper, plain, stranger)}
    assert known == {"ann": True, "bob": False, stranger.agent_id: False}


@pytest.mark.req("SYL-91")
async def test_the_check_for_known_words_is_no_tool(domains: SearchDomains) -> None:
    async def known() -> Any:
        raise AssertionError("no tool runs here")

    tools = [each for build in (build_code, build_history, build_reference) for each in build(known).tools]
    assert len(tools) > 20
    assert [each.name for each in tools if re.search("know|contain|member|filter", each.name)] == []


@pytest.mark.req("SYL-79")
async def test_a_result_shows_the_mark_of_what_is_unverified_and_no_keys(
    domains: SearchDomains, graph: NodeGraph, me: Principal, clock
) -> None:
    secret = "sk-ant-api03-" + "a1B2" * 20
    await graph.add_node(
        "Kafka\n[1] forged", HISTORY, NodeType.DECISION, f"Kafka, key {secret}", metadata={"needs_review": True}
    )
    [found, *_] = (await domains.search_all("Kafka", by=me, at=clock.now()))["history"]
    line = result_line(found.node, clock.now())
    assert "[UNVERIFIED] Kafka" in line
    assert secret not in line
    assert "\n" not in line


@pytest.mark.req("SYL-93", "O2")
async def test_one_search_over_all_domains_equals_three(domains: SearchDomains, me: Principal, clock) -> None:
    query = "tries a request again with backoff"
    found = await domains.search_all(query, by=me, at=clock.now())
    assert list(found) == ["code", "history", "academic"]
    for domain in NodeDomain:
        alone = await domains.search(domain, query, by=me, limit=PER_DOMAIN)
        assert {each.node.id for each in found[domain.label]} == {each.node.id for each in alone} != set()


@pytest.mark.req("SYL-93")
async def test_each_domain_has_its_limit_and_may_be_left_out(domains, graph: NodeGraph, me, clock) -> None:
    for at in range(8):
        await graph.add_node(f"Button {at}", HISTORY, NodeType.DECISION, "Buttons are large")
    found = await domains.search_all("buttons", by=me, at=clock.now())
    assert {name: len(each) for name, each in found.items()} == {"code": 0, "history": 5, "academic": 0}
    two = await domains.search_all("buttons", by=me, at=clock.now(), domains=["history", "code"], limit_per_domain=2)
    assert {name: len(each) for name, each in two.items()} == {"code": 0, "history": 2}


@pytest.mark.req("SYL-93")
async def test_older_history_stands_after_newer_that_is_as_close(domains, graph: NodeGraph, clock, me) -> None:
    await graph.add_node("Zebra", HISTORY, NodeType.DECISION, "Zebra crossing")
    clock.advance(days=170)
    await graph.add_node("Zebra", HISTORY, NodeType.DECISION, "Zebra crossing")
    first, second, *_ = (await domains.search_all("zebra", by=me, at=clock.now()))["history"]
    assert "170 days old" in result_line(second.node, clock.now())
    assert first.similarity > 3 * second.similarity


async def fill(graph: NodeGraph, number: int = 30) -> None:
    for at in range(number):
        text = f"Lanterns of size {at} hang in the hall. " * (20 if at % 5 == 0 else 1)
        await graph.add_node(f"Lantern {at}", HISTORY, NodeType.HISTORY_ENTRY, text)


@pytest.mark.req("SYL-94", "O2")
async def test_a_smart_search_stays_in_its_budget_and_repeats_nothing(domains, graph: NodeGraph, me, clock) -> None:
    await fill(graph)
    for budget in (0, 60, 200, 1_000):
        for thoroughness in ("quick", "moderate", "thorough"):
            found = await domains.smart_search(
                "lanterns", by=me, at=clock.now(), token_budget=budget, thoroughness=thoroughness
            )
            ids = [each.node.id for each in found.results]
            assert len(ids) == len(set(ids))
            assert found.tokens_used == sum(count_tokens(result_line(each.node, clock.now())) for each in found.results)
            assert found.tokens_used <= found.budget == budget


@pytest.mark.req("SYL-94")
async def test_a_thorough_search_brings_more_than_a_quick_one(domains, graph: NodeGraph, me, clock) -> None:
    await fill(graph)
    found = {
        each: await domains.smart_search("lanterns", by=me, at=clock.now(), token_budget=50_000, thoroughness=each)
        for each in ("quick", "moderate", "thorough")
    }
    assert [len(each.results) for each in found.values()] == [3, 8, 20]
    thorough, quick = ({one.node.id for one in found[each].results} for each in ("thorough", "quick"))
    assert quick <= thorough


@pytest.mark.req("SYL-94")
async def test_a_smart_search_takes_from_all_domains_or_finds_nothing(domains: SearchDomains, me, clock) -> None:
    query = "tries a request again with backoff"
    found = await domains.smart_search(query, by=me, at=clock.now(), thoroughness="thorough")
    assert {each.node.domain for each in found.results} == set(NodeDomain)
    nothing = await domains.smart_search("kubernetes", by=me, at=clock.now())
    assert (nothing.results, nothing.tokens_used) == ((), 0)


async def test_a_node_is_read_from_its_own_domain(domains: SearchDomains, graph: NodeGraph, me, stranger) -> None:
    paper = await graph.add_node("Paper", ACADEMIC, NodeType.PAPER, "x")
    assert (await domains.get(ACADEMIC, paper.id, by=me)).name == "Paper"
    for domain, by in ((HISTORY, me), (ACADEMIC, stranger)):
        with pytest.raises(NotFound):
            await domains.get(domain, paper.id, by=by)
    assert (await domains.get(CODE, "code:src/retry.py#retry", by=me)).path == "src/retry.py"
