"""What is not known, and how answers are shown."""

from __future__ import annotations

import pytest

from clew.app import App
from clew.catalog.answers import Question
from clew.catalog.ask import NOTHING_CLOSE
from clew.knowledge.answering.finder import NOTHING as UNKNOWN
from tests.knowledge.doors import known, store


@pytest.mark.parametrize(
    "question",
    ["how do I use kubernetes with banana bread", "where is the payment gateway", "where is zzqx blorf"],
)
async def test_what_is_not_known_is_not_made_up(app: App, question: str) -> None:
    answer = await (await app.workspace()).catalog.ask(Question(query=question), by=app.me)
    assert list(answer.known) == [UNKNOWN]
    found = await app.knowledge().resolver.resolve(question, by=app.me)
    assert (found.status, found.sources) == ("no_matches", ())


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("is there a place limiter", UNKNOWN),
        ("who is the place owner", UNKNOWN),
        ("who maintains the factory", UNKNOWN),
        ("why was the place dropped", UNKNOWN),
        ("which version of bananas is used", "- No manifest here names bananas."),
        ("which banana version is needed?", "- No manifest here names banana."),
        ("what changed in version 9.9.9", "- No changelog and no tag that is known here has 9.9.9."),
        ("what changed in file foo/bar.py", "- No commit that is known here touched foo/bar.py."),
        ("who last changed nowhere.py", "- No commit that is known here touched nowhere.py."),
    ],
)
async def test_of_what_there_is_not_that_is_told_and_nothing_that_is_near(app: App, question: str, told: str) -> None:
    (app.knowledge().root / "pyproject.toml").write_text('[project]\nname = "shop"\nversion = "1"\n')
    await app.knowledge().gather()
    assert await known(app, question) == [told]


async def test_which_of_something_a_class_uses_is_no_question_for_the_graph(app: App) -> None:
    lines = await known(app, "which database does SpecialFactory use")
    assert not any("inherits from" in line for line in lines), lines
    assert "inherits from" in "".join(await known(app, "what does SpecialFactory use"))


async def test_who_wants_something_done_is_not_told_that_nothing_is_known(app: App) -> None:
    assert await known(app, "send a letter to zzqx") == []


async def test_that_nothing_answers_does_not_make_an_answer_close(app: App) -> None:
    answer = await (await app.workspace()).catalog.ask(Question(query="where is zzqx blorf"), by=app.me)
    assert not answer.is_relevant
    assert UNKNOWN in answer.markdown


async def test_an_answer_that_has_a_source_is_never_called_far_from_the_question(app: App) -> None:
    answer = await (await app.workspace()).catalog.ask(Question(query="where is PlaceFactory"), by=app.me)
    assert answer.known
    assert answer.is_relevant
    assert NOTHING_CLOSE not in answer.markdown


async def test_code_is_quoted_as_it_is_written_and_once(app: App) -> None:
    [line, *_] = await known(app, "where is build")
    assert line.endswith("`def build(*names: list[str], depth: int = 1) -> dict[str, str]` · Build it all."), line


@pytest.mark.req("SYL-85")
async def test_notes_that_contradict_each_other_are_told_with_the_one_to_believe(app: App) -> None:
    await store(app, "We use three retries because the gateway drops the first connection")
    assert not any("disagree" in line for line in await known(app, "why do we retry three times"))
    await store(app, "We retry five times, never three")
    lines = await known(app, "why do we retry so many times")
    [told] = [line for line in lines if line.startswith("- Sources disagree: ")]
    assert "three retries" in told
    assert "five times, never three" in told
    assert "; believe " in told
