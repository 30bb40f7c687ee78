"""A question that names a tool which no skill knows is not for the skills of other tools, but may be for any other."""

from __future__ import annotations

import pytest

from clew.access import Principal
from clew.llm.embedders import open_embedder
from clew.skills.discovery.known_tools import find_tools
from clew.skills.discovery.relevance import known_share, read_vocabulary
from clew.skills.discovery.skill_index import SkillShelf
from clew.skills.manifest import Manifest, Skill
from clew.trail import open_trail
from clew.trail.bootstrap import bootstrap

FLOWS = Skill(
    name="uipath-flows",
    description="Build a UiPath flow: triggers, webhook nodes, connectors and the steps between them",
    content="A flow begins with a trigger. Salesforce and Slack have connectors. Export it for Node-RED if asked.",
)
REVIEW = Skill(
    name="code-review",
    description="Review the code of a change: errors, names, tests that are missing",
    content="Read the whole change once before you say anything.",
)


async def suggested(question: str, *skills: Skill) -> list[str]:
    """The names of skills that fit, on a shelf of these."""
    embedder, me = open_embedder("wordllama"), Principal(owner_id="acme", agent_id="ann")
    trail = await open_trail("sqlite://:memory:", embedder=embedder)
    try:
        await bootstrap(trail, me)
        shelf = SkillShelf(trail, me, embedder=embedder)
        await shelf.sync(Manifest(skills={skill.name: skill for skill in skills}))
        return [found.skill for found in await shelf.suggest(question)]
    finally:
        await trail.close()


async def test_a_skill_for_one_tool_is_not_suggested_for_another_that_no_skill_knows() -> None:
    assert await suggested("Create a connector", FLOWS) == ["uipath-flows"]
    assert await suggested("Create a connector in UiPath", FLOWS) == ["uipath-flows"]
    assert await suggested("Create a connector in Camunda", FLOWS) == []


async def test_a_tool_that_some_skill_knows_is_no_reason_to_suggest_nothing() -> None:
    assert await suggested("Create a connector in Node-RED", FLOWS) == ["uipath-flows"]


async def test_a_skill_for_no_tool_in_particular_is_for_all_of_them() -> None:
    assert await suggested("Review the code of my Django change", REVIEW, FLOWS) == ["code-review"]


@pytest.mark.parametrize("talk", ["hello", "yes", "please help me", "???", "the", "what can you do?", "good day", "42"])
async def test_talk_without_a_telling_word_suggests_nothing(talk: str) -> None:
    greeting = Skill(name="greeting", description="Say hello, and the time of day", content="Hello! Yes, please help.")
    assert await suggested(talk, greeting, FLOWS, REVIEW) == []


async def test_a_skill_is_found_by_its_name_whatever_word_that_is() -> None:
    helping = Skill(name="help", description="Answer those who are lost", content="Be kind.")
    assert await suggested("help", helping, FLOWS, REVIEW) == ["help"]


@pytest.mark.req("SYL-19")
async def test_a_skill_of_the_third_tier_is_suggested_by_its_name_and_by_no_words() -> None:
    shipping = Skill(name="ship-it", description="Ship the boat to Oslo", content="Push it.", tier=3)
    assert await suggested("ship the boat to Oslo", shipping, REVIEW) == []
    assert await suggested("ship-it", shipping, REVIEW) == ["ship-it"]


async def test_what_is_far_behind_the_best_is_left_out() -> None:
    sheets = Skill(
        name="sheets", description="Spreadsheets: formulas, charts and pivot tables", content="Name the sheet first."
    )
    forms = Skill(name="forms", description="Fill in forms, and read the tables of a document", content="Save a copy.")
    assert await suggested("fill in a form", sheets, forms, REVIEW) == ["forms"]
    assert await suggested("sheets", sheets, forms, REVIEW) == ["sheets"]
    assert await suggested("formulas and pivot tables, or forms to fill in", sheets, forms, REVIEW) in (
        ["sheets", "forms"],
        ["forms", "sheets"],
    )


async def test_what_work_is_done_on_does_not_count_as_a_tool() -> None:
    assert await suggested("Build a flow with a webhook trigger and a connector for Excel", FLOWS) == ["uipath-flows"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", set()),
        ("Wire up a Node-RED flow, with MQTT nodes.", {"node-red", "mqtt"}),
        ("set up github actions for my c++ and .NET code", {"github actions", "c++", ".net"}),
        ("Kubernetes' ingress; Let’s Encrypt's certificates", {"kubernetes", "let's encrypt"}),
        ("a Django-based PostgreSQL/Redis stack", {"django", "postgresql", "redis"}),
        ("Azure Pipelines over Azure", {"azure pipelines", "azure"}),
        ("a temporal join in spring", set()),
        ("Express it. Temporal joins are slow", set()),
        ("our Temporal workflows on Rails", {"temporal", "rails"}),
        ("javascripting in pythonic ways", set()),
        ("🧵 Ünïcode, 東京 and \x00 docker", {"docker"}),
    ],
)
def test_tools_are_found_as_people_write_them(text: str, names: set[str]) -> None:
    assert find_tools(text) == names


def test_common_words_are_names_to_the_lenient() -> None:
    assert find_tools("temporal workflows", is_lenient=True) == {"temporal"}


def test_a_long_text_of_separators_is_read_at_once() -> None:
    assert find_tools("a-" * 50_000 + "docker") == {"docker"}


def test_numbers_and_ids_are_not_counted_as_words_that_nobody_knows() -> None:
    vocabulary = read_vocabulary(["Show the record"], [])
    assert known_share("Show record 79a92395-7742-4b66 of 2026-01-01", vocabulary.words) == 1
    assert known_share("Show record zebra", vocabulary.words) == pytest.approx(2 / 3)
