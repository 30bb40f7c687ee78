"""Two sessions of one user: the prompts of one never contain private records of the other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clew.knowledge.history.entries import Category, write_entry
from clew.knowledge.history.journal import Chronicle
from clew.llm.scripted_model import ScriptedModel, read_script
from tests.consent import trust_all
from tests.journeys.test_chat_journey import Place, serving

SCRIPT = """
- say: Noted.
"""
PRIVATE = ("mend the turbine", "rotate the blades", "the turbine hall is locked", "no grease on the turbine")


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel(read_script(SCRIPT))


@pytest.fixture
async def place(tmp_path: Path, model: ScriptedModel) -> AsyncIterator[Place]:
    (tmp_path / ".clew").mkdir()
    trust_all(tmp_path / ".clew")
    async with serving(tmp_path / ".clew", model=model) as served:
        yield served


def prompt(model: ScriptedModel) -> str:
    """The last prompt without the message that it answers."""
    request = model.requests[-1]
    return "\n".join(str(each.content) for each in request.messages)


@pytest.mark.req("SYL-06")
@pytest.mark.req("SYL-07")
async def test_a_prompt_has_the_context_of_its_own_session_and_nothing_private_of_another(
    place: Place, model: ScriptedModel
) -> None:
    made = [(await place.http.post("/sessions", json={"name": name})).json()["id"] for name in ("one", "two")]
    task, step, blocker, reject = PRIVATE
    change = {"task": task, "step": step, "blockers": [blocker], "rejects": [reject]}
    changed = await place.http.patch(f"/sessions/{made[0]}/context", json=change)
    assert changed.status_code == 200, changed.text
    entry = "The turbine key is under the mat"
    noted = await write_entry(place.app.trail, place.app.me, entry, Category.INSIGHT, made[0], metadata={})
    await place.say("what is the state of the turbine blades?", session=made[0])
    for text in PRIVATE:
        assert text in prompt(model)
    assert entry in prompt(model)
    said = "the turbine blades must be silver on monday"
    await place.say(said, session=made[0])

    await place.say("what is the state of the turbine blades key?", session=made[1])
    for text in (*PRIVATE, entry, "silver on monday"):
        assert text not in prompt(model)
    shared = await place.http.post(f"/entries/{noted.id}/promote")
    assert shared.json()["metadata"]["promoted"]["because"] == "user", shared.text
    elsewhere = Chronicle(place.app.trail, place.app.me, made[1], place.app.clock)
    assert [each.id for each in await elsewhere.query()] == [noted.id]
    assert (await place.http.post(f"/entries/{noted.id}/unpromote")).status_code == 200
    assert await elsewhere.query() == []
    items = (await place.http.get(f"/sessions/{made[0]}/entries")).json()["items"]
    assert [each["metadata"]["promoted"] for each in items] == [None]
