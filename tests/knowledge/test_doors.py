"""Knowledge through the catalog of an app: answers, storage, marks, links and removal with `ask` and `get`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from clew.app import App
from clew.catalog.operations.answers import Item, Question
from clew.clock import ManualClock
from clew.config import HygieneConfig
from clew.knowledge.documents.findings import SCHEMA as RESEARCH
from clew.knowledge.documents.findings import ResearchRequest, keep_text
from clew.knowledge.history.links import WEIGHTS
from clew.knowledge.nodes.kinds import NodeDomain, NodeType
from clew.knowledge.nodes.node_graph import NodeGraph
from clew.knowledge.nodes.node_store import UNVERIFIED, build_node
from clew.trail.model.edge import EdgeType
from clew.trail.model.selector import Selector
from tests.knowledge.code.repositories import write
from tests.knowledge.doors import FILES, PATIENCE, ask, get, known, of_session, opened, store


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    async with opened(tmp_path) as found:
        await found.knowledge().gather()
        yield found


# -- tools for development -------------------------------------------------------------------------------------


@pytest.mark.req("SYL-35", "SYL-37")
async def test_ask_tells_which_linter_is_used_and_where_that_stands(app: App) -> None:
    [line, *_] = await known(app, "which linter is used here?")
    place = re.search(r"pyproject\.toml:(\d+)@([0-9a-f]{10})", line)
    assert line.endswith("`[tool.ruff]` · tool ruff: linter")
    assert place is not None
    assert FILES["pyproject.toml"].splitlines()[int(place[1]) - 1] == "[tool.ruff]"
    blob = (await app.knowledge().code.symbol("pyproject.toml")).content_hash
    assert (blob or "").startswith(place[2])


async def test_ask_says_that_no_type_checker_is_known_and_shows_the_tool_that_leads_on(app: App) -> None:
    answer = await ask(app, "which type checker is used here?")
    assert not answer.known
    assert answer.notes[0].startswith("Nothing in this folder answers that.")
    assert "code://tools/discover_tools" in answer.markdown


@pytest.mark.parametrize("query", ["where is the linter implemented", "add a linter", "how does backoff work"])
async def test_other_questions_are_not_taken_for_one_about_tools(app: App, query: str) -> None:
    assert not any("ruff is configured" in line for line in await known(app, query))


@pytest.mark.req("SYL-35", "SYL-39", "SYL-106", "O20")
async def test_unknown_facts_about_tools_are_named_and_can_be_added(app: App) -> None:
    answer = await get(app, "code://tools/discover_tools", category="type_checker")
    assert "Not known: which type checker is used" in answer
    assert "Suggested: mypy" in answer
    assert "code://tools/hidden/prefer_tool" in answer

    told = await get(app, "code://tools/hidden/prefer_tool", category="type_checker", name="pyright")
    assert "pyright as type checker for python" in told
    later = await get(app, "code://tools/discover_tools", of_session(app, "tomorrow"), category="type_checker")
    assert "pyright, type checker for python: The user chose it" in later
    assert "Not known" not in later


async def test_all_kinds_of_tools_are_reported_at_once_unless_one_is_named(app: App) -> None:
    answer = await get(app, "code://tools/discover_tools")
    kinds = ["linter", "formatter", "type checker", "test framework", "language server"]
    assert re.findall(r"^## (.+)$", answer, re.M) == ["Commands", *kinds]
    assert "- lint: `ruff check .` for *.py, *.pyi (ruff is configured in pyproject.toml:5)" in answer


@pytest.mark.req("SYL-35")
async def test_documents_that_agree_on_a_tool_settle_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as app:
        root = app.knowledge().root
        write(root, "docs/style.md", "# Style\n\nThe linter is not the formatter: black is the formatter for python.\n")
        write(root, "docs/work.md", "# Working here\n\nOur python formatter is black, run it before each commit.\n")
        await app.knowledge().gather()
        answer = await get(app, "code://tools/discover_tools", category="formatter")
    assert "black, formatter for python: black is recommended in docs/" in answer
    assert "Not known" not in answer


async def test_a_tool_outside_of_the_project_is_no_target(app: App) -> None:
    catalog = (await app.workspace()).catalog
    item = Item(route="code://tools/discover_tools", params={"path": "../.."})
    results = await catalog.get([item], by=app.me)
    assert results.summary.failed == 1
    assert "leads out of the project" in results.markdown


# -- dependencies and patterns ---------------------------------------------------------------------------------


@pytest.mark.req("SYL-26")
@pytest.mark.parametrize(
    ("query", "route"),
    [
        ("what does this project depend on?", "code://tools/analyze_dependencies"),
        ("depend", "code://tools/analyze_dependencies"),
        ("which patterns does the code follow", "code://tools/detect_patterns"),
    ],
)
async def test_ask_finds_the_tool_for_dependencies_and_patterns(app: App, query: str, route: str) -> None:
    answer = await (await app.workspace()).catalog.ask(Question(query=query), by=app.me)
    [tools] = [section.tools for section in answer.sections if section.domain == "code"]
    assert tools[0].route == route


@pytest.mark.req("SYL-26")
async def test_dependencies_and_patterns_are_reported_with_their_places(app: App) -> None:
    write(app.knowledge().root, "src/store.py", "class OrderRepository:\n    pass\n")
    await app.knowledge().gather()
    dependencies = await get(app, "code://tools/analyze_dependencies", target="src")
    assert '"redis": [\n      "src/cache.py:1"' in dependencies
    assert "src/store.py:1: class OrderRepository:" in await get(app, "code://tools/detect_patterns", language="python")


# -- stored notes are checked and linked -----------------------------------------------------------------------


@pytest.mark.req("SYL-78", "SYL-79", "SYL-96")
@pytest.mark.parametrize(
    ("content", "references", "reason"),
    [
        ("Waiting grows with each attempt", ["src/retry.py#backoff"], ""),
        ("we use redis for caching", [], ""),
        ("Moved the parser", ["src/gone.py"], "there is no file src/gone.py"),
        ("we use kafka for caching", ["src/cache.py"], "the code shows nothing of: we use kafka for caching"),
        ("It went well", [], "nothing in it can be checked against the code"),
    ],
)
async def test_a_summary_is_held_against_the_code_before_it_is_stored(
    app: App, content: str, references: list[str], reason: str
) -> None:
    id, told = await store(app, content, code_references=references)
    node = await NodeGraph(app.trail, app.me).get_node(id)
    [line] = [line for line in told.splitlines() if "Stored as" in line]
    assert node.verified is not bool(reason)
    assert (f"marked {UNVERIFIED}: {reason}." in line) is bool(reason)
    assert node.content == (f"{UNVERIFIED} {content}" if reason else content)


@pytest.mark.req("SYL-78", "SYL-79", "SYL-85")
async def test_a_summary_that_contradicts_a_decision_record_is_marked_and_listed(app: App) -> None:
    record = "# 1. Caching\n\n## Decision\n\nWe use memcached for caching.\n"
    write(app.knowledge().root, "docs/adr/0001-caching.md", record)
    await app.knowledge().gather()
    _, told = await store(app, "we use redis for caching")
    assert "known (decision:docs/adr/0001-caching.md): Caching" in told
    assert "contradicts 'Caching'" in await get(app, "reference://tools/hidden/list_conflicts")


@pytest.mark.req("SYL-98")
async def test_a_summary_is_linked_to_its_code_and_to_what_inspired_it(app: App) -> None:
    [document] = [
        each.node.id
        for each in await app.knowledge().search.search(NodeDomain.ACADEMIC, "payments settled at noon", by=app.me)
    ][:1]
    references = ["src/retry.py#backoff", "src/cache.py"]
    id, told = await store(
        app, "Wait longer each time", summary_type="pattern", code_references=references, inspired_by=[document]
    )
    assert "with 2 edges to code" in told
    edges = await app.trail.edges.of(id, by=app.me)
    assert sorted((each.type, each.weight) for each in edges if each.type != "references") == sorted(
        [
            (EdgeType.INSPIRED_BY.label, WEIGHTS[EdgeType.INSPIRED_BY]),
            *[(EdgeType.IMPLEMENTS_PATTERN.label, WEIGHTS[EdgeType.IMPLEMENTS_PATTERN])] * 2,
        ]
    )
    assert sum(each.type == "references" for each in edges) >= 2
    assert "src/retry.py" in await get(app, "history://tools/hidden/get_code_for_history", history_id=id)
    assert id in await get(app, "reference://tools/hidden/get_history_for_academic", academic_id=document)


async def test_only_references_can_inspire(app: App) -> None:
    id, _ = await store(app, "Wait longer", code_references=["src/retry.py"])
    catalog = (await app.workspace()).catalog
    params = {"content": "x", "summary_type": "decision", "inspired_by": [id]}
    results = await catalog.get([Item(route="history://tools/store_summary", params=params)], by=app.me)
    assert results.summary.failed == 1
    assert "is not a reference" in results.markdown


async def followers(app: App, id: str) -> list[str]:
    type = EdgeType.FOLLOWED_BY.label
    return [each.target for each in await app.trail.edges.of(id, by=app.me, types=[type], direction="outgoing")]


@pytest.mark.req("SYL-72", "SYL-96")
async def test_entries_of_a_session_follow_each_other_and_those_of_others_do_not(app: App) -> None:
    monday, tuesday = of_session(app, "monday"), of_session(app, "tuesday")
    first, _ = await store(app, "Chose a queue", monday)
    other, _ = await store(app, "Chose a lake", tuesday)
    second, _ = await store(app, "The queue is bounded", monday)
    outside = [(await store(app, text))[0] for text in ("Nobody's first", "Nobody's second")]
    third, _ = await store(app, "The queue is drained at the end", monday)
    assert [await followers(app, each) for each in (first, second, third)] == [[second], [third], []]
    assert [await followers(app, each) for each in (other, *outside)] == [[], [], []]


@pytest.mark.req("SYL-72")
async def test_entries_that_are_written_at_once_are_one_chain(app: App) -> None:
    by = of_session(app, "busy")
    stored = await asyncio.gather(*(store(app, f"Note number {n}", by) for n in range(12)))
    following = {id: await followers(app, id) for id, _ in stored}
    assert sorted(len(each) for each in following.values()) == [0, *[1] * 11]
    targets = [target for each in following.values() for target in each]
    assert len(set(targets)) == 11
    assert set(targets) < set(following)


# -- questions go to the domain that knows ---------------------------------------------------------------------


@pytest.mark.req("SYL-12", "SYL-98")
@pytest.mark.parametrize(
    ("question", "source"),
    [
        ("where is backoff", r"\[1\] src/retry\.py:4"),
        ("what did we decide about waiting for payments", r"\[1\] [0-9a-f-]{36}: "),
        ("/history waiting for payments", r"\[1\] [0-9a-f-]{36}: "),
    ],
)
async def test_a_plain_question_is_answered_by_the_domain_that_it_is_for(app: App, question: str, source: str) -> None:
    await store(app, "Waiting for payments grows with each attempt", code_references=["src/retry.py#backoff"])
    [first, *_] = await known(app, question)
    assert re.match(f"- {source}", first), first


@pytest.mark.req("SYL-64")
@pytest.mark.parametrize("question", ["what about payments", "what did we decide about payments"])
async def test_a_new_note_is_in_the_next_answer(app: App, question: str) -> None:
    await store(app, "Payments wait at noon", code_references=["src/retry.py"])
    assert not any("lanterns" in line for line in await known(app, question))
    await store(app, "Payments light lanterns", code_references=["src/retry.py"])
    assert any("lanterns" in line for line in await known(app, question))


async def test_an_answer_that_is_kept_for_one_is_not_shown_to_who_may_see_less(tmp_path: Path) -> None:
    async with opened(tmp_path, scopes=frozenset({"vault"})) as app:
        await app.knowledge().gather()
        draft = build_node("Safe", NodeDomain.HISTORY, NodeType.DECISION, "The vault opens with a turnip", {})
        await app.trail.records.create(msgspec.structs.replace(draft, scopes=("vault",)), by=app.me)
        question = "what did we decide about the vault"
        assert any("turnip" in line for line in await known(app, question))
        assert not any("turnip" in line for line in await known(app, question, of_session(app, "s1")))


# -- what has expired goes -------------------------------------------------------------------------------------


@pytest.mark.req("SYL-81")
async def test_records_that_expired_long_ago_are_removed_by_a_running_app(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.knowledge.base.MAX_SWEPT", 2)
    monkeypatch.setattr("clew.knowledge.base.SWEEP_SECONDS", 0.01)
    async with opened(tmp_path, clock, hygiene=HygieneConfig()) as app:
        graph = NodeGraph(app.trail, app.me)
        long_ago, just_now = clock.now() - timedelta(days=31), clock.now() - timedelta(days=1)
        gone = [
            await graph.add_node(f"old {n}", NodeDomain.HISTORY, NodeType.DECISION, "x", expires_at=long_ago)
            for n in range(5)
        ]
        stays = await graph.add_node("new", NodeDomain.HISTORY, NodeType.DECISION, "x", expires_at=just_now)

        async def keep(question: str) -> None:
            await keep_text(app.trail, question, ResearchRequest(question=question), "said", by=app.me, now=clock.now())

        for n in range(3):
            await keep(f"q{n}")
        clock.advance(days=2)
        await keep("late")
        async with app.keeping_fresh(), asyncio.timeout(PATIENCE):
            while await _are_there(app, [each.id for each in gone]) or len(await _research(app)) > 1:
                await asyncio.sleep(0.01)
        assert await _are_there(app, [stays.id]) == 1
        assert await _research(app) == ["late"]


async def _are_there(app: App, ids: Sequence[str]) -> int:
    page = await app.trail.records.list(Selector(schema_name="node.v1"), by=app.me, limit=1_000)
    return len({each.id for each in page.items} & set(ids))


async def _research(app: App) -> list[str]:
    page = await app.trail.records.list(Selector(schema_name=RESEARCH), by=app.me)
    return [each.title for each in page.items]


# -- when it takes long -------------------------------------------------------------------------------------


async def test_a_search_that_ran_out_of_time_is_reported(app: App) -> None:
    app.knowledge().patience = 0.0
    assert "could not be looked up in time" in " ".join(await known(app, "where is backoff"))
    app.knowledge().patience = PATIENCE
    assert "src/retry.py:4" in " ".join(await known(app, "where is backoff"))


@pytest.mark.req("SYL-96")
async def test_a_note_on_a_symbol_that_does_not_exist_is_unverified(app: App) -> None:
    params = {"content": "Backoff is doubled", "summary_type": "decision"}
    missing = await get(app, "history://tools/store_summary", code_references=["src/retry.py#nosuch"], **params)
    assert UNVERIFIED in missing
    assert "there is no symbol src/retry.py#nosuch" in missing
    there = await get(app, "history://tools/store_summary", code_references=["src/retry.py#backoff"], **params)
    assert "the code has what it refers to" in there


@pytest.mark.req("SYL-96")
async def test_keys_in_the_outcome_of_a_failure_are_masked(app: App) -> None:
    key = "sk-proj-" + "a1B2" * 12
    params = {"content": "The payment call failed", "summary_type": "failure", "outcome": f"Set the key to {key}"}
    stored = await get(app, "history://tools/store_summary", **params)
    found = "\n".join(await known(app, "which failures did we have with the payment call"))
    assert "payment call failed" in found
    page = await app.trail.records.list(Selector(), by=app.me, limit=500)
    assert key not in stored + found + str([each.context for each in page.items])


async def test_a_caller_who_may_only_write_and_read_gets_answers_and_notes(app: App) -> None:
    by = msgspec.structs.replace(app.me, agent_id="helper", roles=frozenset({"emitter", "subscriber"}))
    params = {"content": "We chose backoff", "summary_type": "decision", "code_references": ["src/retry.py#backoff"]}
    assert "Stored as" in await get(app, "history://tools/store_summary", by, **params)
    assert await known(app, "where is backoff", by)
