"""Definitions, files, sections and passages: results of plain questions, and questions without a result."""

from __future__ import annotations

import pytest

from clew.app import App
from clew.catalog.operations.ask import NOTHING_CLOSE
from clew.knowledge.answering.finder import NOTHING
from tests.knowledge.doors import ask, known

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def places(app: App, question: str) -> list[str]:
    return [f"{item.path}:{item.start}-{item.end}" for item in (await ask(app, question)).known]


@pytest.mark.req("BEY-13", "SYL-89")
@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("where is ConnectionPool", "shop/pool.py:11-26"),
        ("where is the ConnectionPool class defined?", "shop/pool.py:11-26"),
        ("definition of ConnectionPool.release_connection", "shop/pool.py:24-26"),
        ("ThreadedPool", "shop/pool.py:29-34"),
        ("where is backoff", "shop/retry.py:4-6"),
        ("backoff", "shop/retry.py:4-6"),
        ("where is the waiting time doubled", "shop/retry.py:4-6"),
        ("where is the basket of a customer written to the warehouse", "shop/orders.py:7-11"),
        ("explain how an order is taken back before it ships", "shop/orders.py:14-18"),
        ("what is shop/retry.py for", "shop/retry.py:1-10"),
        ("what does report.py do?", "shop/jobs/report.py:1-11"),
        ("how do I change how long a request waits", "docs/guide.md:5-7"),
        ("how do I deploy", "docs/guide.md:9-11"),
        ("what do the docs say about approvals of a deployment", "docs/guide.md:9-11"),
    ],
)
async def test_the_first_citation_is_the_definition_file_section_or_passage(
    app: App, question: str, place: str
) -> None:
    found = await places(app, question)
    assert found[0] == place, found


@pytest.mark.req("BEY-13")
@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("where is the kubernetes operator reconciled", "kubernetes"),
        ("how many replicas does the cluster have", "replicas"),
        ("where do we encrypt the passwords with argon", "passwords"),
        ("where is zzqx blorf", "blorf"),
        ("is there a place limiter", "limiter"),
    ],
)
async def test_an_unanswerable_question_gets_no_citation_and_the_nearest_place(
    app: App, question: str, missing: str
) -> None:
    answer = await ask(app, question)
    [note] = answer.notes
    assert answer.known == []
    assert note.startswith(NOTHING)
    assert f"`{missing}`" in note
    assert "The nearest is `" in note
    assert NOTHING in answer.markdown


async def test_that_nothing_answers_does_not_make_an_answer_relevant(app: App) -> None:
    assert not (await ask(app, "where is zzqx blorf")).is_relevant


async def test_a_cited_answer_is_relevant(app: App) -> None:
    answer = await ask(app, "where is ConnectionPool")
    assert answer.is_relevant
    assert NOTHING_CLOSE not in answer.markdown


async def test_a_request_for_work_does_not_hear_that_nothing_answers(app: App) -> None:
    assert await known(app, "send a letter to zzqx") == []


async def test_the_implementation_comes_before_its_tests(app: App) -> None:
    found = await places(app, "where do we wait for an idle connection")
    assert found[0].startswith("shop/pool.py:")
    tests = [at for at, place in enumerate(found) if place.startswith("tests/")]
    assert all(at > found.index(next(one for one in found if one.startswith("shop/"))) for at in tests)


@pytest.mark.parametrize("question", ["list the tests that wait for an idle connection", "which tests wait for orders"])
async def test_a_question_for_tests_cites_tests_only(app: App, question: str) -> None:
    found = await places(app, question)
    assert found
    assert {place.partition("/")[0] for place in found} == {"tests"}


async def test_equal_functions_in_sibling_files_are_cited_once(app: App) -> None:
    found = [place for place in await places(app, "where do we stream the rows of an export") if ":5-10" in place]
    assert len(found) == 1


async def test_misspelled_words_are_corrected(app: App) -> None:
    found = await places(app, "where do we acqire conections with a timeout")
    assert found[0].startswith("shop/pool.py:")


async def test_a_name_that_differs_by_a_letter_is_suggested(app: App) -> None:
    answer = await ask(app, "where is aquire_connection")
    assert answer.known == []
    assert "Did you mean shop/pool.py#ConnectionPool.acquire_connection" in answer.notes[0]


async def test_an_unknown_file_is_reported(app: App) -> None:
    assert await known(app, "what is shop/nowhere.py for") == ["*Nothing in this folder is named `shop/nowhere.py`.*"]


async def test_two_names_are_both_cited(app: App) -> None:
    assert (await places(app, "compare ConnectionPool and ThreadedPool"))[:2] == [
        "shop/pool.py:11-26",
        "shop/pool.py:29-34",
    ]


async def test_code_is_quoted_as_written_with_its_description_and_owner(app: App) -> None:
    function, *_ = await known(app, "where is backoff")
    assert function.endswith(
        ": `def backoff(attempt: int) -> float` · Seconds to wait before the next attempt: they double each time."
    )
    method, *_ = await known(app, "where is ConnectionPool.release_connection")
    assert ": ConnectionPool: `def release_connection(" in method
    section, *_ = await known(app, "how do I deploy")
    assert ": Guide › Deployment: Run `make deploy`" in section


async def test_no_place_is_cited_twice(app: App) -> None:
    for question in ("where is ConnectionPool", "explain how the pool works", "where are orders cancelled"):
        found = await places(app, question)
        assert len(found) == len(set(found))
