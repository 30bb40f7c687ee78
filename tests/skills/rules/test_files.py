"""The rules of a path: those on the way to the file, outermost first, for any tree and path."""

from __future__ import annotations

import os
import posixpath
import tempfile
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.skills.files.tree_walk import MAX_DEPTH
from clew.skills.rules import files as rule_files
from clew.skills.rules.files import FoundRules, RuleFiles
from tests.skills.formats.trees import plant


def on_way(root: Path, path: str, cwd: str = "") -> list[str]:
    return [each.path for each in RuleFiles(str(root), cwd).on_way(path).rules]


def always(root: Path) -> list[str]:
    return [each.path for each in RuleFiles(str(root)).of_root().rules]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    texts = {name: f"rules of {name}" for name in ("AGENTS.md", "a/AGENTS.md", "a/b/AGENTS.md", "other/AGENTS.md")}
    return plant(root, {**texts, "a/b/c.py": "", "empty/deep/d.py": ""})


@pytest.mark.req("PLA-17")
def test_the_rules_on_the_way_come_the_outermost_first_and_without_the_root(tree: Path) -> None:
    assert on_way(tree, "a/b/c.py") == ["a/AGENTS.md", "a/b/AGENTS.md"]
    assert on_way(tree, str(tree / "a/b/c.py")) == ["a/AGENTS.md", "a/b/AGENTS.md"]
    assert on_way(tree, "a/b/not/there/yet.py") == ["a/AGENTS.md", "a/b/AGENTS.md"]
    assert on_way(tree, "empty/deep/d.py") == []
    found = RuleFiles(str(tree)).on_way("a/x").rules[0]
    assert (found.text, found.folder, found.real) == ("rules of a/AGENTS.md", "a", "a/AGENTS.md")


@pytest.mark.req("PLA-17")
@pytest.mark.parametrize(
    "path",
    ["x.py", "/etc/passwd", "..", "../x.py", "a/../../x.py", ".", "", "/", "~/x", "\x00", "a\x00/b", "x" * 5_000],
)
def test_a_path_of_the_root_or_outside_of_it_has_none_and_ends(tree: Path, path: str) -> None:
    assert on_way(tree, path) == []


@pytest.mark.req("PLA-17")
def test_relative_paths_begin_where_the_agent_is(tree: Path) -> None:
    assert on_way(tree, "c.py", cwd="a/b") == ["a/AGENTS.md", "a/b/AGENTS.md"]
    assert on_way(tree, "../../other/x", cwd=str(tree / "a/b")) == ["other/AGENTS.md"]
    assert on_way(tree, "a/b/c.py", cwd="/") == []


def test_a_folder_has_its_own_rules_and_a_file_those_beside_it(tree: Path) -> None:
    assert on_way(tree, "a/b") == on_way(tree, "a/b/") == ["a/AGENTS.md", "a/b/AGENTS.md"]
    assert on_way(tree, "a/new") == ["a/AGENTS.md"]
    assert on_way(tree, "a/AGENTS.md") == ["a/AGENTS.md"]


def test_a_path_over_links_has_the_rules_of_where_it_really_is(tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    plant(outside, {"AGENTS.md": "rules of a stranger"})
    (tree / "link").symlink_to("a/b")
    (tree / "a" / "out").symlink_to(outside)
    (tree / "a" / "loop").symlink_to("loop")
    (tree / "a" / "up").symlink_to("..")
    (tmp_path / "second").symlink_to(tree)
    assert on_way(tree, "link/c.py") == ["a/AGENTS.md", "a/b/AGENTS.md"]
    assert on_way(tree, "link/../c.py") == ["a/AGENTS.md"]
    assert on_way(tree, "a/out/x.py") == []
    assert on_way(tree, "a/up/up/a/up/other/x") == []
    assert on_way(tree, "a/up/other/x") == ["other/AGENTS.md"]
    assert on_way(tree, "a/loop/x.py") == ["a/AGENTS.md"]
    assert on_way(tmp_path / "second", str(tree / "a/x")) == ["a/AGENTS.md"]


def test_rules_that_are_links_out_of_the_root_or_no_files_are_reported_and_not_read(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("a secret")
    (tree / "other" / "AGENTS.md").unlink()
    (tree / "other" / "AGENTS.md").symlink_to(tmp_path / "secret.md")
    (tree / "other" / "CLAUDE.md").symlink_to("CLAUDE.md")
    os.mkfifo(tree / "other" / "GEMINI.md")
    found = RuleFiles(str(tree)).on_way("other/x.py")
    assert found.rules == ()
    assert [(each.path, each.message) for each in found.problems] == [
        ("other/AGENTS.md", "the link leads out of the root: Clew does not follow it"),
        ("other/CLAUDE.md", "the link is circular, or became a link while Clew read it: Clew does not follow it"),
        ("other/GEMINI.md", "is not a regular file"),
    ]
    everywhere = RuleFiles(str(tree)).everywhere()
    assert [each.path for each in everywhere.rules] == ["AGENTS.md", "a/AGENTS.md", "a/b/AGENTS.md"]
    assert {each.path for each in everywhere.problems} >= {"other/AGENTS.md", "other/CLAUDE.md"}


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"a\x00b", b"x" * 1_048_577])
def test_a_file_that_is_no_text_or_huge_is_reported_and_hinders_nothing(tree: Path, content: bytes) -> None:
    (tree / "a" / "AGENTS.md").write_bytes(content)
    found = RuleFiles(str(tree)).on_way("a/b/c.py")
    assert [each.path for each in found.rules] == ["a/b/AGENTS.md"]
    assert [each.path for each in found.problems] == ["a/AGENTS.md"]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unreadable for root")
def test_a_file_that_may_not_be_read_is_reported(tree: Path) -> None:
    (tree / "a" / "AGENTS.md").chmod(0)
    assert RuleFiles(str(tree)).on_way("a/x").problems[0].message == "cannot be read: permission denied"


def test_a_link_an_import_and_a_copy_count_once(tmp_path: Path) -> None:
    plant(
        tmp_path,
        {"AGENTS.md": "the rules", "b/CLAUDE.md": "@AGENTS.md\n", "b/AGENTS.md": "of b", "b/c/AGENTS.md": "the rules"},
    )
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    (tmp_path / "GEMINI.md").write_text("@AGENTS.md\n@./AGENTS.md")
    assert always(tmp_path) == ["AGENTS.md"]
    assert on_way(tmp_path, "b/c/d.py") == ["b/AGENTS.md"]
    repeats = {each.path: each.target for each in RuleFiles(str(tmp_path)).on_way("b/c/d.py").repeats}
    assert repeats == {"CLAUDE.md": "AGENTS.md", "b/c/AGENTS.md": "AGENTS.md"}


def test_other_rule_files_of_a_repository_are_used(tmp_path: Path) -> None:
    plant(
        tmp_path, {"CLAUDE.md": "be brief", "g/GEMINI.md": "be kind", "both/AGENTS.md": "one", "both/CLAUDE.md": "two"}
    )
    assert always(tmp_path) == ["CLAUDE.md"]
    assert on_way(tmp_path, "g/x") == ["g/GEMINI.md"]
    assert on_way(tmp_path, "both/x") == ["both/AGENTS.md", "both/CLAUDE.md"]
    plant(tmp_path, {"both/AGENTS.override.md": "instead"})
    assert on_way(tmp_path, "both/x") == ["both/AGENTS.override.md", "both/CLAUDE.md"]
    assert always(plant(tmp_path / "g" / "sub", {"agents.md": "no", "Agents.md": "no"})) == []


def test_imports_come_behind_the_file_that_asks_for_them_each_once_and_no_further_than_five(tmp_path: Path) -> None:
    chain = {f"i{number}.md": f"text {number} @i{number + 1}.md" for number in range(1, 9)}
    plant(tmp_path, {"CLAUDE.md": "see @i1.md and @i1.md, @../x.md, @.env, @me/CLAUDE.md", ".env": "SECRET=1", **chain})
    plant(tmp_path, {"me/CLAUDE.md": "again @../CLAUDE.md", "x.md": ""})
    found = RuleFiles(str(tmp_path)).of_root()
    assert [(each.path, each.imported_by) for each in found.rules] == [
        ("CLAUDE.md", ""),
        ("i1.md", "CLAUDE.md"),
        ("i2.md", "i1.md"),
        ("i3.md", "i2.md"),
        ("i4.md", "i3.md"),
        ("i5.md", "i4.md"),
        ("me/CLAUDE.md", "CLAUDE.md"),
    ]
    assert ["@../x.md leads out" in each.message for each in found.problems] == [True]
    claude = {f"c{number}/CLAUDE.md": f"text {number} @../c{number + 1}/CLAUDE.md" for number in range(9)}
    plant(tmp_path / "chain", {**claude, "CLAUDE.md": "begin @c0/CLAUDE.md"})
    assert len(always(tmp_path / "chain")) == 1 + rule_files.MAX_HOPS


def test_names_that_only_look_alike_are_other_folders(tmp_path: Path) -> None:
    one, two = (unicodedata.normalize(form, "café") for form in ("NFC", "NFD"))
    plant(tmp_path, {f"{one}/AGENTS.md": "composed", f"{two}/AGENTS.md": "decomposed", "Src/AGENTS.md": "upper"})
    assert on_way(tmp_path, f"{one}/x") == [f"{one}/AGENTS.md"]
    assert on_way(tmp_path, f"{two}/x") == [f"{two}/AGENTS.md"]
    assert on_way(tmp_path, "src/x") == []


def test_a_folder_whose_name_cannot_be_shown_is_reported(tmp_path: Path) -> None:
    for name in (b"bad\xff", b"line\nbreak", "turned\u202e".encode()):
        folder = os.fsencode(tmp_path) + b"/" + name
        os.mkdir(folder)
        Path(os.fsdecode(folder + b"/AGENTS.md")).write_text("rules")
        found = RuleFiles(str(tmp_path)).on_way(os.fsdecode(name) + "/x")
        assert found.rules == ()
        assert "control characters" in found.problems[0].message
        found.problems[0].path.encode()
    assert RuleFiles(str(tmp_path)).everywhere().rules == ()


def test_a_very_deep_path_is_bounded_and_reported(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(MAX_DEPTH + 5):
        deep = deep / "d"
        plant(deep, {"AGENTS.md": f"{deep}"})
    found = RuleFiles(str(tmp_path)).on_way(str(deep / "x"))
    assert len(found.rules) == MAX_DEPTH
    assert "folders deep" in found.problems[-1].message
    assert on_way(tmp_path, "d/" * 1_900 + "x") == [each.path for each in found.rules]


def test_many_rule_files_are_read_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path, {f"f{number}/AGENTS.md": f"rules {number}" for number in range(1_000)})
    found = RuleFiles(str(tmp_path)).everywhere()
    assert (len(found.rules), found.problems) == (1_000, ())
    monkeypatch.setattr(rule_files, "MAX_RULES", 100)
    bounded = RuleFiles(str(tmp_path)).everywhere()
    assert len(bounded.rules) == 100
    assert [each.message for each in bounded.problems] == ["and 899 more are ignored"]
    assert on_way(tmp_path, "f999/x") == ["f999/AGENTS.md"]


def test_all_files_of_a_tree_are_listed_copies_too_and_each_real_file_once(tree: Path) -> None:
    plant(tree, {"copy/AGENTS.md": "rules of a/AGENTS.md", "node_modules/x/AGENTS.md": "of a package"})
    (tree / "a" / "CLAUDE.md").symlink_to("../other/AGENTS.md")
    found = RuleFiles(str(tree)).everywhere()
    assert [each.path for each in found.rules] == [
        *("AGENTS.md", "a/AGENTS.md", "a/b/AGENTS.md", "copy/AGENTS.md", "other/AGENTS.md")
    ]
    assert [(each.path, each.target) for each in found.repeats] == [("a/CLAUDE.md", "other/AGENTS.md")]
    assert on_way(tree, "a/x") == ["a/AGENTS.md", "a/CLAUDE.md"]
    missing = RuleFiles(str(tree / "missing"))
    assert (missing.of_root(), missing.on_way("x/y")) == (FoundRules(), FoundRules())
    assert [each.message for each in missing.everywhere().problems] == ["the folder does not exist"]


def test_every_rule_that_applies_can_be_agreed_to(tree: Path) -> None:
    files = RuleFiles(str(tree))
    wishes = {(each.name, each.digest): each for each in files.wishes()}
    for rule in (*files.of_root().rules, *files.on_way("a/b/c.py").rules, *files.on_way("other/").rules):
        wish = rule.wish(files.root.path)
        assert wishes[rule.real, rule.digest] == wish
        assert (wish.kind, wish.folder) == ("rules", os.path.realpath(tree))
    assert files.wishes()[0].summary == "tells agents what to do (1 line): rules of AGENTS.md"


NAMES = st.sampled_from(["a", "b", "ü", "src", "x y"])
FOLDERS = st.lists(NAMES, max_size=5).map("/".join)


@pytest.mark.req("PLA-17")
@given(
    with_rules=st.sets(FOLDERS, max_size=12),
    target=FOLDERS,
    name=st.sampled_from(["", "f.py", "new.py"]),
    detour=st.sampled_from(["", "./", "a/../", "a/b/../../", "//"]),
)
def test_in_any_tree_exactly_the_files_on_the_way_hold_in_order(
    with_rules: set[str], target: str, name: str, detour: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        plant(root, {posixpath.join(each, "AGENTS.md"): f"rules of {each}" for each in with_rules})
        (root / "a" / "b").mkdir(parents=True, exist_ok=True)
        (root / target).mkdir(parents=True, exist_ok=True)
        path = posixpath.join(target, name)
        asked = f"{detour}{path}" if detour != "//" else f"{root}//{path}"
        parts = target.split("/") if target else []
        above = ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
        expected = [f"{each}/AGENTS.md" for each in above if each in with_rules]
        assert on_way(root, asked) == expected
        assert always(root) == (["AGENTS.md"] if "" in with_rules else [])
        listed = [each.path for each in RuleFiles(folder).everywhere().rules]
        assert listed == sorted(posixpath.join(each, "AGENTS.md") for each in with_rules)


def test_a_chain_of_imports_is_followed_however_else_its_files_are_reached(tmp_path: Path) -> None:
    plant(tmp_path, {"sub/CLAUDE.md": "one @c1.md", "sub/c1.md": "two @c2.md", "sub/c2.md": "three @../a/AGENTS.md"})
    plant(tmp_path, {"a/AGENTS.md": "four @x.md", "a/x.md": "five"})
    held = ["sub/CLAUDE.md", "sub/c1.md", "sub/c2.md", "a/AGENTS.md", "a/x.md"]
    assert on_way(tmp_path, "sub/x.py") == held
    assert {each.name for each in RuleFiles(str(tmp_path)).wishes()} == set(held)


def test_consent_to_a_rule_covers_the_documents_that_it_links_to(tmp_path: Path) -> None:
    plant(tmp_path, {"AGENTS.md": "See [a](docs/a.md), [b](docs/gone.md), [c](run.py).", "docs/a.md": "one"})
    plant(tmp_path, {"run.py": "pass"})
    files = RuleFiles(str(tmp_path))
    (before,) = files.wishes()
    plant(tmp_path, {"run.py": "other"})
    assert files.wishes() == [before]
    assert "links to 1 document)" in before.summary
    plant(tmp_path, {"docs/a.md": "two"})
    (changed,) = files.wishes()
    plant(tmp_path, {"docs/gone.md": "new"})
    (added,) = files.wishes()
    assert len({before.digest, changed.digest, added.digest}) == 3
