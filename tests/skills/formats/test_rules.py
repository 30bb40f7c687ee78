"""The imports of a CLAUDE.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.skills.formats.collection import collect
from clew.skills.formats.rules import read_imports
from clew.skills.formats.source import first_paragraph
from clew.skills.manifest import SkillLink

from .trees import plant

TEXT = """See @../README.md, and @./notes/tea.md.

Not `@../README.md`, not me@example.org, not @scope/package, not @missing.md.
```
@../LICENSE.md
```
Again @../README.md (and @../LICENSE.md).
"""


def test_imports_are_references_relative_to_the_root_each_once(tmp_path: Path) -> None:
    root = plant(tmp_path, {"src/CLAUDE.md": TEXT, "README.md": "r", "LICENSE.md": "l", "src/notes/tea.md": "t"})
    found = collect(root)
    (rule,) = found.rules
    assert rule.references == (
        SkillLink(text="../README.md", path="README.md", line=1),
        SkillLink(text="./notes/tea.md", path="src/notes/tea.md", line=1),
        SkillLink(text="../LICENSE.md", path="LICENSE.md", line=7),
    )
    assert found.problems == ()


def test_imports_from_outside_are_not_read_and_reported(tmp_path: Path) -> None:
    plant(tmp_path, {"secret.md": "s"})
    text = "@../secret.md\n@/etc/passwd\n@~/.ssh/id\n@./a/../../secret.md\n"
    found = collect(plant(tmp_path / "root", {"CLAUDE.md": text}))
    assert [each.references for each in found.rules] == [()]
    assert [(each.severity, each.line) for each in found.problems] == [("warning", line) for line in (1, 2, 3, 4)]


def test_an_import_of_a_link_out_of_the_root_is_none(tmp_path: Path) -> None:
    plant(tmp_path, {"secret.md": "s"})
    root = plant(tmp_path / "root", {"CLAUDE.md": "@inner.md\n"})
    (root / "inner.md").symlink_to(tmp_path / "secret.md")
    assert [each.references for each in collect(root).rules] == [()]


def test_an_agents_file_imports_nothing(tmp_path: Path) -> None:
    found = collect(plant(tmp_path, {"AGENTS.md": "@README.md", "README.md": "r"}))
    assert [each.references for each in found.rules] == [()]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("`@a.md` @b.md", ["b.md"]),
        ("``@a.md ` @c.md`` @b.md", ["b.md"]),
        ("` @b.md", ["b.md"]),
        ("a" + "`" * 200_000 + " @b.md", ["b.md"]),
        ("` `` " * 20_000 + "@b.md", ["b.md"]),
    ],
)
def test_code_holds_no_imports_and_backticks_cost_no_more_than_other_letters(line: str, found: list[str]) -> None:
    references, _ = read_imports(line, "CLAUDE.md", lambda path: path)
    assert [each.path for each in references] == found


@pytest.mark.parametrize(
    ("body", "begins"),
    [
        ("<!-- not\nthis -->The first.\n\nThe second.", "The first."),
        ("<!-- a --><!-- b -->\n\nText.", "Text."),
        ("<!--" * 200_000, "<!--"),
    ],
)
def test_a_description_is_taken_from_behind_comments_however_many_begin(body: str, begins: str) -> None:
    assert first_paragraph(body).startswith(begins)
