"""The definitions of a tree: each once, with resolved or refused links, and without failures."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from clew.skills.formats import definition_reader, digests, unique_names
from clew.skills.formats.collection import Alias, Collected, collect, wishes
from clew.skills.formats.definition_reader import ParseCache
from clew.skills.manifest import Skill
from clew.trust import Trust
from tests.conftest import DATA
from tests.skills.formats.trees import only_skill, plant, skill_text

TREES = DATA / "agents_md_trees.jsonl"

BY_HAND: list[dict[str, Any]] = [
    {"path": "AGENTS.md", "mode": "100644"},
    {"path": "CLAUDE.md", "mode": "120000", "link": "AGENTS.md"},
    {"path": "core/src/_shared/AGENTS.md", "mode": "100644"},
    {"path": "sdk/src/_shared/AGENTS.md", "mode": "120000", "link": "../../../core/src/_shared/AGENTS.md"},
    {"path": "sdk/CLAUDE.md", "mode": "100644"},
    {"path": ".agents/skills/creating/SKILL.md", "mode": "100644"},
    {"path": ".agents/skills/reviewing/SKILL.md", "mode": "100644"},
    {"path": ".claude/skills", "mode": "120000", "link": "../.agents/skills"},
    {"path": ".claude/plugins/tea/skills/creating", "mode": "120000", "link": "../../../../.agents/skills/creating"},
    {"path": ".claude/plugins/tea/skills/brewing/SKILL.md", "mode": "100644"},
    {"path": "examples/one/data/rescue/SKILL.md", "mode": "100644"},
    {"path": "examples/two/data/rescue/SKILL.md", "mode": "100644"},
    {"path": "packages/@scope/pkg/template/CLAUDE.md", "mode": "100644"},
]


def rebuild(root: Path, entries: list[dict[str, Any]]) -> None:
    """The paths and links of a tree; the file contents are invented."""
    for entry in entries:
        file = root / entry["path"]
        file.parent.mkdir(parents=True, exist_ok=True)
        if entry["mode"] == "120000":
            file.symlink_to(entry["link"])
        elif file.name == "SKILL.md":
            file.write_text(skill_text(file.parent.name, f"About {entry['path']}."))
        else:
            file.write_text(f"Rules of {entry['path']}.\n")


def check_each_once(root: Path, entries: list[dict[str, Any]], found: Collected) -> None:
    real = {entry["path"] for entry in entries if entry["mode"] != "120000"}
    links = {entry["path"]: entry["link"] for entry in entries if entry["mode"] == "120000"}
    assert sorted(each.path for each in found.skills) == sorted(path for path in real if path.endswith("SKILL.md"))
    rules = {path for path in (*real, *links) if path.endswith(".md") and not path.endswith("SKILL.md")}
    assert sorted(each.path for each in found.rules) == sorted(rules)
    for rule in found.rules:
        assert rule.target == (str(os.path.relpath((root / rule.path).resolve(), root)) if rule.path in links else "")
    targets = {path: os.path.relpath((root / path).resolve(), root) for path in links}
    assert {each.path: each.target for each in found.aliases} == targets
    assert [each for each in found.problems if each.severity == "error"] == []


@pytest.mark.req("PLA-12")
@pytest.mark.req("PLA-14")
def test_a_tree_with_links_is_found_with_every_file_once(tmp_path: Path) -> None:
    rebuild(tmp_path, BY_HAND)
    found = collect(tmp_path)
    check_each_once(tmp_path, BY_HAND, found)
    assert [each.name for each in found.skills] == ["brewing", "creating", "data-rescue", "rescue", "reviewing"]
    assert [each.path for each in found.problems] == ["examples/two/data/rescue/SKILL.md"]


def public_trees() -> list[dict[str, Any]]:
    return [json.loads(line) for line in TREES.read_text().splitlines()] if TREES.exists() else []


@pytest.mark.skipif(not TREES.exists(), reason=f"there are no public trees in {DATA}: they are NOT checked")
@pytest.mark.parametrize("tree", public_trees(), ids=lambda tree: tree["repo"])
def test_the_public_trees_are_found_with_every_file_once(tmp_path: Path, tree: dict[str, Any]) -> None:
    rebuild(tmp_path, tree["entries"])
    check_each_once(tmp_path, tree["entries"], collect(tmp_path))


def test_links_out_of_the_root_are_refused_and_nothing_behind_them_is_read(tmp_path: Path) -> None:
    plant(
        tmp_path,
        {
            "out/skills/secret/SKILL.md": skill_text("secret"),
            "out/AGENTS.md": "secret",
            "root/.claude/skills/mine/SKILL.md": skill_text("mine"),
            "root/.claude/skills/mine/scripts/a.py": "1",
        },
    )
    root, out = tmp_path / "root", tmp_path / "out"
    (root / ".agents").mkdir()
    (root / ".agents/skills").symlink_to(out / "skills")
    (root / ".claude/skills/relative").symlink_to("../../../out/skills/secret")
    (root / ".claude/skills/mine/scripts/b.py").symlink_to(out / "AGENTS.md")
    (root / "AGENTS.md").symlink_to(out / "AGENTS.md")
    (root / "SKILL.md").symlink_to(out / "skills/secret/SKILL.md")
    (root / "docs").symlink_to(out)
    (root / "notes.md").symlink_to(out / "AGENTS.md")
    found = collect(root)
    assert only_skill(found).scripts == ("scripts/a.py",)
    assert (found.rules, found.aliases) == ((), ())
    assert [(each.path, each.severity) for each in found.problems] == [
        (".agents/skills", "error"),
        (".claude/skills/mine/scripts/b.py", "error"),
        (".claude/skills/relative", "error"),
        ("AGENTS.md", "error"),
        ("SKILL.md", "error"),
        ("docs", "warning"),
    ]
    assert {each.message for each in found.problems} == {"the link leads out of the root: Clew does not follow it"}


@pytest.mark.skipif(os.name != "posix", reason="there are no pipes with names here")
def test_pipes_dead_links_and_invalid_names_are_reported(tmp_path: Path) -> None:
    root = plant(tmp_path, {"skills/tea/SKILL.md": skill_text("tea")})
    plant(root, {"skills/line\nbreak/SKILL.md": skill_text("x"), "skills/\u202eturned/SKILL.md": skill_text("y")})
    os.mkdir(os.fsencode(root) + b"/skills/\xff")
    with open(os.fsencode(root) + b"/skills/\xff/SKILL.md", "w") as file:
        file.write(skill_text("z"))
    (root / "skills/pipe").mkdir()
    os.mkfifo(root / "skills/pipe/SKILL.md")
    (root / "CLAUDE.md").symlink_to("skills/pipe/SKILL.md")
    (root / "AGENTS.md").symlink_to("gone.md")
    found = collect(root)
    assert only_skill(found).name == "tea"
    assert all(each.severity == "error" and each.path.isprintable() for each in found.problems)
    assert [each.path for each in found.problems] == [
        "AGENTS.md",
        "CLAUDE.md",
        "skills/\\u202eturned/SKILL.md",
        "skills/\\udcff/SKILL.md",
        "skills/line\\nbreak/SKILL.md",
        "skills/pipe/SKILL.md",
    ]
    assert msgspec.json.decode(msgspec.json.encode(found), type=Collected) == found


def test_a_file_of_a_hundred_megabytes_is_not_read(tmp_path: Path) -> None:
    root = plant(tmp_path, {"skills/tea/SKILL.md": "", "AGENTS.md": ""})
    os.truncate(root / "skills/tea/SKILL.md", 100_000_000)
    os.truncate(root / "AGENTS.md", 100_000_000)
    found = collect(root)
    assert (found.skills, found.rules) == ((), ())
    assert [(each.path, each.message) for each in found.problems] == [
        ("AGENTS.md", "has more than 1,048,576 bytes"),
        ("skills/tea/SKILL.md", "has more than 1,048,576 bytes"),
    ]


AS_ANYBODY = """
import os, sys
from pathlib import Path
from clew.skills.formats.collection import collect
collect(Path(sys.argv[1]))  # all that is needed is imported now: not everybody may be able to
if os.geteuid() == 0:  # who may read everything
    os.setuid(65534)
found = collect(Path(sys.argv[1]))
print([each.name for each in found.skills], [(each.path, each.message) for each in found.problems])
"""


@pytest.mark.skipif(os.name != "posix", reason="permissions are others here")
def test_unreadable_files_are_reported() -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = {"skills/a/SKILL.md": skill_text("a"), "skills/b/SKILL.md": skill_text("b"), "c/x": ""}
        root = plant(Path(folder), files)
        root.chmod(0o755)
        (root / "skills/a/SKILL.md").chmod(0)
        (root / "c").chmod(0)
        run = subprocess.run([sys.executable, "-c", AS_ANYBODY, folder], capture_output=True, text=True, check=False)
        (root / "c").chmod(0o755)
    assert run.stdout.strip() == (
        "['b'] [('c', 'the folder cannot be read: permission denied'), "
        "('skills/a/SKILL.md', 'cannot be read: permission denied')]"
    ), run.stderr


def test_a_skill_behind_a_link_is_named_after_the_link(tmp_path: Path) -> None:
    root = plant(tmp_path, {"node_modules/pkg/stuff/SKILL.md": skill_text("tea"), ".claude/skills/x/a": ""})
    (root / ".claude/skills/tea").symlink_to("../../node_modules/pkg/stuff")
    found = collect(root)
    assert only_skill(found).path == "node_modules/pkg/stuff/SKILL.md"
    assert found.aliases == (Alias(path=".claude/skills/tea", target="node_modules/pkg/stuff"),)
    assert found.problems == ()


def test_agents_behind_a_linked_folder_are_found(tmp_path: Path) -> None:
    root = plant(tmp_path, {"shared/people/a.md": "---\nname: a\ndescription: b\n---\nYou are a.", ".claude/x": ""})
    (root / ".claude/agents").symlink_to("../shared/people")
    assert [each.path for each in collect(root).agents] == ["shared/people/a.md"]


def test_duplicate_names_get_prefixes_and_exact_copies_are_merged(tmp_path: Path) -> None:
    root = plant(
        tmp_path,
        {
            ".agents/skills/tea/SKILL.md": skill_text("tea", "one"),
            ".claude/skills/tea/SKILL.md": skill_text("tea", "one"),
            "plugins/kitchen/skills/tea/SKILL.md": skill_text("tea", "two"),
            "plugins/garden/skills/tea/SKILL.md": skill_text("tea", "three"),
            "plugins/garden/skills/deep/skills/tea/SKILL.md": skill_text("tea", "four"),
        },
    )
    found = collect(root)
    assert {each.name: each.description for each in found.skills} == {
        "deep-tea": "four",
        "garden-tea": "three",
        "kitchen-tea": "two",
        "tea": "one",
    }
    assert found.aliases == (Alias(path=".claude/skills/tea/SKILL.md", target=".agents/skills/tea/SKILL.md"),)
    assert len(found.problems) == 3


def test_duplicates_without_a_folder_prefix_get_a_number(tmp_path: Path) -> None:
    root = plant(
        tmp_path,
        {
            "skills/a/SKILL.md": skill_text("tea", "one"),
            "skills/b/SKILL.md": skill_text("tea", "two"),
            "skills/c/SKILL.md": skill_text("tea", "three"),
        },
    )
    assert [(each.name, each.description) for each in collect(root).skills] == [
        ("tea", "one"),
        ("tea-2", "two"),
        ("tea-3", "three"),
    ]


def test_rules_that_are_not_text_are_reported_and_left_out(tmp_path: Path) -> None:
    found = collect(plant(tmp_path, {"AGENTS.md": b"\xff\xfe\x00", "src/AGENTS.md": "", "src/CLAUDE.md": "---\nx"}))
    assert [(each.path, each.kind) for each in found.rules] == [
        ("src/AGENTS.md", "AGENTS.md"),
        ("src/CLAUDE.md", "CLAUDE.md"),
    ]
    assert [(each.path, each.severity) for each in found.problems] == [("AGENTS.md", "error")]


def test_the_size_limit_of_a_tree_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definition_reader, "MAX_TOTAL", 100)
    found = collect(plant(tmp_path, {f"skills/{name}/SKILL.md": skill_text(name) for name in "abc"}))
    assert [each.name for each in found.skills] == ["a"]
    assert ["more than 100 bytes" in each.message for each in found.problems] == [True, True]


def test_two_reads_of_one_tree_are_equal(tmp_path: Path) -> None:
    rebuild(tmp_path, BY_HAND)
    assert msgspec.json.encode(collect(tmp_path)) == msgspec.json.encode(collect(tmp_path))


@pytest.mark.parametrize("root", ["missing", "file.txt"])
def test_a_root_that_is_no_folder_is_a_problem(tmp_path: Path, root: str) -> None:
    plant(tmp_path, {"file.txt": "x"})
    found = collect(tmp_path / root)
    assert [each.kind for each in found.problems] == ["config"]


def test_an_empty_root_holds_nothing(tmp_path: Path) -> None:
    assert collect(tmp_path) == Collected()


@pytest.mark.req("PLA-12")
def test_the_digest_of_a_skill_covers_every_file_name_and_link_of_its_folder(tmp_path: Path) -> None:
    home = "skills/tea"
    root = plant(tmp_path, {f"{home}/SKILL.md": skill_text("tea"), f"{home}/node_modules/a.js": "1", "lib/b.py": "1"})
    (root / home / "b.py").symlink_to("../../lib/b.py")
    (root / home / "gone").symlink_to("nowhere")
    seen = [only_skill(collect(root)).digest]
    changes = [
        lambda: plant(root, {f"{home}/node_modules/a.js": "2"}),
        lambda: plant(root, {"lib/b.py": "2"}),
        lambda: plant(root, {f"{home}/new.txt": ""}),
        lambda: (root / home / "new.txt").rename(root / home / "other.txt"),
        lambda: [(root / home / "gone").unlink(), (root / home / "gone").symlink_to("elsewhere")],
        lambda: plant(root, {f"{home}/SKILL.md": skill_text("tea", "Other.")}),
        lambda: (root / "lib/b.py").chmod(0o755),
    ]
    for change in changes:
        change()
        seen.append(only_skill(collect(root)).digest)
    assert len(set(seen)) == len(changes) + 1
    plant(root, {"lib/c.py": "3"})
    assert only_skill(collect(root)).digest == seen[-1]


def test_without_executable_bits_the_digest_is_that_of_plain_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = plant(tmp_path, {"skills/tea/SKILL.md": skill_text("tea"), "skills/tea/scripts/pour.sh": "pour"})
    (root / "skills/tea/scripts/pour.sh").chmod(0o644)
    plain = only_skill(collect(root)).digest
    (root / "skills/tea/scripts/pour.sh").chmod(0o711)
    assert only_skill(collect(root)).digest != plain
    monkeypatch.setattr("clew.skills.formats.safe_open.HAS_PROGRAM_BIT", False)
    assert only_skill(collect(root)).digest == plain


def test_a_skill_that_is_too_large_is_listed_without_a_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = plant(tmp_path, {"skills/tea/SKILL.md": skill_text("tea"), "skills/tea/big.bin": ""})
    os.truncate(root / "skills/tea/big.bin", 200_000_000)
    found = collect(root)
    assert only_skill(found).digest == ""
    assert ["has no digest" in each.message for each in found.problems] == [True]
    assert wishes(found, root) == []
    os.truncate(root / "skills/tea/big.bin", 2)
    assert only_skill(collect(root)).digest != ""
    monkeypatch.setattr(digests, "MAX_FILES", 1)
    assert only_skill(collect(root)).digest == ""


@pytest.mark.req("PLA-12")
def test_only_changed_files_are_read_again(tmp_path: Path) -> None:
    files = {f"skills/s{number}/SKILL.md": skill_text(f"s{number}") for number in range(3)}
    root = plant(tmp_path, {**files, ".claude/commands/brew.md": "Brew."})
    memory = ParseCache()
    first = collect(root, memory=memory)
    while memory.reused < 4:  # files that changed a moment ago may change again within it: they are read again
        memory.reused = 0
        assert collect(root, memory=memory) == first
    memory.reused = 0
    plant(root, {"skills/s1/scripts/a.py": "new"})
    second = collect(root, memory=memory)
    assert memory.reused == 3
    assert second.skills[2].scripts == ("scripts/a.py",)
    (root / "skills/s0/SKILL.md").unlink()
    assert [each.name for each in collect(root, memory=memory).skills] == ["brew", "s1", "s2"]


def test_consent_is_asked_for_each_skill_and_agent_and_ends_with_any_change(tmp_path: Path) -> None:
    root = plant(
        tmp_path / "root",
        {
            "skills/tea/SKILL.md": skill_text("tea", "Makes tea."),
            "skills/tea/scripts/a.py": "1",
            ".claude/agents/a.md": "---\nname: a\ndescription: Tastes.\n---\nYou taste.",
            ".claude/commands/brew.md": "Brew.",
            "AGENTS.md": "Rules.",
        },
    )
    asked = wishes(collect(root), root)
    assert [(each.kind, each.name, each.summary) for each in asked] == [
        ("agent", "a", "Tastes; lists no tools: it gets the tools for files and commands"),
        ("skill", "brew", "Brew."),
        ("skill", "tea", "Makes tea. (1 script)"),
    ]
    trust = Trust.open(tmp_path / "trust.json")
    trust.grant(asked)
    assert all(trust.holds(each) for each in wishes(collect(root), root))
    plant(root, {"skills/tea/scripts/a.py": "2"})
    again = wishes(collect(root), root)
    assert [(each.name, trust.holds(each)) for each in again] == [("a", True), ("brew", True), ("tea", False)]


def test_the_number_of_problems_is_limited(tmp_path: Path) -> None:
    (tmp_path / "skills").mkdir()
    for number in range(1_200):
        (tmp_path / f"skills/{number}").symlink_to("nowhere")
    found = collect(tmp_path)
    assert len(found.problems) == 1_001
    assert found.problems[-1].message == "200 more problems are not listed"


def test_a_name_with_letters_of_two_scripts_is_marked_in_the_request_for_consent(tmp_path: Path) -> None:
    names = ("r\u0435fund", "возврат", "払い戻しpdf", "refund", "\u0440\u0430ypal", "\u0430\u03b2")
    plant(tmp_path, {f".claude/skills/s{at}/SKILL.md": skill_text(name) for at, name in enumerate(names)})
    marked = {each.name: each.summary for each in wishes(collect(tmp_path), tmp_path) if "scripts" in each.summary}
    assert sorted(marked) == ["r\u0435fund", "\u0430\u03b2", "\u0440\u0430ypal"]
    assert "r\\u0435fund" in marked["r\u0435fund"]
    assert "\\u0440\\u0430ypal" in marked["\u0440\u0430ypal"], "also where it begins with the letters that mislead"
    assert "\u0430\\u03b2" in marked["\u0430\u03b2"]


def test_numbering_of_many_duplicates_takes_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0

    def count(start: int) -> Iterator[int]:
        nonlocal steps
        for each in itertools.count(start):
            steps += 1
            yield each

    monkeypatch.setattr(unique_names, "itertools", SimpleNamespace(count=count))
    found = [(Skill(name="a", description="x", path=f"{at}", digest=f"{at}"), "") for at in range(500)]
    named, copies, problems = unique_names.name_all(found, "skill")
    assert {each.name for each in named} == {"a", *(f"a-{at}" for at in range(2, 501))}
    assert (copies, len(problems), steps) == ([], 499, 499)
