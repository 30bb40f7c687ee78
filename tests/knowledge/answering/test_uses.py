"""Questions about uses, in any wording: a relation and a name that the index knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.app import App, open_app
from clew.config import Config, HygieneConfig
from tests.knowledge.answering.shop import FILES
from tests.knowledge.code.repositories import make_repository
from tests.knowledge.doors import ask, known

pytestmark = pytest.mark.asyncio(loop_scope="module")

CALLERS = [
    "shop/jobs/report.py `write_report`",
    "shop/orders.py `place_order`",
    "shop/orders.py `cancel_order`",
    "shop/pool.py `ThreadedPool.acquire_connection`",
]
TEST = "tests/test_pool.py `test_acquire_connection_waits_for_an_idle_connection`"
LINES = {path: content.splitlines() for path, content in FILES.items()}


async def users(app: App, question: str) -> list[str]:
    """Path and name of each user that an answer cites."""
    return [f"{item.path} {item.text.partition(' ')[0]}" for item in (await ask(app, question)).known]


@pytest.mark.req("SYL-89")
@pytest.mark.parametrize(
    "question",
    [
        "what calls acquire_connection",
        "who calls acquire_connection?",
        "callers of acquire_connection",
        "acquire_connection callers",
        "where is acquire_connection called",
        "from where is acquire_connection called?",
        "which functions call `acquire_connection`",
        "show me all call sites of acquire_connection()",
        "who invokes ConnectionPool.acquire_connection",
        "list everything that calls acquire_connection",
        "find usages of acquire_connection",
        "what uses acquire_connection",
    ],
)
async def test_callers_are_listed_with_the_line_of_each_call_and_tests_last(app: App, question: str) -> None:
    answer = await ask(app, question)
    assert await users(app, question) == [*CALLERS, TEST]
    for item in answer.known:
        assert (item.kind, item.start) == ("use", item.end)
        assert "acquire_connection(" in LINES[item.path][item.start - 1]
    assert answer.notes == []


@pytest.mark.req("SYL-89")
@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("what calls acquire_connection in shop/jobs", CALLERS[:1]),
        ("what calls acquire_connection inside shop/orders.py", CALLERS[1:3]),
        ("who calls acquire_connection, excluding tests", CALLERS),
        ("which code besides tests calls acquire_connection", CALLERS),
        ("which callers of acquire_connection are there apart from tests", CALLERS),
        ("non-test callers of acquire_connection", CALLERS),
        ("is acquire_connection called anywhere outside of tests", CALLERS),
    ],
)
async def test_a_question_limits_uses_to_a_place_or_to_the_product(
    app: App, question: str, expected: list[str]
) -> None:
    assert await users(app, question) == expected


@pytest.mark.req("SYL-89")
@pytest.mark.parametrize(
    ("question", "place", "said"),
    [
        ("what imports ConnectionPool", "shop/jobs/report.py:5", "`shop/jobs/report.py` imports `ConnectionPool`"),
        ("which files import httpx", "shop/jobs/report.py:3", "`shop/jobs/report.py` imports `httpx`"),
        ("what extends ConnectionPool", "shop/pool.py:29", "`ThreadedPool` inherits from `ConnectionPool`"),
        ("subclasses of ConnectionPool", "shop/pool.py:29", "`ThreadedPool` inherits from `ConnectionPool`"),
        ("who inherits from Exception", "shop/errors.py:1", "inherits from `Exception`"),
        ("what implements acquire_connection", "shop/pool.py:18", "`ConnectionPool` implements `acquire_connection`"),
        (
            "what does cancel_order call",
            "shop/orders.py:16",
            "`cancel_order` calls `ConnectionPool.acquire_connection`",
        ),
    ],
)
async def test_imports_heirs_and_callees_are_uses_too(app: App, question: str, place: str, said: str) -> None:
    first = (await ask(app, question)).known[0]
    assert f"{first.path}:{first.start}" == place
    assert said in first.text


@pytest.mark.parametrize(
    "question",
    [
        "which tests cover acquire_connection",
        "are there tests for acquire_connection?",
        "what tests exercise acquire_connection",
    ],
)
async def test_tests_that_cover_a_function_reach_it_directly_or_through_the_product(app: App, question: str) -> None:
    assert await users(app, question) == [TEST, "tests/test_pool.py `test_place_order`"]


async def test_an_answer_says_that_no_test_reaches_a_function(app: App) -> None:
    note, definition = await known(app, "which tests cover backoff")
    assert note == "*No test reaches `backoff`.*"
    assert definition.startswith("- [1] shop/retry.py:4-6@")


async def test_an_answer_says_that_nothing_uses_a_name_and_where_it_is_defined(app: App) -> None:
    note, definition = await known(app, "what calls unused_helper")
    assert note == "*Nothing calls or uses `unused_helper`.*"
    assert definition.startswith("- [1] shop/retry.py:9-10@")


@pytest.mark.req("SYL-89")
@pytest.mark.parametrize("question", ["what calls NoSuchThing", "where is doesNotExist used", "who uses no_such_thing"])
async def test_an_unknown_name_is_reported_and_nothing_else_is_cited(app: App, question: str) -> None:
    answer = await ask(app, question)
    assert answer.known == []
    assert answer.notes[0].startswith("Nothing in this folder is named `")


@pytest.mark.parametrize(
    "question",
    [
        "how does backoff work",
        "how do I use the pool",
        "where is the waiting time doubled",
        "I only call acquire_connection and nothing happens for a while. how come?",
    ],
)
async def test_other_questions_are_not_answered_with_uses(app: App, question: str) -> None:
    assert "use" not in {item.kind for item in (await ask(app, question)).known}


async def test_a_name_may_end_in_an_exclamation_mark(tmp_path: Path) -> None:
    ruby = "class Base\n  def compile!(path)\n    path\n  end\n\n  def route(path)\n    compile!(path)\n  end\nend\n"
    root = make_repository(tmp_path / "repo", {"lib/base.rb": ruby})
    async with open_app(Config(folder=root / ".clew", hygiene=HygieneConfig(enabled=False))) as app:
        await app.bootstrap()
        await app.knowledge().gather()
        [item] = (await ask(app, "where is compile! called from?")).known
    assert (item.path, item.start) == ("lib/base.rb", 7)


async def test_a_call_through_an_import_that_leads_nowhere_is_a_guess_by_name(tmp_path: Path) -> None:
    files = {
        "lib/period.py": "def read_period():\n    return 1\n",
        "lib/question.py": "from mypkg.period import read_period\n\n\ndef ask():\n    return read_period()\n",
    }
    root = make_repository(tmp_path / "repo", files)
    async with open_app(Config(folder=root / ".clew", hygiene=HygieneConfig(enabled=False))) as app:
        await app.bootstrap()
        await app.knowledge().gather()
        [item] = (await ask(app, "what calls read_period")).known
    assert (item.path, item.start) == ("lib/question.py", 5)
    assert item.text.endswith("(by its name alone)")


async def test_calls_on_an_unknown_receiver_are_found_next_to_certain_ones_in_every_notation(tmp_path: Path) -> None:
    files = {
        "till.py": "class Till:\n    def drain_all(self):\n        return 0\n\n\nTill().drain_all()\n",
        "pond.py": "class Pond:\n    def drain_all(self):\n        return 1\n",
        "shop.py": "def close(x):\n    x.drain_all()\n",
        "till.js": "class Till {\n  $drain$() {}\n  drainAll() { this.drainAll(); this.$drain$() }\n}\n",
        "pond.js": "class Pond {\n  $drain$() {}\n  drainAll() {}\n}\n",
        "shop.js": "function close (x) {\n  x.$drain$()\n  x.drainAll()\n}\n",
        "other.py": "def other(drain, all):\n    return drain, all\n",
    }
    root = make_repository(tmp_path / "repo", files)
    async with open_app(Config(folder=root / ".clew", hygiene=HygieneConfig(enabled=False))) as app:
        await app.bootstrap()
        await app.knowledge().gather()
        await ask(app, "where is the till")  # loads the index, which says what files lack a name
        for name, places in (
            ("drain_all", {"till.py:6", "shop.py:2"}),
            ("drainAll", {"till.js:3", "shop.js:3"}),
            ("$drain$", {"till.js:3", "shop.js:2"}),
        ):
            answer = await ask(app, f"what calls `{name}`")
            assert {f"{item.path}:{item.start}" for item in answer.known} == places
