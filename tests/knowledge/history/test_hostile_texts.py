"""Texts that attack a parser: with a backtracking pattern, each of them takes minutes."""

from __future__ import annotations

import pytest

from clew.knowledge.git.log import MAX_BODY, parse_log
from clew.knowledge.history.changelog import TextHeading, read_changelog, read_heading
from clew.knowledge.history.decisions import read_adr

MANY = 300_000


def commit(subject: bytes = b"s", body: bytes = b"b", author: bytes = b"Ann") -> bytes:
    return b"\0".join([b"\x01" + b"a" * 40, b"", b"0", author, subject, body])


@pytest.mark.parametrize("body", [b"a" + b" " * MANY + b"b", b"<" * MANY, b"a@" * MANY, b"a.b-" * MANY, b" <@" * MANY])
def test_a_commit_of_any_length_is_read(body: bytes) -> None:
    [found] = parse_log(commit(body, body, body).split(b"\0"))
    assert (len(found.subject), len(found.body)) <= (500, MAX_BODY)


def test_addresses_are_left_out_with_the_blank_before_them() -> None:
    text = b"Ann  <ann@example.org> and bo@example.org, <https://example.org>"
    [found] = parse_log(commit(body=text, author=b"Ann <ann@example.org>").split(b"\0"))
    assert (found.author, found.body) == ("Ann", "Ann and , <https://example.org>")


@pytest.mark.parametrize(
    "heading",
    [b"# a" + b" " * MANY + b"b", b"# 1." + b"1" * MANY + b"_1", b"# 1" + b".1" * MANY + b"_1", b"# " + b"#" * MANY],
)
def test_headings_of_a_changelog_have_any_length(heading: bytes) -> None:
    notes = read_changelog("CHANGELOG.md", b"# 1.0\n" + heading + b"\n- fixed a\n")
    assert [note.text for note in notes] == ["fixed a"]


def test_a_long_heading_is_not_read_again_for_each_change() -> None:
    notes = read_changelog("CHANGELOG.md", b"# 1.0\n## " + b"x " * MANY + b"\n" + b"- a\n" * 5_000)
    assert len(notes) == 5_000


def test_headings_of_a_decision_have_any_length() -> None:
    text = b"# Title\n## a" + b" " * MANY + b"b\n## Decision\nWe do.\n"
    found = read_adr("docs/adr/0001-x.md", text)
    assert found is not None
    assert (found.title, found.decision) == ("Title", "We do.")


@pytest.mark.parametrize(
    ("line", "heading"),
    [
        ("# Title", TextHeading(1, "Title")),
        ("##  Two words ## ", TextHeading(2, "Two words")),
        ("# #", TextHeading(1, "#")),
        ("####### seven", None),
        ("#tag", None),
        ("#   ", None),
    ],
)
def test_a_heading_is_read_without_its_marks(line: str, heading: TextHeading | None) -> None:
    assert read_heading(line) == heading
