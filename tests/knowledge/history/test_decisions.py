"""Decisions from records, changelogs and commits."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from clew.knowledge.code.file_content import blob_id
from clew.knowledge.code.files import is_changelog
from clew.knowledge.history.changelog import ChangeNote, find_date, read_changelog
from clew.knowledge.history.decisions import (
    Decisions,
    find_superseded,
    is_adr,
    read_adr,
)
from tests.knowledge.project.samples import project

NYGARD = b"""# 2. Use one queue

Date: 2024-03-05

## Status

Accepted

Supersedes [1. Use two queues](0001-use-two-queues.md)

## Context

Two queues got out of step in `src/queue/worker.py`.

## Decision

We will use one queue.

## Consequences

Order is kept.
"""
OLD = b"""# 1. Use two queues

Date: 2023-01-01

## Status

Superseded by [2. Use one queue](0002-use-one-queue.md)

## Context

One was slow.

## Decision

Two queues.
"""
MADR = b"""---
status: "proposed"
date: 2025-10-01
---

# Store dates in UTC

## Context and Problem Statement

Dates shift.

```text
## Decision
not a heading
```

## Decision Outcome

Chosen option: UTC.

### Consequences

* Good, since they stay put.
"""
SHORT = b"""# 0007 What a write waits for

**Context.** A write may return early.

**Choice.**

- *It waits for the disk.*

**Cost.** A millisecond.
"""


def test_a_record_in_nygards_form() -> None:
    found = read_adr("docs/adr/0002-use-one-queue.md", NYGARD)
    assert found is not None
    assert (found.title, found.number, found.status, found.day) == (
        "Use one queue",
        "2",
        "accepted",
        date(2024, 3, 5),
    )
    assert found.decision == "We will use one queue."
    assert found.consequences == "Order is kept."
    assert found.supersedes == ("1. Use two queues 0001-use-two-queues.md",)
    assert (found.cited, found.hash) == ("docs/adr/0002-use-one-queue.md:1", blob_id(NYGARD))


def test_a_record_in_the_form_of_madr() -> None:
    found = read_adr("docs/decisions/utc.md", MADR)
    assert found is not None
    assert (found.title, found.status, found.day, found.line) == (
        "Store dates in UTC",
        "proposed",
        date(2025, 10, 1),
        6,
    )
    assert found.decision == "Chosen option: UTC."
    assert "not a heading" in found.context
    assert found.consequences.startswith("* Good")


def test_a_record_with_run_in_headings() -> None:
    found = read_adr("docs/decisions/0007-what-a-write-waits-for.md", SHORT)
    assert found is not None
    assert (found.title, found.number) == ("What a write waits for", "7")
    assert found.context == "A write may return early."
    assert "It waits for the disk" in found.decision
    assert found.consequences == "A millisecond."


def test_all_records_of_this_repository_can_be_read() -> None:
    root = Path(__file__).parents[3]
    records = sorted((root / "docs" / "decisions").glob("0*.md"))
    assert len(records) > 10
    for path in records:
        found = read_adr(f"docs/decisions/{path.name}", path.read_bytes())
        assert found is not None, path.name
        assert found.context
        assert found.decision
        assert path.read_text(encoding="utf-8").splitlines()[found.line - 1].endswith(found.title)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"# Only a title\n", b"no title\n", b"x" * 600_000])
def test_other_markdown_files_are_no_decision_records(content: bytes) -> None:
    assert read_adr("docs/adr/0001-x.md", content) is None


def test_which_files_are_looked_at() -> None:
    assert all(
        map(is_adr, ("docs/adr/0001-x.md", "doc/decisions/x.md", "adr/1.md", "docs/architecture-decisions/x.md"))
    )
    assert not any(map(is_adr, ("docs/adr/README.md", "docs/adr/template.md", "docs/x.md", "src/adr/x.py")))
    assert all(map(is_changelog, ("CHANGELOG.md", "CHANGES.rst", "HISTORY.md", "axum/CHANGELOG.md", "NEWS")))
    assert not any(map(is_changelog, ("src/changes.py", "docs/historyless.md", "changelog/1.bugfix.rst")))


def told(notes: list[ChangeNote]) -> list[tuple[str, str, str]]:
    return [(note.version, note.kind, note.text) for note in notes]


def test_keep_a_changelog() -> None:
    text = b"""# Changelog

## [Unreleased]
### Added
- A thing

## [1.2.0] - 2024-02-03
### Deprecated
- The old
  door
### Security
* A hole

[1.2.0]: https://example.org/1.2.0
"""
    notes = read_changelog("CHANGELOG.md", text)
    assert told(notes) == [
        ("", "added", "A thing"),
        ("1.2.0", "deprecated", "The old door"),
        ("1.2.0", "security", "A hole"),
    ]
    assert [(note.day, note.line) for note in notes] == [
        (None, 5),
        (date(2024, 2, 3), 9),
        (date(2024, 2, 3), 12),
    ]


def test_plain_changelogs() -> None:
    rst = (
        b"Version 3.1.0\n-------------\n\nReleased 2024-11-13\n\n-   Drop support for the old one.\n-   Say it well.\n"
    )
    assert told(read_changelog("CHANGES.rst", rst)) == [
        ("3.1.0", "removed", "Drop support for the old one."),
        ("3.1.0", "other", "Say it well."),
    ]
    assert read_changelog("CHANGES.rst", rst)[0].day == date(2024, 11, 13)
    dated = b"# 0.8.4 (30. April, 2025)\n\n- **breaking:** Add another parameter\n"
    [note] = read_changelog("CHANGELOG.md", dated)
    assert (note.version, note.kind, note.day) == ("0.8.4", "breaking", date(2025, 4, 30))
    assert read_changelog("CHANGES", b"just a text\n- with a list\n") == []


@pytest.mark.req("SYL-98")
def test_a_changelog_that_is_one_list_has_its_versions_as_points() -> None:
    text = b"* 3.5.3 (June 1, 2020)\n    * Restore the door.\n      It was gone.\n* 3.5.2\n    * Tune the lock.\n"
    notes = read_changelog("CHANGES", text)
    assert told(notes) == [("3.5.3", "other", "Restore the door. It was gone."), ("3.5.2", "other", "Tune the lock.")]
    assert [note.day for note in notes] == [date(2020, 6, 1), None]


def test_a_version_among_the_changes_is_no_release() -> None:
    text = b"# 2.0.0\n\n- 1.5.0 was withdrawn\n- 3.8 is needed from June 1, 2020 on\n- 1.4.0\n- 1.3.0\n"
    assert [note.version for note in read_changelog("CHANGES.md", text)] == ["2.0.0"] * 4


@pytest.mark.req("SYL-98")
def test_points_below_a_kind_of_change_are_of_that_kind() -> None:
    text = b"""5.0.0 / 2024-09-10
==================

  * remove:
    - `app.del` - use `app.delete`
  * add:
    - `app.router`
"""
    assert told(read_changelog("History.md", text)) == [
        ("5.0.0", "removed", "`app.del` - use `app.delete`"),
        ("5.0.0", "added", "`app.router`"),
    ]


@pytest.mark.parametrize("said", ["6th December, 2024", "6. December 2024", "6 Dec 2024", "the 6th of December, 2024"])
def test_a_day_may_be_said_before_its_month(said: str) -> None:
    assert find_date(f"0.28.1 ({said})") == date(2024, 12, 6)


# -- records as nodes ----------------------------------------------------------------------------------------------

FIRST, SECOND = "docs/adr/0001-use-two-queues.md", "docs/adr/0002-use-one-queue.md"


async def test_records_are_nodes_with_their_place_their_files_and_what_replaced_them(tmp_path: Path) -> None:
    files = {FIRST: OLD.decode(), SECOND: NYGARD.decode(), "src/queue/worker.py": "def run():\n    pass\n"}
    async with project(tmp_path, files) as code:
        decisions = Decisions(code)
        new, old = await decisions.nodes()
        assert (new.path, new.line_start, new.content_hash, new.name) == (SECOND, 1, blob_id(NYGARD), "Use one queue")
        assert (new.superseded_by, old.superseded_by) == (None, new.id)
        assert [each.node.path for each in await decisions.search("why one queue", 10)] == [SECOND, FIRST]
        assert await decisions.search("elephants", 10) == []
        assert [each.path for each in await decisions.about("src/queue/worker.py")] == [SECOND]
        assert [each.path for each in await decisions.files_named_in(new)] == ["src/queue/worker.py"]


async def test_an_edited_record_is_read_anew_and_a_deleted_one_is_gone(tmp_path: Path) -> None:
    async with project(tmp_path, {FIRST: OLD.decode(), SECOND: NYGARD.decode()}) as code:
        decisions = Decisions(code)
        first = await decisions.records()
        root = Path(code.tree.root)
        (root / SECOND).write_bytes(NYGARD.replace(b"one queue.", b"one queue, in memory."))
        (root / FIRST).unlink()
        [edited] = await decisions.nodes()
    assert len(first) == 2
    assert "in memory" in edited.content
    assert edited.content_hash != blob_id(NYGARD)


def test_records_that_replace_each_other_do_no_harm() -> None:
    loop = OLD.replace(b"Superseded by [2. Use one queue](0002-use-one-queue.md)", b"Supersedes 2")
    records = [read_adr(FIRST, loop), read_adr(SECOND, NYGARD)]
    assert len(find_superseded([each for each in records if each is not None])) == 1


def test_bold_words_below_a_heading_belong_to_its_text() -> None:
    text = b"# One file\n\n## Decision\n\n**One model.** The structs are the only definition.\n\n**Cost.** None.\n"
    record = read_adr("docs/decisions/0001-one-file.md", text)
    assert record is not None
    assert record.decision == "**One model.** The structs are the only definition."
    assert record.consequences == "None."
