"""Skills are found by their complete text, and none is suggested if nothing fits."""

from __future__ import annotations

import pytest

from clew.access import Principal
from clew.llm.background import Background, read_topics
from clew.llm.embedders import open_embedder
from clew.skills.discovery.known_tools import find_tools
from clew.skills.discovery.memory_index import OWNER, open_index
from clew.skills.discovery.relevance import known_share, read_vocabulary
from clew.skills.discovery.skill_search import SkillSearch
from clew.skills.library import Skills, SkillSuggestion
from clew.skills.manifest import AgentSpec, Manifest, Skill, Toolset, Triggers
from clew.tools.tool import tool
from tests.leaked_keys import CARELESS, KEY_BODY, TOKEN, read_whole_trail

ABOUT = {
    "analysis": ("Analyse data in tables: statistics, charts and trends", "Group the rows, then plot them."),
    "copywriting": ("Write marketing copy for landing pages", "Lead with the benefit. Name the objection early."),
    "deployment": ("Deploy services to Kubernetes with Helm", "Roll back with `helm rollback` when probes fail."),
    "invoices": ("Check invoices against purchase orders", "A three-way match compares order, receipt and invoice."),
}
ALL = tuple(Skill(name=name, description=about, content=body) for name, (about, body) in ABOUT.items())
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


def manifest(*skills: Skill) -> Manifest:
    return Manifest(skills={skill.name: skill for skill in skills})


async def suggestions(query: str, *skills: Skill, limit: int = 10) -> list[SkillSuggestion]:
    async with Skills(manifest(*skills)) as library:
        return await library.suggest_skills(query, limit=limit)


async def suggested(query: str, *skills: Skill) -> list[str]:
    return [each.skill for each in await suggestions(query, *skills)]


@pytest.mark.req("CAR-17")
async def test_a_question_about_data_suggests_the_skill_for_analysis() -> None:
    found = await suggestions("which chart shows the trend of this data best?", *ALL)
    assert found[0].skill == "analysis"
    assert found[0].description == ABOUT["analysis"][0]
    assert found[0].relevance >= 1
    assert len(await suggestions("analyse data of invoices and deploy", *ALL, limit=1)) == 1


async def test_a_skill_is_found_by_its_text_and_by_its_name_and_none_where_nothing_fits() -> None:
    async with Skills(manifest(*ALL)) as library:
        assert (await library.suggest_skills("how does a three-way match with the receipt work?"))[
            0
        ].skill == "invoices"
        assert (await library.suggest_skills("deployment"))[0].skill == "deployment"
        assert await library.suggest_skills("recipe for chocolate cookies") == []
        assert await library.suggest_skills("  \n") == []


async def test_a_skill_is_found_by_its_keywords_and_by_the_words_that_trigger_it() -> None:
    keyed = Skill(name="one", description="Do the first thing", content="Do it.", keywords=("espaliers",))
    triggered = Skill(name="two", description="Do it again", content="Go.", triggers=Triggers(words=("topiaries",)))
    assert await suggested("espaliers", keyed, triggered) == ["one"]
    assert await suggested("topiaries", keyed, triggered) == ["two"]


@pytest.mark.req("CAR-17")
async def test_the_library_suggests_skills_that_the_agent_may_load_and_hints_in_the_prompt() -> None:
    agent = AgentSpec(name="clerk", prompt="Help. {{SKILL_HINTS}}", skills=("analysis", "invoices"))
    need = "check these invoices against the purchase orders"
    async with Skills(Manifest(agents={"clerk": agent}, skills=manifest(*ALL).skills)) as skills:
        assert (await skills.suggest_skills(need, "clerk"))[0].skill == "invoices"
        assert await skills.suggest_skills("deploy to kubernetes with helm", "clerk") == []
        prompt = await skills.get_prompt("clerk", query=need)
    assert "Skills that may help with this: invoices" in prompt.content


async def test_an_agent_with_few_of_very_many_skills_gets_them() -> None:
    many = [Skill(name=f"deploy-{at}", description="Deploy to Kubernetes", content="Go.") for at in range(300)]
    skills = {each.name: each for each in (*many, *ALL)}
    names = {"few": ("deployment", "invoices"), "most": tuple(name for name in skills if name != "deploy-7")}
    agents = {name: AgentSpec(name=name, skills=allowed) for name, allowed in names.items()}
    async with Skills(Manifest(agents=agents, skills=skills)) as library:
        need = "deploy services to kubernetes with helm"
        assert [each.skill for each in await library.suggest_skills(need, "few")] == ["deployment"]
        found = [each.skill for each in await library.suggest_skills(need, "most", limit=400)]
    assert "deploy-8" in found
    assert "deploy-7" not in found


async def test_another_manifest_replaces_the_skills_that_are_found() -> None:
    async with Skills(manifest(*ALL)) as skills:
        assert (await skills.suggest_skills("deploy with helm"))[0].skill == "deployment"
        skills.use(manifest(Skill(name="plots", description="Draw a violin plot", content="x"), *ALL[:2]))
        assert (await skills.suggest_skills("violin plot"))[0].skill == "plots"
        assert await skills.suggest_skills("deploy with helm") == []


async def test_without_an_embedder_words_decide() -> None:
    index = await open_index(manifest(*ALL))
    search = SkillSearch(index, index.trail, OWNER.owner_id, None)
    by = Principal(owner_id="local")
    assert (await search.find_skills("deploy with helm", ABOUT, 5, by=by))[0].skill == "deployment"
    assert await search.find_skills("chocolate cookies", ABOUT, 5, by=by) == []
    await index.close()
    await index.close()


async def test_skills_with_unusual_names_are_found() -> None:
    names = ["ünïcode-スキル", "n" * 190, "with blanks in it"]
    skills = {name: Skill(name=name, description=f"Grows orchids {name}", content="x" * 50_000) for name in names}
    agents = {str(at): AgentSpec(name=str(at), skills=(name,)) for at, name in enumerate(names)}
    async with Skills(Manifest(agents=agents, skills=skills)) as library:
        for at, name in enumerate(names):
            assert [each.skill for each in await library.suggest_skills("grows orchids", str(at))] == [name]
        assert await library.suggest_skills("orchids " * 5_000) is not None


async def test_keys_in_a_skill_never_reach_the_index() -> None:
    content = f"{CARELESS}\n{'x' * 19_600}\n{CARELESS}"
    about = f"Sign releases with {TOKEN}"
    signing = Skill(name="signing", description=about, content=content, keywords=("signature", TOKEN))
    index = await open_index(manifest(signing))
    kept = await read_whole_trail(index.trail, OWNER)
    assert "and push with" in kept
    for secret in (TOKEN, TOKEN[:12], KEY_BODY, KEY_BODY[:8]):
        assert secret not in kept
    assert [each.skill for each in await index.suggest("sign a release")] == ["signing"]
    await index.close()


@pytest.mark.req("CAR-17")
async def test_skills_that_are_loaded_beforehand_bring_their_tools_on_the_first_call() -> None:
    @tool(name="find")
    async def find(query: str) -> str:
        """Find something."""
        return query

    search = Skill(name="search", description="Search the web", toolsets=("web",))
    toolset = Toolset(name="web", description="The web", tools=("find",))
    agent = AgentSpec(name="clerk", skills=("search",))
    skills = Skills(Manifest(agents={"clerk": agent}, skills={"search": search}, toolsets={"web": toolset}))
    skills.register_tools("web", [find])
    assert "find" in await skills.get_tools("clerk", auto_load_skills=["search"])


async def test_a_skill_for_one_tool_is_not_suggested_for_another_that_no_skill_knows() -> None:
    async with Skills(manifest(FLOWS)) as library:
        for need in (
            "Create a connector",
            "Create a connector in UiPath",
            "Create a connector in Node-RED",  # the text of the skill names it
            "Build a flow with a webhook trigger and a connector for Excel",
        ):
            assert [each.skill for each in await library.suggest_skills(need)] == ["uipath-flows"], need
        assert await library.suggest_skills("Create a connector in Camunda") == []


async def test_a_skill_for_no_tool_in_particular_is_for_all_of_them() -> None:
    assert await suggested("Review the code of my Django change", REVIEW, FLOWS) == ["code-review"]


async def test_small_talk_suggests_nothing() -> None:
    greeting = Skill(name="greeting", description="Say hello, and the time of day", content="Hello! Yes, please help.")
    async with Skills(manifest(greeting, FLOWS, REVIEW)) as library:
        for talk in ("hello", "yes", "please help me", "???", "the", "what can you do?", "good day", "42"):
            assert await library.suggest_skills(talk) == [], talk


async def test_a_skill_is_found_by_any_name() -> None:
    helping = Skill(name="help", description="Answer those who are lost", content="Be kind.")
    assert await suggested("help", helping, FLOWS, REVIEW) == ["help"]


@pytest.mark.req("SYL-19")
async def test_a_skill_of_the_third_tier_is_suggested_by_its_name_and_by_no_words() -> None:
    shipping = Skill(name="ship-it", description="Ship the boat to Oslo", content="Push it.", tier=3)
    assert await suggested("ship the boat to Oslo", shipping, REVIEW) == []
    assert await suggested("ship-it", shipping, REVIEW) == ["ship-it"]
    assert await suggested("/ship-it", shipping, REVIEW) == ["ship-it"]


async def test_a_skill_far_behind_the_best_is_left_out() -> None:
    sheets = Skill(
        name="sheets", description="Spreadsheets: formulas, charts and pivot tables", content="Name the sheet first."
    )
    forms = Skill(name="forms", description="Fill in forms, and read the tables of a document", content="Save a copy.")
    assert await suggested("fill in a form", sheets, forms, REVIEW) == ["forms"]
    assert await suggested("sheets", sheets, forms, REVIEW) == ["sheets"]
    both = await suggested("formulas and pivot tables, or forms to fill in", sheets, forms, REVIEW)
    assert sorted(both) == ["forms", "sheets"]


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
        ("a-" * 50_000 + "docker", {"docker"}),
    ],
)
def test_tools_are_found_as_people_write_them(text: str, names: set[str]) -> None:
    assert find_tools(text) == names


def test_common_words_are_names_where_the_text_is_about_a_tool() -> None:
    assert find_tools("temporal workflows", is_lenient=True) == {"temporal"}


def test_known_words_are_counted_by_their_stems_without_numbers_and_ids() -> None:
    vocabulary = read_vocabulary(["Deploy services", "Show the record"], ["Rolling back"])
    assert known_share("deploying the service", vocabulary.heads) == 1
    assert known_share("roll back zebras", vocabulary.words) == pytest.approx(1 / 2)
    assert known_share("roll", vocabulary.heads) == 0
    assert known_share("the of and", vocabulary.words) == 1
    assert known_share("Show record 79a92395-7742-4b66 of 2026-01-01", vocabulary.words) == 1


def test_topics_are_phrases_each_once() -> None:
    topics = read_topics()
    assert 300 <= len(topics) == len(set(topics)) <= 500
    assert all(2 <= len(topic.split()) <= 8 for topic in topics if topic != "microservices architecture")


def test_a_question_of_everyday_life_is_near_to_the_topics() -> None:
    embedder = open_embedder("wordllama")
    assert embedder is not None
    background = Background(embedder)
    assert background.nearness("how do I cook dinner?") > background.nearness("zqx 99") >= -1
    assert background.nearness("") == 0
