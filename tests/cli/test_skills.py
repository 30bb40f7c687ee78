"""The commands over skills: as a person writes, checks, imports, loads and looks at them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from clew.catalog.consent import NOT_TRUSTED, trust_skills
from clew.config import read_config
from clew.skills.checks.fixing import MAX_ROUNDS
from clew.skills.checks.problems import Problem
from clew.skills.definitions.importing import find_imports, write_imports
from clew.skills.definitions.loading import load_manifest
from tests.catalog.skills.northline import FILES, REFUND
from tests.cli.conftest import Clew
from tests.skills.writing import markdown, write
from tests.trusting import trust_all


@pytest.fixture
def project(folder: Path) -> Path:
    """A project with three skills that nobody has agreed to yet; its root."""
    return write(folder.parent, FILES)


def test_list_tells_what_is_there_and_whether_it_is_trusted(clew: Clew, project: Path, folder: Path) -> None:
    listed = clew("skills", "list")
    assert [line.split("\t")[0] for line in listed.lines] == ["announcing", "cancelling", "refunding"]
    assert all("not trusted yet: run `clew trust`" in line for line in listed.lines)
    assert not (folder / "trail.db").exists()
    assert clew("trust", "refunding", "--yes").code == 0
    states = {each["name"]: each["state"] for each in clew("skills", "list", "--json").json}
    assert states["refunding"] == "trusted"
    assert states["announcing"] != "trusted"


def test_trust_shows_skills_and_again_when_one_has_changed(clew: Clew, project: Path, folder: Path) -> None:
    asked = clew("trust")
    assert "skill refunding: Give passengers their money back" in asked.out
    assert clew("trust", "--yes").code == 0
    assert "Nothing waits" in clew("trust").err
    (folder / "skills" / "refunding" / "references" / "templates.md").write_text("Another letter.")
    assert "skill refunding" in clew("trust").out
    assert "skill announcing" not in clew("trust").out


def test_show_tells_all_of_one_skill_and_the_nearest_name_of_one_that_there_is_not(clew: Clew, project: Path) -> None:
    shown = clew("skills", "show", "refunding")
    assert "toolsets: money" in shown.out
    assert "references: references/templates.md" in shown.out
    assert "Look the payment up first." in shown.out
    assert clew("skills", "show", "refunding", "--json").json["toolsets"] == ["money"]
    missing = clew("skills", "show", "refundin")
    assert missing.code == 1
    assert "Did you mean refunding?" in missing.err


@pytest.mark.req("CAR-01")
def test_build_writes_a_manifest_that_can_be_loaded_and_is_the_same_each_time(clew: Clew, project: Path) -> None:
    assert clew("skills", "build", "--out", "manifest.json").code == 0
    first = (project / "manifest.json").read_bytes()
    assert set(load_manifest(project / "manifest.json").skills) == {"announcing", "cancelling", "refunding"}
    assert clew("skills", "build", "--out", "manifest.json").code == 0
    assert (project / "manifest.json").read_bytes() == first
    assert clew("skills", "build").out.encode() == first


def test_build_with_an_error_writes_nothing_and_says_where_it_is(clew: Clew, project: Path) -> None:
    write(project, {".clew/skills/broken.md": markdown(description="Broken", toolsets="[monney]")})
    failed = clew("skills", "build", "--out", "manifest.json")
    assert failed.code == 1
    assert ".clew/skills/broken.md:3" in failed.err
    assert not (project / "manifest.json").exists()


def test_lint_points_at_the_line_suggests_the_name_and_can_mend_it(clew: Clew, project: Path) -> None:
    write(project, {".clew/skills/broken.md": markdown("Text", description="Broken", toolsets="[monney]")})
    found = clew("skills", "lint")
    assert found.code == 1
    assert ".clew/skills/broken.md:3" in found.out
    assert "did you mean: money" in found.out
    assert "^^^" in found.out
    assert "1 error" in found.err
    (problem,) = clew("skills", "lint", "--json").json["problems"]
    assert (problem["line"], problem["nearest"]) == (3, "money")
    mended = clew("skills", "lint", "--fix")
    assert mended.code == 0
    assert "mended .clew/skills/broken.md:3" in mended.out
    assert "toolsets: [money]" in (project / ".clew" / "skills" / "broken.md").read_text()
    assert clew("skills", "lint").code == 0


def test_lint_takes_a_folder_that_is_a_team_of_its_own(clew: Clew, tmp_path: Path) -> None:
    write(tmp_path / "team", {"agents/a.md": markdown("You are.", skills="[lost]")})
    found = clew("skills", "lint", "team")
    assert found.code == 1
    assert "there is no skill `lost`" in found.out


def test_new_begins_a_skill_that_passes_the_lint(clew: Clew, folder: Path) -> None:
    made = clew("skills", "new", "release-notes", "--description", 'Draft "notes": for releases')
    assert made.code == 0
    file = folder / "skills" / "release-notes" / "SKILL.md"
    begun = clew("skills", "lint")
    assert begun.code == 0
    assert "the text of the template is still there" in begun.out
    assert clew("skills", "show", "release-notes", "--json").json["description"] == 'Draft "notes": for releases'
    file.write_text(markdown("# Notes\n\nRead the changes.", description="Draft notes"))
    assert clew("skills", "lint").out == ""
    again = clew("skills", "new", "release-notes")
    assert again.code == 1
    assert "exists already" in again.err


@pytest.mark.parametrize("name", ["Release", "a--b", "-a", "../x", "a/b", "", "ä"])
def test_new_refuses_names_that_no_skill_may_have(clew: Clew, folder: Path, name: str) -> None:
    refused = clew("skills", "new", "--", name)
    assert refused.code == 2
    assert not (folder / "skills").exists() or not list((folder / "skills").iterdir())


def elsewhere(tmp_path: Path) -> Path:
    files = {
        "mooring/SKILL.md": markdown("See [knots](references/knots.md).", name="mooring", description="Moor a ship"),
        "mooring/references/knots.md": "# Knots",
        "mooring/scripts/tie.sh": "echo tied\n",
    }
    place = write(tmp_path / "elsewhere", files)
    os.chmod(place / "mooring" / "scripts" / "tie.sh", 0o755)
    return place


def test_import_shows_what_it_would_write_and_then_writes_all_of_it(clew: Clew, folder: Path, tmp_path: Path) -> None:
    place = elsewhere(tmp_path)
    (place / "mooring" / "references" / "secret.md").symlink_to("/etc/hostname")
    tried = clew("skills", "import", str(place), "--dry-run")
    assert tried.code == 0
    assert str(folder / "skills" / "mooring" / "references" / "knots.md") in tried.out
    assert not (folder / "skills").exists()
    done = clew("skills", "import", str(place / "mooring"))
    assert done.code == 0
    for shown in (tried, done):
        assert "references/secret.md: the link leads out of the root: it was not followed" in shown.out
    copied = folder / "skills" / "mooring"
    names = sorted(file.relative_to(copied).as_posix() for file in copied.rglob("*") if file.is_file())
    assert names == ["SKILL.md", "references/knots.md", "scripts/tie.sh"]
    assert os.access(copied / "scripts" / "tie.sh", os.X_OK)
    (listed,) = [each for each in clew("skills", "list", "--json").json if each["path"].startswith(".clew")]
    assert (listed["name"], listed["state"]) == ("mooring", "trusted")


def test_import_replaces_a_skill_only_when_told_to(clew: Clew, folder: Path, tmp_path: Path) -> None:
    place = elsewhere(tmp_path)
    clew("skills", "import", str(place))
    (place / "mooring" / "references" / "knots.md").write_text("# Better knots")
    refused = clew("skills", "import", str(place))
    assert refused.code == 1
    assert "--force replaces it" in refused.err
    assert clew("skills", "import", str(place), "--force").code == 0
    assert (folder / "skills" / "mooring" / "references" / "knots.md").read_text() == "# Better knots"
    assert sorted(each.name for each in (folder / "skills").iterdir()) == ["mooring"]


FOREIGN = {
    "colon": "---\nname: colon\ndescription: Use when: money is due\n---\nPay.",
    "extra": "---\nname: extra\ndescription: b\nversion: 1.10\nargument-hint: '[amount]'\nmodel: sonnet\n"
    "disable-model-invocation: true\npaths: ['src/**']\nkeywords: [due]\nmetadata: {by: ann}\n---\nPay $ARGUMENTS.",
    "words": "---\nname: My Skill\ndescription: b\n---\nPay.",
    "bare": "Pay at once.",
}


def test_what_is_imported_from_other_programs_is_allowed_here(
    clew: Clew, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = write(tmp_path_factory.mktemp("out"), {f"{name}/SKILL.md": text for name, text in FOREIGN.items()})
    done = clew("skills", "import", str(place))
    assert done.code == 0
    assert "kept below `metadata`, without a meaning here: model, version" in done.out
    assert clew("skills", "lint").code == 0
    manifest = load_manifest(build_to(clew, folder))
    assert sorted(manifest.skills) == ["bare", "colon", "extra", "my-skill"]
    assert manifest.skills["colon"].description == "Use when: money is due"
    extra = manifest.skills["extra"]
    assert extra.metadata == {"by": "ann", "model": "sonnet", "version": "1.10"}
    assert (extra.tier, extra.triggers.paths, extra.keywords) == (3, ("src/**",), ("due",))
    assert (extra.parameters[0].name, extra.content) == ("arguments", "Pay $ARGUMENTS.")
    states = {each["state"] for each in clew("skills", "list", "--json").json}
    assert states == {"trusted"}


def build_to(clew: Clew, folder: Path) -> Path:
    """The manifest of the folder, in a file."""
    file = folder.parent / "manifest.json"
    assert clew("skills", "build", "--out", str(file)).code == 0
    return file


def test_what_cannot_be_made_valid_is_told_and_not_copied(
    clew: Clew, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    texts = {
        "long": f"---\nname: long\ndescription: {'a' * 5_000}\n---\nPay.",
        "good": "---\nname: good\ndescription: b\n---\nPay.",
    }
    place = write(tmp_path_factory.mktemp("out"), {f"{name}/SKILL.md": text for name, text in texts.items()})
    for more in (("--dry-run",), ()):
        done = clew("skills", "import", str(place), "--json", *more)
        assert done.code == 1
        problems = {each["name"]: each["problem"] for each in done.json["found"]}
        assert problems["good"] == ""
        assert problems["long"] == "its SKILL.md is not allowed here: `description` has 5,000 characters"
    assert [each.name for each in (folder / "skills").iterdir()] == ["good"]


def test_a_link_within_a_skill_is_imported_as_the_file_that_it_leads_to(
    clew: Clew, folder: Path, tmp_path: Path
) -> None:
    place = elsewhere(tmp_path)
    (place / "mooring" / "start.md").symlink_to("references/knots.md")
    assert clew("skills", "import", str(place / "mooring")).code == 0
    copied = folder / "skills" / "mooring"
    assert (copied / "start.md").read_bytes() == (copied / "references" / "knots.md").read_bytes()
    assert not (copied / "start.md").is_symlink()


def test_import_of_nothing_says_so(clew: Clew, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert clew("skills", "import", "empty").code == 1
    assert clew("skills", "import", "no-such-folder").code == 1
    assert clew("skills", "import").code == 2


@pytest.mark.req("CAR-12")
@pytest.mark.req("CAR-14")
def test_a_person_loads_and_unloads_in_the_session_of_an_agent(clew: Clew, project: Path, folder: Path) -> None:
    write(project, {".clew/agents/ann.md": markdown("You sell tickets.", description="At the counter")})
    trust_all(folder)
    talk = ("--session", "talk", "--agent", "ann")
    loaded = clew("skills", "load", "refunding", *talk, "--json").json
    assert loaded["state"]["discoveredSkills"] == ["refunding"]
    assert loaded["state"]["exposedDomainTools"] == [REFUND]
    assert loaded["tokensAfter"] > loaded["tokensBefore"] == 0
    listed = {each["name"]: each["state"] for each in clew("skills", "list", *talk, "--json").json}
    assert listed["refunding"] == "loaded"
    why = clew("skills", "why", "refunding", *talk).out
    assert why.startswith("visible  skill:refunding")
    assert "by clew skills load" in why
    assert clew("skills", "why", "refunding", "--session", "other", "--agent", "ann").out.startswith("not visible")
    assert "refunding: unloaded" in clew("skills", "unload", "refunding", *talk).out
    assert clew("skills", "load", "refunding").code == 2
    assert clew("skills", "load", "no-such", *talk).code == 1


def test_what_is_not_trusted_cannot_be_loaded_by_hand_either(clew: Clew, project: Path) -> None:
    refused = clew("skills", "load", "refunding", "--session", "talk")
    assert refused.code == 1
    assert "not trusted yet" in refused.err
    assert "Did you mean" not in refused.err
    assert "agree: clew trust" in refused.err


def test_a_folder_without_skills_says_how_to_begin(clew: Clew, folder: Path) -> None:
    listed = clew("skills", "list")
    assert listed.out == ""
    assert "No skills here" in listed.err
    assert json.loads(clew("skills", "list", "--json").out) == []
    for command in ("lint", "build"):
        done = clew("skills", command)
        assert done.code == 1
        assert "has no definitions" in done.err
    assert "clew skills new" in clew("skills", "load", "x", "--session", "s").err


@pytest.mark.parametrize("command", ["lint", "build"])
def test_a_place_that_is_not_there_or_defines_nothing_is_no_success(clew: Clew, project: Path, command: str) -> None:
    write(project, {"docs/guide.md": "# Guide\n"})
    missing = clew("skills", command, "nope")
    assert missing.code == 2
    assert len(missing.err.splitlines()) == 1
    assert "nope" in missing.err
    empty = clew("skills", command, "docs")
    assert empty.code == 1
    assert "docs has no definitions" in empty.err
    assert clew("skills", command, "docs/guide.md").code == 2


def test_a_file_has_the_same_problems_however_it_is_named(clew: Clew, project: Path) -> None:
    files = {
        ".clew/skills/broken/SKILL.md": markdown("Text", description="Broken", toolset="[x]", skills="[refundin]"),
        ".clew/skills/other.md": markdown("Text", descripton="Other"),
    }
    write(project, files)
    whole = clew("skills", "lint", "--json").json["problems"]
    mine = [each for each in whole if each["path"] == ".clew/skills/broken/SKILL.md"]
    assert [each["nearest"] for each in mine] == ["toolsets", "refunding"]
    for place in (".clew/skills/broken", ".clew/skills/broken/SKILL.md"):
        assert clew("skills", "lint", place, "--json").json["problems"] == mine
    for place in (".", ".clew", ".clew/skills"):
        assert clew("skills", "lint", place, "--json").json["problems"] == whole


def test_lint_of_a_part_mends_only_that_part(clew: Clew, project: Path) -> None:
    broken = markdown("Text", description="Broken", toolsets="[monney]")
    write(project, {".clew/skills/one.md": broken, ".clew/skills/two.md": broken})
    assert clew("skills", "lint", ".clew/skills/one.md", "--fix").code == 0
    assert "[money]" in (project / ".clew" / "skills" / "one.md").read_text()
    assert (project / ".clew" / "skills" / "two.md").read_text() == broken


def test_a_misspelt_route_is_a_warning_where_the_trail_knows_the_tools(clew: Clew, project: Path) -> None:
    route = "skills://tools/hidden/lod"
    write(project, {".clew/toolsets/loading.md": markdown(description="Loading", tools=f'["{route}"]')})
    assert clew("skills", "lint").out == ""
    clew("trust", "--yes")
    clew("domains")
    found = clew("skills", "lint", "--json")
    assert found.code == 0
    (problem,) = found.json["problems"]
    assert (problem["path"], problem["line"], problem["severity"]) == (".clew/toolsets/loading.md", 3, "warning")
    assert problem["nearest"] == "skills://tools/hidden/load"
    assert clew("skills", "lint", ".clew/toolsets", "--json").json["problems"] == [problem]


def test_a_conversation_over_mcp_is_named_by_its_handle(clew: Clew, project: Path) -> None:
    clew("trust", "--yes")
    handle = clew("ask", "money back", "--json").json["handle"]
    assert "refunding: loaded" in clew("skills", "load", "refunding", "--handle", handle).out
    why = clew("skills", "why", "refunding", "--handle", handle, "--json").json
    assert why["is_visible"]
    assert why == clew("why", "skill", "refunding", "--handle", handle, "--json").json
    assert "refunding: unloaded" in clew("skills", "unload", "refunding", "--handle", handle).out
    for command in ("load", "unload", "why"):
        taken = clew("skills", command, "refunding", "--session", handle)
        assert (taken.code, f"Say --handle {handle}" in taken.err) == (2, True)
        unknown = clew("skills", command, "refunding", "--handle", "clew-nobody")
        assert (unknown.code, "this handle has ended, or is not yours" in unknown.err) == (1, True)
        both = clew("skills", command, "refunding", "--handle", handle, "--session", "42")
        assert both.code == 2


def test_an_agent_that_nobody_knows_is_refused_with_the_nearest_name(clew: Clew, project: Path) -> None:
    write(project, {".clew/agents/clerk.md": markdown("You sell tickets.", description="At the counter")})
    clew("trust", "--yes")
    for command in ("load", "unload", "why"):
        refused = clew("skills", command, "refunding", "--session", "42", "--agent", "clrk")
        assert refused.code == 1
        assert "no agent 'clrk'. Did you mean clerk?" in refused.err
    assert clew("skills", "load", "refunding", "--session", "42", "--agent", "clerk").code == 0


def test_trust_names_what_was_meant_and_says_when_a_revocation_holds(clew: Clew, project: Path) -> None:
    assert "You have agreed to nothing yet" in clew("trust", "--list").err
    assert "Did you mean refunding?" in clew("trust", "refundin", "--yes").err
    clew("trust", "--yes")
    assert "Did you mean refunding?" in clew("trust", "--revoke", "refundin").err
    done = clew("trust", "--revoke", "refunding")
    assert "withheld at once" in done.err
    assert "stays until it ends" not in done.err
    assert "There are no rules here" in clew("rules", "ls").err


def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A skill that is no part of the project."""
    place = tmp_path_factory.mktemp("outside")
    return write(place, {"mooring/SKILL.md": markdown("Tie it.", name="mooring", description="Moor a ship")})


def test_import_refuses_a_name_that_another_file_of_the_project_has(
    clew: Clew, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    write(folder, {"skills/aaa/SKILL.md": markdown("Send it all.", name="mooring", description="Moor a ship")})
    refused = clew("skills", "import", str(outside(tmp_path_factory)), "--force")
    assert refused.code == 1
    assert str(folder / "skills" / "aaa" / "SKILL.md") in refused.err
    assert not (folder / "skills" / "mooring").exists()
    (listed,) = clew("skills", "list", "--json").json
    assert (listed["path"], listed["state"]) == (".clew/skills/aaa/SKILL.md", NOT_TRUSTED)


def test_consent_goes_to_the_file_that_was_written_and_not_to_its_name(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (chosen,) = find_imports([outside(tmp_path_factory)], folder / "skills")
    written = write_imports([chosen], folder / "skills")
    config = read_config(folder)
    (agreed,) = trust_skills(config, written)
    assert (agreed.name, [agreed.digest]) == ("mooring", list(written.values()))
    write(folder, {"skills/aaa/SKILL.md": markdown("Send it all.", name="mooring", description="Moor a ship")})
    assert trust_skills(config, written) == []
    (folder / "skills" / "aaa" / "SKILL.md").unlink()
    (folder / "skills" / "mooring" / "SKILL.md").write_text(markdown("Other.", name="mooring", description="Moor"))
    assert trust_skills(config, written) == []


def test_an_imported_skill_brings_no_consent_to_toolsets_of_the_project(
    clew: Clew, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = markdown("Pay.", name="paying", description="Pay a bill", toolsets="[money]")
    place = write(tmp_path_factory.mktemp("outside"), {"paying/SKILL.md": text})
    done = clew("skills", "import", str(place))
    assert done.code == 0
    assert "run `clew trust`" in done.err
    (listed,) = [each for each in clew("skills", "list", "--json").json if each["name"] == "paying"]
    assert listed["state"] == NOT_TRUSTED


def test_import_refuses_a_folder_in_which_it_is_open_what_the_skill_says(
    clew: Clew, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = outside(tmp_path_factory)
    (place / "mooring" / "Skill.md").write_text("other")
    if (place / "mooring" / "SKILL.md").read_text() == "other":
        pytest.skip("this file system knows no capital letters")
    refused = clew("skills", "import", str(place))
    assert (refused.code, "several files SKILL.md" in refused.err) == (1, True)
    assert not (folder / "skills" / "mooring").exists()


@pytest.mark.parametrize("place", [".clew", ".clew/skills"])
def test_no_skill_is_written_through_a_link_out_of_the_project(
    clew: Clew, folder: Path, tmp_path_factory: pytest.TempPathFactory, place: str
) -> None:
    skill, target = outside(tmp_path_factory), tmp_path_factory.mktemp("target")
    link = folder.parent / place
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(target)
    for command in (("new", "release-notes"), ("import", str(skill))):
        refused = clew("skills", *command)
        assert refused.code == 1
        assert "leads out of" in refused.err
        assert refused.err.count("\n") == 1
    assert list(target.iterdir()) == []


def test_lint_stops_mending_what_never_comes_to_an_end(
    clew: Clew, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = []

    def mend_again(root: Path, problems: object) -> list[Problem]:
        rounds.append(root)
        assert len(rounds) <= MAX_ROUNDS
        return [Problem(kind="build", path="a.md", message="is still wrong")]

    monkeypatch.setattr("clew.skills.checks.fixing.apply_fixes", mend_again)
    assert clew("skills", "lint", "--fix").code == 0
    assert len(rounds) == MAX_ROUNDS


def test_a_skill_with_errors_is_said_to_have_them_and_not_to_be_missing(clew: Clew, folder: Path) -> None:
    write(folder, {"skills/w/SKILL.md": markdown("Weigh.", name="w", description="Weigh", colour="red")})
    for command in (("load", "w", "--session", "talk"), ("show", "w"), ("load", "x", "--session", "talk")):
        refused = clew("skills", *command)
        assert refused.code == 1
        assert "w cannot be used: there are errors in .clew/skills/w/SKILL.md:4" in refused.err
        assert "`clew skills lint` shows them" in refused.err
    for command in (("skills", "why", "w"), ("why", "skill", "w")):
        assert (
            "Skill w has errors, first in .clew/skills/w/SKILL.md:4: `clew skills lint` shows them."
            in clew(*command).out
        )
    write(folder, {"skills/good/SKILL.md": markdown("Go.", name="good", description="Go"), "skills/n.md": "text"})
    assert "Skill n has errors" in clew("skills", "why", "n").out
    assert "Skill w has errors" in clew("skills", "why", "w").out
    assert "This folder" not in clew("skills", "show", "none").err


def test_a_link_to_another_skill_is_mended_once(clew: Clew, folder: Path) -> None:
    write(folder, {"skills/good/SKILL.md": markdown("Go.", name="bad", description="Go")})
    (folder / "skills" / "alias").symlink_to("good")
    done = clew("skills", "lint", "--fix")
    assert (done.code, done.out.count("mended")) == (0, 1)


def test_lint_tells_of_tools_and_models_of_agents_that_there_are_not(clew: Clew, folder: Path) -> None:
    text = markdown(
        "You sell.",
        description="At the counter",
        model="fsat",
        tools="[Read, Bassh, read-fil, grpe, Task, 'geo://tools/x', 'note-*', crossing-time]",
        permissions="{deny: [exce, 'exec(rm*)']}",
    )
    write(folder, {"agents/ann.md": text, "agents/bob.md": markdown("You buy.", model="fast", tools="[grep]")})
    done = clew("skills", "lint", "--json")
    told = [(each["line"], each["message"], each.get("nearest")) for each in done.json["problems"]]
    assert told == [
        (3, "there is no model or role `fsat`", "fast"),
        (4, "there is no tool `Bassh`", "bash"),
        (4, "there is no tool `read-fil`", "read-file"),
        (4, "there is no tool `grpe`", "grep"),
        (4, "there is no tool `crossing-time`", None),
        (5, "there is no tool `exce`", "exec"),
    ]
    assert done.code == 0
    tool = {
        "name": "crossing-time",
        "description": "How long it takes",
        "language": "python",
        "code": "def run(input, context):\n    return {}\n",
        "input_schema": {"type": "object"},
    }
    draft = {"title": "T", "schema_name": "tool.code.v1", "tags": ["workspace:tools"], "context": tool}
    assert clew("trail", "put", stdin=json.dumps(draft).encode()).code == 0
    assert "crossing-time`" not in clew("skills", "lint").out
