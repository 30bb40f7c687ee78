"""Questions that nothing answers, and notes that contradict each other."""

from __future__ import annotations

import pytest

from clew.app import App
from clew.knowledge.answering.finder import NOTHING
from tests.knowledge.doors import ask, get, known, store


async def test_nothing_is_made_up_where_nothing_answers(app: App) -> None:
    for question in [
        "how do I use kubernetes with banana bread",
        "where is the payment gateway",
        "where is zzqx blorf",
        "who is the place owner",
    ]:
        answer = await ask(app, question)
        [note] = answer.notes
        assert note.startswith(NOTHING)
        assert answer.known == []
        found = await app.knowledge().resolver.resolve(question, by=app.me)
        assert (found.status, found.items) == ("no_matches", ())


@pytest.mark.req("SYL-85")
async def test_notes_that_contradict_each_other_are_reported_with_the_one_to_believe(app: App) -> None:
    await store(app, "We use three retries because the gateway drops the first connection")
    assert not any("disagree" in line for line in await known(app, "why do we retry three times"))
    await store(app, "We retry five times, never three")
    lines = await known(app, "why do we retry so many times")
    [told] = [line for line in lines if line.startswith("*Sources disagree: ")]
    assert "three retries" in told
    assert "five times, never three" in told
    assert "; believe " in told
    assert "five times, never three" in await get(app, "reference://tools/hidden/list_conflicts")


@pytest.mark.req("SYL-12")
@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("what does the place_depth argument of PlaceFactory accept", "place_depth"),
        ("which fields has PlaceFactoryConfig", "PlaceFactoryConfig"),
        ("how does PlaceFactory.make_base build a place", "PlaceFactory.make_base"),
    ],
)
async def test_a_name_that_no_file_has_is_named_though_its_parts_occur(app: App, question: str, name: str) -> None:
    answer = await ask(app, question)
    assert answer.known == []
    assert any(f"Nothing in this folder is named `{name}`" in note for note in answer.notes)


@pytest.mark.req("SYL-12")
async def test_a_name_that_is_known_is_answered_though_another_word_is_not(app: App) -> None:
    lines = await known(app, "behind a turnstile, which code makes the places of PlaceFactory.make")
    assert any("src/factory.py" in line for line in lines)


@pytest.mark.req("SYL-12")
async def test_a_call_on_a_variable_is_no_file_and_asks_for_the_method(app: App) -> None:
    (app.knowledge().root / "src/till.py").write_text(
        'class Till:\n    def json(self) -> str:\n        """Turn the receipts into text."""\n        return "{}"\n'
    )
    await app.knowledge().gather()
    lines = await known(app, "how does t.json() turn receipts into text")
    assert "src/till.py" in lines[0]


@pytest.mark.req("SYL-12")
@pytest.mark.parametrize(
    "question",
    [
        "can I mark a place so that WebKit does not visit it, with the word skip",
        'mark a place with `word:"skip"` so that it is not visited',
        "does the word skip in /etc/shop/places.conf mark a place that is not visited",
        "which places implement marking.Skipper so that the word skip marks a place as not visited",
    ],
    ids=["a name of another product", "a quotation", "a path elsewhere", "an interface of another package"],
)
async def test_a_name_from_elsewhere_does_not_hide_the_answer(app: App, question: str) -> None:
    assert "docs/skipping.md" in [item.path for item in (await ask(app, question)).known]


@pytest.mark.req("SYL-12")
async def test_a_missing_word_that_says_little_does_not_hide_the_answer(app: App) -> None:
    assert "README.md" in [item.path for item in (await ask(app, "where does an ordinary shop of kettles begin")).known]
    assert (await ask(app, "where does a kubernetes shop of kettles begin")).known == []
