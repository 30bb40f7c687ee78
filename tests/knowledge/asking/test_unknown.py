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
async def test_notes_that_contradict_each_other_are_told_with_the_one_to_believe(app: App) -> None:
    await store(app, "We use three retries because the gateway drops the first connection")
    assert not any("disagree" in line for line in await known(app, "why do we retry three times"))
    await store(app, "We retry five times, never three")
    lines = await known(app, "why do we retry so many times")
    [told] = [line for line in lines if line.startswith("*Sources disagree: ")]
    assert "three retries" in told
    assert "five times, never three" in told
    assert "; believe " in told
    assert "five times, never three" in await get(app, "reference://tools/hidden/list_conflicts")
