"""The commands for skills: list, trust, load and show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.catalog.skills.northline import FILES, REFUND
from tests.cli.conftest import Clew
from tests.consent import trust_all
from tests.skills.definition_trees import markdown, write


@pytest.fixture
def project(folder: Path) -> Path:
    """A project with three skills that nobody has agreed to yet; its root."""
    return write(folder.parent, FILES)


def test_list_tells_what_is_there_and_whether_it_is_trusted(clew: Clew, project: Path, folder: Path) -> None:
    listed = clew("skills", "list")
    assert [row[0] for row in listed.rows] == ["announcing", "cancelling", "refunding"]
    assert all("not trusted yet: run `clew trust`" in line for line in listed.lines[1:])
    assert not (folder / "trail.db").exists()
    assert clew("trust", "refunding", "--yes").code == 0
    states = {each["name"]: each["state"] for each in clew("skills", "list", "--json").json}
    assert states["refunding"] == "trusted"
    assert states["announcing"] != "trusted"


def test_trust_shows_skills_and_again_when_one_has_changed(clew: Clew, project: Path, folder: Path) -> None:
    asked = clew("trust")
    assert "skill refunding: Give passengers their money back" in asked.out
    assert clew("trust", "--yes").code == 0
    assert "Nothing here needs" in clew("trust").err
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


def test_an_untrusted_skill_cannot_be_loaded_by_hand(clew: Clew, project: Path) -> None:
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
        assert (taken.code, f"Use --handle {handle}" in taken.err) == (2, True)
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
    assert "until it ends" not in done.err
    assert "No rules here" in clew("rules", "ls").err


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


def test_the_nearest_skills_are_named_where_none_is_close(
    clew: Clew, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEW_EMBEDDER", "wordllama")
    about = {
        "release-notes": ("Draft release notes and tag a release of the package.", "Bump the version, tag it, upload."),
        "refunds": ("Handle refunds of customers.", "Look the payment up first."),
        "db-migrations": ("Write and review migrations of the database schema.", "Never drop a column in one step."),
    }
    files = {
        f".clew/skills/{name}.md": markdown(text, description=description)
        for name, (description, text) in about.items()
    }
    write(folder.parent, files)
    trust_all(folder)
    found = clew("get", "skills://tools/find", "need=publish a new version").out
    assert found.startswith("No skill here is close to that. The nearest, which may be meant:\n\n- **release-notes**")
    assert '{"skill":"release-notes"}' in found
    assert "The nearest" not in clew("get", "skills://tools/find", "need=bake a loaf of bread").out
    assert "The nearest" not in clew("get", "skills://tools/find", "need=release notes").out
