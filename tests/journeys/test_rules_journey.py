"""Rules of a folder in a conversation: the root's at the start, documents by intent, others with the first file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clew.llm.scripted_model import ScriptedModel, read_script
from tests.consent import trust_all
from tests.journeys.test_chat_journey import Place, serving

ROOT, LOCAL, DOCUMENT = "Answer in short sentences.", "Never log tokens.", "Every migration is a numbered file."
SCRIPT = """
- user: look into the login
  call: {read-file: {file_path: src/auth/login.py}}
- call: {read-file: {file_path: src/auth/login.py}}
- say: It logs nothing.
- say: Hello.
"""


def write(folder: Path, **files: str) -> None:
    for path, text in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "AGENTS.md": f"{ROOT} See [database migrations](docs/database.md).",
        "docs/database.md": DOCUMENT,
        "src/auth/AGENTS.md": LOCAL,
        "src/auth/login.py": "print('in')\n",
    }
    write(tmp_path, **files)
    (tmp_path / ".clew").mkdir()
    return tmp_path


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel(read_script(SCRIPT))


@pytest.fixture
async def place(folder: Path, model: ScriptedModel) -> AsyncIterator[Place]:
    trust_all(folder / ".clew")
    async with serving(folder / ".clew", model=model) as served:
        yield served


def shown(model: ScriptedModel, at: int = -1) -> str:
    """The complete prompt of one request."""
    return "\n".join(str(each.content) for each in model.requests[at].messages)


@pytest.mark.req("PLA-14")
async def test_every_run_of_a_conversation_starts_with_the_rules_of_the_root_alone(
    place: Place, model: ScriptedModel
) -> None:
    answer = await place.say("good morning")
    assert shown(model).count(ROOT) == 1
    assert LOCAL not in shown(model)
    assert DOCUMENT not in shown(model)
    await place.say("good evening", session=answer["session"])
    assert shown(model).count(ROOT) == 1, "a new run does not contain the prompt of the last one"


@pytest.mark.req("PLA-14", "PLA-18")
async def test_a_file_operation_brings_the_rules_of_its_folder_once_a_run(place: Place, model: ScriptedModel) -> None:
    session = None
    for _ in range(2):
        model.requests.clear()
        more = {"session": session} if session else {}
        answer = await place.say("look into the login", **more)
        session = answer["session"]
        assert answer["status"] == "done", answer
        answers = [str(each.content) for each in model.requests[-1].messages if each.role == "tool"]
        assert [LOCAL in each for each in answers] == [True, False]
        assert not any(ROOT in each for each in answers)


@pytest.mark.req("PLA-14")
async def test_a_linked_document_comes_with_a_message_that_it_fits(
    place: Place, model: ScriptedModel, folder: Path
) -> None:
    answer = await place.say("add a database migration for the orders")
    assert shown(model).count(DOCUMENT) == 1
    assert shown(model).index(ROOT) < shown(model).index(DOCUMENT)
    await place.say("good morning", session=answer["session"])
    assert DOCUMENT not in shown(model)
    await place.say("x" * 30_000)
    assert ROOT in shown(model), "a message that cannot be searched for has rules too"
    write(folder, **{"AGENTS.md": f"{ROOT} Be kind. See [deploying](docs/deploy.md).", "docs/deploy.md": "Ring Ada."})
    trust_all(folder / ".clew")
    await place.say("how is deploying done?")
    assert "Ring Ada." in shown(model), "links that are new are found"


@pytest.mark.req("PLA-14")
async def test_rules_without_consent_are_named_and_not_shown(folder: Path, model: ScriptedModel) -> None:
    async with serving(folder / ".clew", model=model) as place:
        await place.say("add a database migration for the orders")
        assert ROOT not in shown(model)
        assert DOCUMENT not in shown(model)
        assert "`AGENTS.md`: its rules are not shown until the user agrees to them" in shown(model)


@pytest.mark.req("PLA-18")
async def test_no_tool_for_rules_is_offered_to_a_model(place: Place, model: ScriptedModel) -> None:
    await place.say("good morning")
    assert not [each.name for each in model.requests[-1].tools if "rule" in each.name]
