"""Skills that a person imports: copied and skipped files, and consent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clew.catalog.consent.consent import NOT_TRUSTED, trust_skills
from clew.config import read_config
from clew.skills.definitions.manifest_loader import load_manifest
from clew.skills.definitions.skill_import import find_imports, write_imports
from tests.catalog.skills.northline import FILES
from tests.cli.conftest import Clew
from tests.skills.definition_trees import markdown, write


@pytest.fixture
def project(folder: Path) -> Path:
    """A project with three skills that nobody has agreed to yet; its root."""
    return write(folder.parent, FILES)


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
        assert "references/secret.md: the link leads out of the root: Clew does not follow it" in shown.out
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
    assert "--force to replace it" in refused.err
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


def test_fields_of_other_programs_are_allowed_in_imported_skills(
    clew: Clew, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = write(tmp_path_factory.mktemp("out"), {f"{name}/SKILL.md": text for name, text in FOREIGN.items()})
    done = clew("skills", "import", str(place))
    assert done.code == 0
    assert "moved to `metadata`, where they have no effect: model, version" in done.out
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


def test_skills_that_cannot_be_made_valid_are_reported_and_not_copied(
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
        assert problems["long"] == "its SKILL.md is not valid: `description` has 5,000 characters"
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
