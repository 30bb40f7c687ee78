"""Skills through `ask` and `get`: found, loaded, used and unloaded by any caller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clew.access import Principal
from clew.catalog.operations.answers import Item
from clew.catalog.workspace.workspace import Workspace
from clew.clock import ManualClock
from clew.llm.embedders import open_embedder
from clew.skills.library import Skills
from clew.trail import open_trail
from clew.trail.store import Trail
from tests.catalog.skills.northline import (
    CANCEL,
    FILES,
    FIND,
    LIST,
    LOAD,
    ME,
    REFERENCE,
    REFUND,
    UNLOAD,
    Caller,
    open_project,
    write_project,
)
from tests.leaked_keys import CARELESS, KEY_BODY, TOKEN, read_whole_trail
from tests.skills.definition_trees import markdown, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_project(tmp_path / "project", settings="[catalog]\nstrict = true\n")


@pytest.fixture
async def workspace(trail: Trail, clock: ManualClock, folder: Path) -> AsyncIterator[Workspace]:
    async with open_project(trail, clock, folder) as opened:
        yield opened


@pytest.fixture
async def caller(workspace: Workspace) -> Caller:
    made = Caller(workspace)
    await made.ask("money back for a cancelled crossing")
    return made


async def test_a_workspace_without_skills_has_no_such_domain(trail: Trail, clock: ManualClock, tmp_path: Path) -> None:
    folder = write_project(tmp_path / "bare", {})
    async with open_project(trail, clock, folder) as workspace:
        assert workspace.catalog.skills is None
        assert workspace.catalog.registry.find_domain("skills") is None


@pytest.mark.req("CAR-11")
async def test_ask_finds_a_skill_by_what_it_is_for_and_by_its_text(workspace: Workspace) -> None:
    by_need = await Caller(workspace).ask("give a passenger the money back", domain="skills")
    by_text = await Caller(workspace).ask("tell the harbour, then the passengers", domain="skills")
    assert by_need.sections[0].resources[0].route == "skills://resources/refunding"
    assert by_text.sections[0].resources[0].route == "skills://resources/cancelling"
    assert [entry.route for entry in by_need.sections[0].tools] == [FIND]


async def test_the_way_leads_from_find_to_load_to_a_reference_and_to_unload(caller: Caller) -> None:
    found = await caller.get(FIND, need="give passengers money back")
    assert found.data is not None
    step = found.data.guidance[0]
    assert (step.route, step.params) == (LOAD, {"skill": "refunding"})
    loaded = await caller.get(step.route, **(step.params or {}))
    assert loaded.data is not None
    assert "Look the payment up first." in loaded.data.content
    assert "Amounts are in cents." in loaded.data.content
    assert "Dear passenger" not in loaded.data.content
    reference, unload = loaded.data.guidance
    assert "letter templates" in reference.prose
    assert "Dear passenger" in await caller.text(reference.route, **(reference.params or {}))
    assert "is unloaded" in await caller.text(unload.route, **(unload.params or {}))


@pytest.mark.req("CAR-12")
@pytest.mark.req("CAR-14")
async def test_loading_opens_the_routes_of_a_skill_and_unloading_takes_them_back(caller: Caller) -> None:
    assert await caller.code(REFUND, amount=3) == "NOT_REVEALED"
    await caller.get(FIND, need="money back")
    assert REFUND in await caller.text(LOAD, skill="refunding")
    assert await caller.text(REFUND, amount=3) == "3 cents are on their way."
    assert await caller.code(CANCEL, crossing="Ferry 2") == "NOT_REVEALED"
    await caller.get(UNLOAD, skill="refunding")
    assert await caller.code(REFUND, amount=3) == "NOT_REVEALED"


@pytest.mark.req("CAR-14")
async def test_a_toolset_that_two_skills_bring_stays_until_the_second_leaves(caller: Caller) -> None:
    await caller.get(FIND, need="money back")
    for name in ("refunding", "cancelling"):
        await caller.get(LOAD, skill=name)
    await caller.get(UNLOAD, skill="refunding")
    assert await caller.code(REFUND, amount=3) == ""
    await caller.get(UNLOAD, skill="cancelling")
    assert await caller.code(REFUND, amount=3) == "NOT_REVEALED"


@pytest.mark.req("CAR-13")
async def test_a_toolset_is_loaded_by_itself_with_its_notes(caller: Caller) -> None:
    await caller.get(FIND, need="money back")
    text = await caller.text(LOAD, toolset="money")
    assert "Amounts are in cents." in text
    assert await caller.code(REFUND, amount=3) == ""
    await caller.get(UNLOAD, toolset="money")
    assert await caller.code(REFUND, amount=3) == "NOT_REVEALED"


@pytest.mark.req("CAR-12")
async def test_loading_twice_changes_nothing_and_says_so(caller: Caller) -> None:
    await caller.get(FIND, need="money back")
    await caller.get(LOAD, skill="refunding")
    before = await caller.workspace.catalog.exposures.open(caller.handle, by=ME)
    assert "was loaded already" in await caller.text(LOAD, skill="refunding")
    after = await caller.workspace.catalog.exposures.open(caller.handle, by=ME)
    assert before.items["skill:refunding"] == after.items["skill:refunding"]


@pytest.mark.req("CAR-12")
async def test_an_unknown_skill_is_refused_with_those_that_there_are(caller: Caller) -> None:
    await caller.get(FIND, need="money back")
    refused = await caller.get(LOAD, skill="refunds")
    assert refused.error is not None
    assert "refunding" in refused.error.message
    assert "announcing" in refused.error.message
    assert await caller.code(LOAD) == "EXECUTION_ERROR"
    assert await caller.code(LOAD, skill="refunding", toolset="money") == "EXECUTION_ERROR"


@pytest.mark.req("CAR-11")
async def test_the_list_names_what_can_be_loaded_and_no_texts(caller: Caller) -> None:
    await caller.get(FIND, need="money back")
    text = await caller.text(LIST)
    assert all(name in text for name in ("refunding", "cancelling", "announcing"))
    assert "Look the payment up first" not in text
    assert "cancelling (money, crossings)" in text


@pytest.mark.req("BEY-03")
async def test_the_shown_tokens_return_to_the_earlier_count(caller: Caller) -> None:
    await caller.get(FIND, need="money back")
    loaded = await caller.text(LOAD, skill="refunding")
    unloaded = await caller.text(UNLOAD, skill="refunding")
    assert ", before it was 0." in loaded
    assert "takes about 0 tokens, before it was " in unloaded
    assert (loaded.split(" tokens")[0].split()[-1]) == unloaded.rstrip(".").split()[-1]


async def test_ask_says_what_is_loaded_and_why_tells_by_what(caller: Caller) -> None:
    assert "Loaded skills" not in (await caller.ask("storm")).hint
    await caller.get(FIND, need="money back")
    await caller.get(LOAD, skill="refunding")
    assert (await caller.ask("engine trouble")).hint.startswith("Loaded skills: refunding (about ")
    catalog = caller.workspace.catalog
    why = await catalog.why(REFUND, by=ME, handle=caller.handle)
    assert (why.is_visible, why.reasons[0]) == (
        True,
        "It came with skill refunding, and is there until that is unloaded.",
    )
    assert not (await catalog.why(CANCEL, by=ME, handle=caller.handle)).is_visible


async def test_a_get_without_a_handle_begins_a_set_in_which_the_skill_is(
    trail: Trail, clock: ManualClock, tmp_path: Path
) -> None:
    async with open_project(trail, clock, write_project(tmp_path / "open")) as workspace:
        caller = Caller(workspace)
        await caller.get_all(*(Item(route=LOAD, params={"skill": name}) for name in ("refunding", "announcing")))
        text = await caller.text(LIST)
    assert "Loaded: " in text
    assert {"refunding", "announcing"} <= set(text.partition("Loaded: ")[2].partition(".")[0].split(", "))


async def test_callers_do_not_share_what_they_have_loaded(workspace: Workspace, caller: Caller) -> None:
    await caller.get(FIND, need="money back")
    await caller.get(LOAD, skill="refunding")
    other = Caller(workspace)
    await other.ask("money back")
    assert await other.code(REFUND, amount=1) == "NOT_REVEALED"
    stolen = Caller(workspace, Principal(owner_id="acme", agent_id="eve"))
    await stolen.ask("money back")
    assert await stolen.code(REFUND, amount=1) == "NOT_REVEALED"


async def test_loaded_skills_survive_the_process(
    trail: Trail, clock: ManualClock, folder: Path, caller: Caller
) -> None:
    await caller.get(FIND, need="money back")
    await caller.get(LOAD, skill="refunding")
    async with open_project(trail, clock, folder) as again:
        assert await Caller(again, handle=caller.handle).code(REFUND, amount=1) == ""


async def test_unloading_everything_leaves_the_routes_that_were_shown(caller: Caller) -> None:
    await caller.get(FIND, need="money back")
    await caller.get(LOAD, skill="refunding")
    await caller.get(LOAD, skill="announcing")
    assert "All skills are unloaded" in await caller.text(UNLOAD, all=True)
    assert await caller.code(REFUND, amount=1) == "NOT_REVEALED"
    assert "Loaded" not in await caller.text(LIST)


async def test_side_by_side_loads_end_as_loads_one_after_the_other(caller: Caller) -> None:
    await caller.get(FIND, need="money back")
    names = ["refunding", "cancelling", "announcing"] * 5
    await asyncio.gather(*(caller.get(LOAD, skill=name) for name in names))
    exposure = await caller.workspace.catalog.exposures.open(caller.handle, by=ME)
    assert {item for item in exposure.items if item.startswith("skill:")} == {f"skill:{name}" for name in names}


async def test_nothing_is_found_for_what_no_skill_is_for(caller: Caller) -> None:
    found = await caller.get(FIND, need="quantum chromodynamics lattice")
    assert found.data is not None
    assert "No skill here is close to that" in found.data.content
    assert [step.route for step in found.data.guidance] == [LIST]


@pytest.mark.parametrize("need", ["purchase a new car", "deploy services with helm"])
async def test_find_returns_the_skills_that_the_library_suggests(tmp_path: Path, clock: ManualClock, need: str) -> None:
    about = {
        "copywriting": ("Write marketing copy for landing pages", "Lead with the benefit. Name the objection early."),
        "deployment": ("Deploy services to Kubernetes with Helm", "Roll back with `helm rollback` when probes fail."),
        "invoices": ("Check invoices against purchase orders", "Compare order, receipt and invoice."),
    }
    files = {f".clew/skills/{name}/SKILL.md": markdown(b, name=name, description=a) for name, (a, b) in about.items()}
    trail = await open_trail(f"sqlite://{tmp_path}/skills.db", clock, open_embedder("wordllama"))
    async with open_project(trail, clock, write_project(tmp_path / "project", files)) as workspace:
        assert workspace.definitions is not None
        caller = Caller(workspace)
        await caller.ask(need)
        found = await caller.text(FIND, need=need)
        async with Skills(workspace.definitions.manifest) as library:
            suggested = [each.skill for each in await library.suggest_skills(need)]
    close = "" if found.startswith("No skill here is close") else found
    assert [name for name in about if f"**{name}**" in close] == sorted(suggested)
    assert bool(suggested) == ("helm" in need)
    await trail.close()


async def test_keys_in_a_skill_never_reach_the_trail(trail: Trail, clock: ManualClock, tmp_path: Path) -> None:
    skill = markdown(f"{CARELESS}\nSee [notes](notes.md).", name="signing", description=f"Sign releases with {TOKEN}")
    files = {".clew/skills/signing/SKILL.md": skill, ".clew/skills/signing/notes.md": f"Notes. {CARELESS}"}
    async with open_project(trail, clock, write_project(tmp_path / "project", files)):
        kept = await read_whole_trail(trail, ME)
    assert kept.count("and push with") == 2
    for secret in (TOKEN, KEY_BODY):
        assert secret not in kept


async def test_a_reference_is_found_by_the_text_that_leads_to_it(caller: Caller) -> None:
    found = await caller.get(FIND, need="letter templates")
    assert found.data is not None
    steps = [step.params for step in found.data.guidance if step.route == REFERENCE]
    assert steps == [{"skill": "refunding", "path": "references/templates.md"}]


async def test_an_agent_with_skills_of_its_own_may_load_no_others(
    trail: Trail, clock: ManualClock, tmp_path: Path
) -> None:
    agent = {".clew/agents/ann.md": markdown("You announce.", skills="[announcing]")}
    folder = write_project(tmp_path / "project", FILES | agent)
    async with open_project(trail, clock, folder) as workspace:
        caller = Caller(workspace)
        assert await caller.code(LOAD, skill="announcing") == ""
        refused = await caller.get(LOAD, skill="refunding")
        assert refused.error is not None
        assert "agent ann may not load skill refunding: it is not one of its skills" in refused.error.message
        assert "refunding" not in await caller.text(LIST)
        assert "refunding" not in await caller.text(FIND, need="give passengers money back")
        anybody = Caller(workspace, Principal(owner_id="acme", agent_id="bob"))
        assert await anybody.code(LOAD, skill="refunding") == ""


async def test_a_new_skill_a_changed_one_and_a_removed_one_are_seen_without_a_restart(
    workspace: Workspace, folder: Path
) -> None:
    write(
        folder.parent,
        {".agents/skills/mooring/SKILL.md": markdown("Throw the line.", name="mooring", description="Moor a ship")},
    )
    (folder / "skills" / "cancelling.md").unlink()
    await workspace.look_again()
    caller = Caller(workspace)
    assert "mooring" in (await caller.ask("moor the ship at the quay", domain="skills")).markdown
    text = await caller.text(FIND, need="moor the ship")
    assert "mooring" in text
    assert "not trusted yet" in text
    await caller.get(FIND, need="moor the ship")
    assert "cancelling" not in (await caller.ask("call off a crossing in a storm", domain="skills")).markdown


async def test_another_domain_of_that_name_is_not_pushed_aside(
    trail: Trail, clock: ManualClock, tmp_path: Path
) -> None:
    settings = "[sources.mine]\nkind = 'local'\nroot = 'docs'\ndomain = 'skills'\n"
    async with open_project(trail, clock, write_project(tmp_path / "project", settings=settings)) as workspace:
        assert workspace.catalog.skills is None
        assert "the skills of this folder are left out" in " ".join(workspace.tell_problems())


@pytest.mark.req("SYL-19")
async def test_a_skill_of_the_third_tier_is_found_by_its_name_and_by_no_words(
    trail: Trail, clock: ManualClock, tmp_path: Path
) -> None:
    ship = markdown(
        "Push it.", name="ship-it", description="Ship the boat to Oslo", **{"disable-model-invocation": "true"}
    )
    command = markdown("Paint $ARGUMENTS.", description="Paint the hull of the boat")
    files = {**FILES, ".claude/skills/ship-it/SKILL.md": ship, ".claude/commands/paint.md": command}
    async with open_project(trail, clock, write_project(tmp_path / "project", files)) as workspace:
        caller = Caller(workspace)
        for need in ("ship the boat to Oslo", "paint the hull of the boat"):
            answer = await caller.ask(need)
            assert "skills://resources/" not in answer.markdown
            assert "ship-it" not in await caller.text(FIND, need=need)
            assert "**paint**" not in await caller.text(FIND, need=need)
        listed = await caller.text(LIST)
        assert "To be loaded only if the user names them: paint, ship-it." in listed
        assert "Ship the boat" not in listed
        found = await caller.get(FIND, need="/ship-it")
        assert found.data is not None
        assert found.data.content == "- **ship-it**: Ship the boat to Oslo"
        assert "Push it." in await caller.text(LOAD, skill="ship-it")


@pytest.mark.parametrize("home", [".clew/skills", ".claude/skills"])
async def test_files_that_a_skill_names_without_a_link_are_listed_and_can_be_read(
    trail: Trail, clock: ManualClock, tmp_path: Path, home: str
) -> None:
    text = markdown(
        "Read FORMS.md first. Run `python ooxml/unpack.py in.docx` and fill one of templates/.\nThen ./check.sh.",
        name="papers",
        description="Fill in papers",
    )
    more = {
        "SKILL.md": text,
        "FORMS.md": "Form 7.",
        "ooxml/unpack.py": "print('unpacked')",
        "templates/bill.txt": "Dear Sir",
        "check.sh": "echo checked",
        "references/codes.json": "{}",
        "notes.md": "Nobody names this.",
    }
    files = {**FILES, **{f"{home}/papers/{path}": content for path, content in more.items()}}
    async with open_project(trail, clock, write_project(tmp_path / "project", files)) as workspace:
        caller = Caller(workspace)
        loaded = await caller.get(LOAD, skill="papers")
        assert loaded.data is not None
        steps = [each.params["path"] for each in loaded.data.guidance if each.route == REFERENCE]
        named = {"FORMS.md", "ooxml/unpack.py", "templates/bill.txt", "check.sh", "references/codes.json"}
        assert set(steps) == named
        for path in named:
            assert more[path] in await caller.text(REFERENCE, skill="papers", path=path)
        assert await caller.code(REFERENCE, skill="papers", path="notes.md") != ""


async def test_scripts_and_assets_are_listed_by_load_with_the_way_to_each(
    trail: Trail, clock: ManualClock, tmp_path: Path
) -> None:
    files = {**FILES, ".clew/skills/refunding/scripts/run.py": "print('paid')\n"}
    root = tmp_path / "project"
    folder = write_project(root, files)
    (root / ".clew/skills/refunding/assets").mkdir()
    (root / ".clew/skills/refunding/assets/logo.png").write_bytes(b"\x89PNG\xff")
    async with open_project(trail, clock, folder) as workspace:
        caller = Caller(workspace)
        loaded = await caller.get(LOAD, skill="refunding")
        assert loaded.data is not None
        told = "Files of refunding, in the folder .clew/skills/refunding: scripts/run.py, assets/logo.png."
        assert told in loaded.data.content
        steps = [each.params for each in loaded.data.guidance if each.route == REFERENCE]
        assert {"skill": "refunding", "path": "scripts/run.py"} in steps
        assert "print('paid')" in await caller.text(REFERENCE, skill="refunding", path="scripts/run.py")
        assert await caller.code(REFERENCE, skill="refunding", path="assets/logo.png") != "", "it is no text"
        assert await caller.code(REFERENCE, skill="refunding", path="scripts/../SKILL.md") != ""
