"""Skills are found by all that they say, written only when they change, and not suggested where nothing fits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clew.access import OWN_SCHEMAS, Principal
from clew.clock import ManualClock
from clew.errors import AccessDenied, Busy
from clew.llm.background import Background, read_topics
from clew.llm.embedders import open_embedder
from clew.skills.discovery.mirror import Mirrored
from clew.skills.discovery.reference_search import REFERENCE_SCHEMA
from clew.skills.discovery.relevance import known_share, read_vocabulary
from clew.skills.discovery.skill_index import SHELF_SCHEMA, SKILL_SCHEMA, SkillShelf, open_shelf
from clew.skills.formats.collection import collect
from clew.skills.formats.definition_reader import Memory
from clew.skills.library import Skills
from clew.skills.manifest import AgentSpec, Manifest, Skill, SkillLink, Toolset
from clew.tools.tool import tool
from clew.trail import open_trail
from clew.trail.bootstrap import bootstrap
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.leaking import CARELESS, KEY_BODY, TOKEN, kept_on
from tests.skills.writing import markdown, write

ABOUT = {
    "analysis": ("Analyse data in tables: statistics, charts and trends", "Group the rows, then plot them."),
    "copywriting": ("Write marketing copy for landing pages", "Lead with the benefit. Name the objection early."),
    "deployment": ("Deploy services to Kubernetes with Helm", "Roll back with `helm rollback` when probes fail."),
    "invoices": ("Check invoices against purchase orders", "A three-way match compares order, receipt and invoice."),
}


def manifest(**changed: str) -> Manifest:
    """The skills above, with other bodies where given."""
    skills = {
        name: Skill(
            name=name,
            description=about,
            content=changed.get(name, body),
            references=(SkillLink(text=f"Templates for {name}", path="references/templates.md", line=7),),
            scripts=("scripts/run.py",),
            assets=("assets/logo.svg",),
            path=f"skills/{name}/SKILL.md",
            folder=f"skills/{name}",
        )
        for name, (about, body) in ABOUT.items()
    }
    return Manifest(skills=skills)


@pytest.fixture
async def trail(tmp_path: Path, clock: ManualClock, me: Principal) -> AsyncIterator[Trail]:
    opened = await open_trail(f"sqlite://{tmp_path}/skills.db", clock, embedder=open_embedder("wordllama"))
    await bootstrap(opened, me)
    yield opened
    await opened.close()


@pytest.fixture
def shelf(trail: Trail, me: Principal) -> SkillShelf:
    return SkillShelf(trail, me, embedder=open_embedder("wordllama"))


async def names_of(shelf: SkillShelf, query: str) -> list[str]:
    return [each.skill for each in await shelf.suggest(query)]


@pytest.mark.req("CAR-17")
async def test_a_question_about_data_suggests_the_skill_for_analysis(shelf: SkillShelf) -> None:
    await shelf.sync(manifest())
    found = await shelf.suggest("which chart shows the trend of this data best?")
    assert found[0].skill == "analysis"
    assert found[0].description == ABOUT["analysis"][0]
    assert found[0].relevance >= 1


async def test_a_skill_is_found_by_its_body(shelf: SkillShelf) -> None:
    await shelf.sync(manifest())
    assert (await names_of(shelf, "how does a three-way match with the receipt work?"))[0] == "invoices"


@pytest.mark.parametrize("query", ["What is the capital of Australia?", "recipe for chocolate cookies", "", "  \n"])
async def test_where_nothing_fits_nothing_is_suggested(shelf: SkillShelf, query: str) -> None:
    await shelf.sync(manifest())
    assert await shelf.suggest(query) == []


async def test_a_skill_called_by_its_name_is_suggested_first(shelf: SkillShelf) -> None:
    await shelf.sync(manifest())
    assert (await names_of(shelf, "deployment"))[0] == "deployment"


async def test_only_skills_that_are_asked_for_are_suggested(shelf: SkillShelf) -> None:
    await shelf.sync(manifest())
    need = "deploy to kubernetes"
    assert [each.skill for each in await shelf.suggest(need, among=["deployment"])] == ["deployment"]
    assert "deployment" not in [each.skill for each in await shelf.suggest(need, among=["analysis", "invoices"])]
    assert await shelf.suggest(need, among=[]) == []
    many = [*(f"other-{number}" for number in range(300)), "deployment"]
    assert [each.skill for each in await shelf.suggest(need, among=many)] == ["deployment"]


async def test_the_limit_holds_and_zero_is_nothing(shelf: SkillShelf) -> None:
    await shelf.sync(manifest())
    assert len(await shelf.suggest("analyse data of invoices and deploy", limit=1)) == 1
    assert await shelf.suggest("analyse data", limit=0) == []


async def test_without_an_embedder_words_decide(tmp_path: Path, me: Principal) -> None:
    opened = await open_trail("sqlite://:memory:")
    try:
        await bootstrap(opened, me)
        words = SkillShelf(opened, me)
        await words.sync(manifest())
        assert (await names_of(words, "deploy with helm"))[0] == "deployment"
        assert await words.suggest("chocolate cookies") == []
    finally:
        await opened.close()


@pytest.mark.req("PLA-12")
async def test_scripts_and_assets_are_listed_for_a_skill(shelf: SkillShelf, trail: Trail, me: Principal) -> None:
    await shelf.sync(manifest())
    selector = Selector(schema_name=SKILL_SCHEMA, all_tags=("skill:analysis",))
    (record,) = (await trail.records.list(selector, by=me)).items
    assert (record.context["scripts"], record.context["assets"]) == (["scripts/run.py"], ["assets/logo.svg"])
    assert "origin:clew" in record.tags


async def test_what_is_unchanged_is_not_written_again(shelf: SkillShelf, trail: Trail) -> None:
    assert await shelf.sync(manifest()) == Mirrored(created=8)
    head = await trail.log.head()
    assert await shelf.sync(manifest()) == Mirrored()
    assert await trail.log.head() == head


async def test_only_what_changed_is_written_and_what_went_is_removed(shelf: SkillShelf) -> None:
    await shelf.sync(manifest())
    assert await shelf.sync(manifest(analysis="Draw a violin plot.")) == Mirrored(updated=1)
    assert (await names_of(shelf, "violin plot"))[0] == "analysis"
    fewer = Manifest(skills={name: each for name, each in manifest().skills.items() if name != "invoices"})
    assert await shelf.sync(fewer) == Mirrored(updated=1, deleted=2)
    assert "invoices" not in await names_of(shelf, "check invoices against purchase orders")
    assert [each.reference.skill for each in await shelf.search_references("templates for invoices")] != ["invoices"]


async def test_an_interrupted_sync_is_put_in_order_by_the_next(
    shelf: SkillShelf, trail: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def break_off(*_: object, **__: object) -> None:
        raise Busy("broken off")

    await shelf.sync(manifest())
    with monkeypatch.context() as patch:
        patch.setattr(trail.records, "update_many", break_off)
        with pytest.raises(Busy):
            await shelf.sync(manifest(analysis="Draw a violin plot."))
    assert await shelf.sync(manifest()) == Mirrored()  # nothing had been written, but that was looked at
    assert await shelf.sync(manifest(analysis="Draw a violin plot.")) == Mirrored(updated=1)


async def test_two_that_want_different_things_leave_what_one_of_them_wants(trail: Trail, me: Principal) -> None:
    first, second = (SkillShelf(trail, me, embedder=open_embedder("wordllama")) for _ in range(2))
    await asyncio.gather(first.sync(manifest()), second.sync(manifest(analysis="Draw a violin plot.")))
    await second.sync(manifest(analysis="Draw a violin plot."))
    assert (await names_of(first, "violin plot"))[0] == "analysis"
    assert await second.sync(manifest(analysis="Draw a violin plot.")) == Mirrored()


async def test_two_that_sync_at_once_leave_one_whole_state(trail: Trail, me: Principal) -> None:
    first, second = (SkillShelf(trail, me, embedder=open_embedder("wordllama")) for _ in range(2))
    await asyncio.gather(first.sync(manifest()), second.sync(manifest()), first.sync(manifest()))
    selector = Selector(schema_names=(SKILL_SCHEMA, REFERENCE_SCHEMA))
    assert len((await trail.records.list(selector, by=me)).items) == 8
    assert await second.sync(manifest()) == Mirrored()


async def test_shelves_of_other_names_and_owners_are_apart(trail: Trail, me: Principal, stranger: Principal) -> None:
    embedder = open_embedder("wordllama")
    mine, other = (SkillShelf(trail, me, name=name, embedder=embedder) for name in ("a", "b"))
    theirs = SkillShelf(trail, stranger, embedder=embedder)
    await mine.sync(manifest())
    await other.sync(Manifest())
    await theirs.sync(Manifest())
    need = "deploy to kubernetes with helm"
    assert (await names_of(mine, need))[0] == "deployment"
    assert await other.suggest(need) == await theirs.suggest(need) == []


async def test_what_another_process_wrote_is_known(trail: Trail, me: Principal) -> None:
    writer, reader = (SkillShelf(trail, me, embedder=open_embedder("wordllama")) for _ in range(2))
    await writer.sync(manifest())
    assert (await names_of(reader, "deploy with helm"))[0] == "deployment"
    await writer.sync(manifest(copywriting="Zeugma and litotes sharpen a headline."))
    assert (await names_of(reader, "zeugma and litotes in a headline"))[0] == "copywriting"


async def test_only_a_curator_writes_skills(trail: Trail) -> None:
    emitter = Principal(owner_id="acme", agent_id="eve", roles=frozenset({"emitter", "subscriber"}))
    with pytest.raises(AccessDenied):
        await SkillShelf(trail, emitter).sync(manifest())
    assert {SKILL_SCHEMA, REFERENCE_SCHEMA, SHELF_SCHEMA} <= OWN_SCHEMAS
    with pytest.raises(AccessDenied):
        await trail.records.create(Draft(title="x", schema_name=SKILL_SCHEMA, context={}), by=emitter)


async def test_odd_names_and_texts_are_kept(shelf: SkillShelf) -> None:
    names = ["ünïcode-スキル", "n" * 190, "with blanks in it"]
    skills = {name: Skill(name=name, description=f"Grows orchids {name}", content="x" * 50_000) for name in names}
    assert await shelf.sync(Manifest(skills=skills)) == Mirrored(created=3)
    for name in names:
        assert [each.skill for each in await shelf.suggest("grows orchids", among=[name])] == [name]
    assert await shelf.suggest("orchids " * 5_000, among=names) is not None
    assert await shelf.sync(Manifest()) == Mirrored(deleted=3)
    assert await shelf.suggest("grows orchids") == []


@pytest.mark.req("PLA-12")
async def test_files_that_are_as_they_were_are_not_read_again(tmp_path: Path, shelf: SkillShelf) -> None:
    write(tmp_path, {"skills/plots/SKILL.md": markdown("Plot it.", name="plots", description="Plots data")})
    memory = Memory()
    assert await shelf.sync(collect(tmp_path, memory=memory)) == Mirrored(created=1)
    while not memory.reused:  # a file that changed within the last tick of the clock is not taken for unchanged
        assert await shelf.sync(collect(tmp_path, memory=memory)) == Mirrored()


@pytest.mark.req("CAR-17")
async def test_the_library_suggests_of_what_an_agent_may_load_and_hints_in_the_prompt() -> None:
    agent = AgentSpec(name="clerk", prompt="Help. {{SKILL_HINTS}}", skills=("analysis", "invoices"))
    skills = Skills(Manifest(agents={"clerk": agent}, skills=manifest().skills))
    found = await skills.suggest_skills("check these invoices against the purchase orders", "clerk")
    assert found[0].skill == "invoices"
    assert await skills.suggest_skills("deploy to kubernetes with helm", "clerk") == []
    prompt = await skills.get_prompt("clerk", query="check these invoices against the purchase orders")
    assert "Skills that may help with this: invoices" in prompt.content


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


async def test_keys_in_a_skill_never_reach_the_trail(
    tmp_path: Path, shelf: SkillShelf, trail: Trail, me: Principal
) -> None:
    head = {"name": "signing", "description": f"Sign releases with {TOKEN}", "keywords": f"[signature, {TOKEN}]"}
    body = f"{CARELESS}\n\nSee [how to use {TOKEN}](notes.md).\n{'x' * 19_600}\n{CARELESS}"
    write(tmp_path / "root", {"skills/signing/SKILL.md": markdown(body, **head), "skills/signing/notes.md": "Notes"})
    await shelf.sync(collect(tmp_path / "root"))
    kept = await kept_on(trail, me)
    assert "and push with" in kept
    assert "how to use" in kept
    for secret in (TOKEN, TOKEN[:12], KEY_BODY, KEY_BODY[:8]):
        assert secret not in kept
    assert await names_of(shelf, "sign a release") == ["signing"]


async def test_a_shelf_in_memory_is_closed_with_its_trail() -> None:
    shelf = await open_shelf(manifest())
    assert (await names_of(shelf, "deploy with helm"))[0] == "deployment"
    await shelf.close()
    await shelf.close()


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


def test_known_words_are_counted_by_their_stems() -> None:
    vocabulary = read_vocabulary(["Deploy services"], ["Rolling back"])
    assert known_share("deploying the service", vocabulary.heads) == 1
    assert known_share("roll back zebras", vocabulary.words) == pytest.approx(1 / 2)
    assert known_share("roll", vocabulary.heads) == 0
    assert known_share("the of and", vocabulary.words) == 1
