"""A model of the settings writes the answer from the sources; if it fails, the answer consists of the sources."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from clew.app import App, open_app
from clew.config import Config, KnowledgeConfig
from clew.knowledge.answering.resolver import SCHEMA as ANSWERS
from clew.knowledge.answering.resolver import SCOPE
from clew.knowledge.nodes.node_store import UNVERIFIED
from clew.llm.model import open_models
from clew.llm.requests import Model, ModelReply, ModelRequest, OnText
from clew.llm.scripted_model import ScriptedModel, ScriptedTurn
from clew.trail.model.selector import Selector
from tests.knowledge.doors import SETTINGS, known, opened


def scripted(*said: str) -> ScriptedModel:
    return ScriptedModel([ScriptedTurn(user="/(?s).*/", say=each) for each in said])


async def answers(app: App) -> list[dict[str, Any]]:
    await app.knowledge().resolver.flush()
    reader = msgspec.structs.replace(app.me, scopes=frozenset({SCOPE}))
    page = await app.trail.records.list(Selector(schema_name=ANSWERS), by=reader, oldest_first=True)
    return [each.context for each in page.items]


class Silent:
    """A model that never answers."""

    async def answer(self, request: ModelRequest, *, on_text: OnText | None = None) -> ModelReply:
        await asyncio.Event().wait()
        raise AssertionError


def asks_model(app: App, model: Model) -> None:
    """Open the knowledge of a folder with a model under the name `small`."""
    app.knowledge(open_models(app.config, {}).with_model("small", model))


@pytest.mark.req("SYL-89", "SYL-90", "SYL-99")
async def test_a_model_that_the_user_named_puts_into_words_what_sources_say(tmp_path: Path) -> None:
    model = scripted("Waiting doubles with each attempt [1].\n\nThe backoff is in src/retry.py [1].")
    async with opened(tmp_path, model="small") as app:
        asks_model(app, model)
        await app.knowledge().gather()
        lines = await known(app, "explain how backoff works")
        again = await known(app, "explain how backoff works")
        [first, second] = await answers(app)
        usage = (await app.trail.records.list(Selector(schema_name="usage.v1"), by=app.me)).items
    assert lines[:2] == ["- Waiting doubles with each attempt [1].", "- The backoff is in src/retry.py [1]."]
    assert lines[2].startswith("- [1] src/retry.py:")
    assert (first["layer"], first["is_verified"]) == ("model", True)
    assert first["tokens"] > 0
    assert first["sources"][0]["place"].startswith("src/retry.py:")
    assert again == lines
    assert (second["layer"], second["tokens"], second["saved_tokens"]) == ("cache", 0, first["tokens"])
    assert [each.context["agent_id"] for each in usage] == ["knowledge"]
    assert len(model.requests) == 1


@pytest.mark.req("SYL-90")
async def test_no_model_is_asked_unless_the_settings_name_one(tmp_path: Path) -> None:
    model = scripted("Never said [1].")
    async with opened(tmp_path) as app:
        app.knowledge(open_models(app.config, {}).with_model("*", model))
        await app.knowledge().gather()
        lines = await known(app, "explain how backoff works")
    assert lines
    assert lines[0].startswith("- [1] src/retry.py:")
    assert model.requests == []


async def test_nor_for_what_the_sources_answer_by_themselves(tmp_path: Path) -> None:
    model = scripted("Never said [1].")
    async with opened(tmp_path, model="small") as app:
        asks_model(app, model)
        await app.knowledge().gather()
        lines = await known(app, "where is backoff")
    assert lines[0].startswith("- [1] src/retry.py:4")
    assert model.requests == []


@pytest.mark.req("SYL-88", "SYL-89")
@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (ScriptedTurn(user="/(?s).*/", say="It doubles, trust me."), "the model cited no source"),
        (ScriptedTurn(user="/(?s).*/", say="It doubles [7]."), "the model cited no source"),
        (ScriptedTurn(user="/(?s).*/", fault="unreachable", times=99), "the model did not answer"),
    ],
)
async def test_a_model_that_fails_or_cites_nothing_leaves_the_word_to_the_sources(
    tmp_path: Path, said: ScriptedTurn, problem: str
) -> None:
    async with opened(tmp_path, model="small") as app:
        asks_model(app, ScriptedModel([said]))
        await app.knowledge().gather()
        lines = await known(app, "explain how backoff works")
        [kept] = await answers(app)
    assert lines[0].startswith(f"*{problem}")
    assert lines[1].startswith("- [1] src/retry.py:")
    assert (kept["layer"], bool(kept["sources"])) == ("graph", True)


async def test_a_model_that_is_late_leaves_the_word_to_the_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.knowledge.answering.resolver.MODEL_SECONDS", 0.01)
    async with opened(tmp_path, model="small") as app:
        asks_model(app, Silent())
        await app.knowledge().gather()
        lines = await known(app, "explain how backoff works")
    assert lines[0] == "*the model did not answer: it took too long*"
    assert lines[1].startswith("- [1] src/retry.py:")


@pytest.mark.req("SYL-79")
async def test_a_statement_of_a_model_that_the_code_does_not_support_is_marked(tmp_path: Path) -> None:
    async with opened(tmp_path, model="small") as app:
        asks_model(app, scripted("We use kafka for waiting [1]."))
        await app.knowledge().gather()
        lines = await known(app, "explain how backoff works")
    assert lines[0] == "*the code shows nothing of: We use kafka for waiting*"
    assert lines[1].startswith(f"- {UNVERIFIED} We use kafka for waiting [1]")


async def test_a_model_that_there_is_not_is_reported_and_costs_no_answer(tmp_path: Path) -> None:
    async with opened(tmp_path, model="no-such-role") as app:
        await app.knowledge().gather()
        lines = await known(app, "explain how backoff works")
    assert "there is no model or role 'no-such-role'" in lines[0]
    assert lines[1].startswith("- [1] src/retry.py:")


async def test_a_model_is_not_asked_on_a_trail_that_the_user_did_not_make(tmp_path: Path, trust_file: Path) -> None:
    async with opened(tmp_path) as app:
        await app.knowledge().gather()
    trust_file.unlink()
    model = scripted("Never said [1].")
    config = Config(folder=tmp_path / "shop" / ".clew", knowledge=KnowledgeConfig(model="small"), hygiene=SETTINGS)
    async with open_app(config) as app:
        asks_model(app, model)
        lines = await known(app, "explain how backoff works")
    assert "did not make" in lines[0]
    assert any(line.startswith("- [1] src/retry.py:") for line in lines)
    assert model.requests == []
