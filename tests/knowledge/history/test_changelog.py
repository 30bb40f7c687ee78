"""Changelogs of any name, folder and form."""

from __future__ import annotations

from datetime import date

import pytest

from clew.knowledge.code.file_content import blob_id
from clew.knowledge.code.files import is_changelog
from clew.knowledge.history.changelog import MAX_TEXT, read_changelog


def notes_of(text: str, path: str = "CHANGELOG.md") -> list[tuple[str, str]]:
    return [(note.version, note.text) for note in read_changelog(path, text.encode())]


@pytest.mark.parametrize(
    "path",
    [
        "CHANGELOG.md",
        "CHANGES.rst",
        "HISTORY.md",
        "NEWS",
        "NEWS.txt",
        "RELEASES.md",
        "ReleaseNotes.md",
        "changelogs/CHANGELOG-3.4.md",
        "CHANGELOG/CHANGELOG-1.29.md",
        "docs/releases/4.2.1.md",
        "docs/releases/v5.0.rst",
        "doc/whatsnew/3.12.rst",
        "docs/source/changelog_old.rst",
        "docs/about/changelog.md",
        "packages/core/CHANGELOG.md",
        "docs/release-notes/version-2.0.md",
        "release_notes_1.8.md",
        "debian/changelog",
    ],
)
def test_paths_of_changelogs(path: str) -> None:
    assert is_changelog(path)


@pytest.mark.parametrize(
    "path",
    [
        "src/changes.py",
        "docs/historyless.md",
        "changelog/1.bugfix.rst",
        "docs/releases/upgrade-5.0.md",
        "docs/migration-3.0.md",
        "MIGRATION.md",
        "docs/releases/index.md",
        "RELEASE-CHECKLIST.md",
        "tests/fixtures/CHANGELOG.md",
        "docs/newsletter.md",
    ],
)
def test_paths_of_other_files(path: str) -> None:
    assert not is_changelog(path)


@pytest.mark.req("SYL-98")
@pytest.mark.parametrize(
    ("heading", "version", "day"),
    [
        ("## [1.2.0] - 2024-01-31", "1.2.0", date(2024, 1, 31)),
        ("## 1.2.0", "1.2.0", None),
        ("# v5.0", "5.0", None),
        ("## Version 3.1.5", "3.1.5", None),
        ("## Release 2", "2", None),
        ("## Caddy v2.7.0-beta.2 (May 3, 2023)", "2.7.0-beta.2", date(2023, 5, 3)),
        ("## @scope/core@1.4.0", "1.4.0", None),
        ("## [v1.2.0](https://example.org/v1.2.0) (2024-01-31)", "1.2.0", date(2024, 1, 31)),
        ("## 0.8.4 — The one with the long name of many words", "0.8.4", None),
        ("## Unreleased", "", None),
        ("Version 3.1.5\n-------------", "3.1.5", None),
        ("3.1.5 / 2020-02-01\n==================", "3.1.5", date(2020, 2, 1)),
        ("=====\n3.1.5\n=====", "3.1.5", None),
        ("Version 3.1.5", "3.1.5", None),
        ("**1.2.0** (31 Jan 2024)", "1.2.0", date(2024, 1, 31)),
        ("v1.2.0:", "1.2.0", None),
        ("shop (1.2.0-1) unstable; urgency=low", "1.2.0", None),
        ("2024-01-31  A Writer", "", date(2024, 1, 31)),
        ("What's New In Shop 3.12\n#######################", "3.12", None),
    ],
)
def test_a_version_may_stand_in_any_kind_of_heading(heading: str, version: str, day: date | None) -> None:
    [note] = read_changelog("CHANGES", f"{heading}\n\n- One change\n".encode())
    assert (note.version, note.day, note.text) == (version, day, "One change")


@pytest.mark.parametrize(
    "line", ["Released 2024-11-13", "*November 13, 2024*", ":Date: 2024-11-13\nReleased on Nov 13th 2024, codename X"]
)
def test_the_day_may_stand_below_the_version(line: str) -> None:
    [note] = read_changelog("CHANGES.rst", f"Version 3.1.0\n-------------\n\n{line}\n\n-   One\n".encode())
    assert (note.version, note.day) == ("3.1.0", date(2024, 11, 13))


def test_unreleased_below_a_version_is_no_version_of_its_own() -> None:
    assert notes_of("Version 3.2.0\n-------------\n\nUnreleased\n\n-   One\n") == [("3.2.0", "One")]


@pytest.mark.req("SYL-98")
def test_paragraphs_and_items_are_changes_with_their_lines() -> None:
    text = """# Shop 4.2 release notes

*April 3, 2023*

Welcome to Shop 4.2! These notes cover
what is new.

## Minor features

Orders may now be split. See
[the guide](x.md).

- A point
  that goes on

  and on.

  - a point below it
- Another

```text
- code is no change
```

Last words.
"""
    notes = read_changelog("docs/releases/4.2.md", text.encode())
    assert [(note.line, note.end_line) for note in notes] == [(5, 6), (10, 11), (13, 16), (18, 18), (19, 19), (25, 25)]
    assert notes[2].text == "A point that goes on and on."
    assert {(note.version, note.day) for note in notes} == {("4.2", date(2023, 4, 3))}
    assert {note.hash for note in notes} == {blob_id(text.encode())}


def test_the_name_of_a_file_gives_the_version_where_no_heading_does() -> None:
    assert notes_of("# Release notes\n\n- One\n", "docs/releases/v2.1.0.md") == [("2.1.0", "One")]


@pytest.mark.parametrize(
    "heading", ["### Python 3.7 dropped", "### Support for Python 3.12", "#### Django 4.2 and 5.0", "## Added"]
)
def test_a_version_in_a_heading_below_a_release_is_no_release(heading: str) -> None:
    assert notes_of(f"## 1.2.0\n\n{heading}\n\n- One\n\n## 1.1.0\n\n- Two\n") == [("1.2.0", "One"), ("1.1.0", "Two")]


def test_a_release_below_a_heading_of_its_series() -> None:
    text = "# Changelog of the 3.x series\n\n## 3.4.1\n\n- One\n\n## 3.4.0 (2020-01-01)\n\n- Two\n"
    assert notes_of(text) == [("3.4.1", "One"), ("3.4.0", "Two")]


def test_a_short_line_before_a_list_is_a_section() -> None:
    [note] = read_changelog("CHANGELOG.md", b"# 1.0\n\nBug fixes:\n\n* The door opens\n")
    assert (note.kind, note.text) == ("fixed", "The door opens")


@pytest.mark.parametrize(
    "markup",
    [
        ".. _changes-1.0:\n\n",
        "<!-- towncrier release notes start -->\n\n",
        "[1.0]: https://example.org/1.0\n\n",
        "---\ntitle: 9.9.9\n---\n\n",
    ],
)
def test_markup_is_no_change(markup: str) -> None:
    assert notes_of(f"{markup}# 1.0\n\n- One\n\n") == [("1.0", "One")]


def test_code_whose_end_is_missing_ends_with_the_next_release() -> None:
    text = "## 1.1.0\n\n- One\n\n```sh\n# not a release\n- code\n\n## 1.0.0\n\n- Two\n- ```three```\n- Four\n"
    assert [text for _, text in notes_of(text)] == ["One", "Two", "```three```", "Four"]


def test_text_without_a_version_is_no_change() -> None:
    assert notes_of("# Changelog\n\nAll notable changes are listed here.\n\n- A list\n") == []


@pytest.mark.parametrize(
    "line",
    [
        "- x\n",
        "x\n\n",
        "  x\n",
        "=====\n",
        "# 1.0\n",
        "- 1.0\n  - x\n",
        "1.0\n---\n",
        "- fix:\n",
        "2020-01-01\n",
        "\t* *\n",
    ],
)
def test_a_changelog_of_forty_thousand_lines_is_read(line: str) -> None:
    found = read_changelog("CHANGES", ("# 1.0\n\n" + line * 40_000).encode())
    assert all(1 <= each.line <= each.end_line <= 80_002 and len(each.text) <= MAX_TEXT for each in found)
