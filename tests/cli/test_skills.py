"""The commands over skills: as a person writes, checks, imports, loads and looks at them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from clew.skills.loading import load_manifest
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
    assert (folder / "skills" / "release-notes" / "SKILL.md").exists()
    assert clew("skills", "lint").code == 0
    assert clew("skills", "show", "release-notes", "--json").json["description"] == 'Draft "notes": for releases'
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


def test_import_of_nothing_says_so(clew: Clew, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert clew("skills", "import", "empty").code == 1
    assert clew("skills", "import", "no-such-folder").code == 1
    assert clew("skills", "import").code == 2


@pytest.mark.req("CAR-12")
@pytest.mark.req("CAR-14")
def test_a_person_loads_and_unloads_in_the_session_of_an_agent(clew: Clew, project: Path, folder: Path) -> None:
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


def test_a_folder_without_skills_says_how_to_begin(clew: Clew, folder: Path) -> None:
    assert clew("skills", "list").out == ""
    assert json.loads(clew("skills", "list", "--json").out) == []
    assert clew("skills", "lint").code == 0
    assert "clew skills new" in clew("skills", "load", "x", "--session", "s").err
