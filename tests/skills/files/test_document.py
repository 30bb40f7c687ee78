"""Markdown files with front matter, taken apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.skills.files.document import MAX_BYTES, read_document
from clew.skills.files.front_matter import FieldPlace


def test_a_file_gives_values_lines_and_body() -> None:
    found = read_document(b"---\nname: a\ntools:\n  - x\n  - y\n---\nBody\n", "a.md")
    assert found.meta == {"name": "a", "tools": ["x", "y"]}
    assert (found.line_of("name"), found.line_of("tools"), found.line_of("tools[1]")) == (2, 3, 5)
    assert (found.body, found.body_line, found.has_meta, found.problems) == ("Body\n", 7, True, ())
    assert found.values["tools[1]"] == FieldPlace(5, 5, 5, 6)


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_line_ends_and_a_byte_order_mark_change_nothing(end: str) -> None:
    text = end.join(["---", "name: a", "---", "one", "two"])
    found = read_document(b"\xef\xbb\xbf" + text.encode(), "a.md")
    assert (found.meta, found.body, found.body_line) == ({"name": "a"}, "one\ntwo", 4)


def test_places_are_right_behind_characters_that_yaml_takes_for_line_ends() -> None:
    found = read_document("---\na: 'x\u2028y'\nname: ü\n---\n".encode(), "a.md")
    assert found.line_of("name") == 3
    assert found.values["name"] == FieldPlace(3, 7, 3, 8)


def test_a_file_without_front_matter_is_all_body() -> None:
    found = read_document(b"# Title\n", "a.md")
    assert (found.body, found.has_meta, found.problems) == ("# Title\n", False, ())


def test_bad_yaml_is_read_line_by_line_and_can_be_mended() -> None:
    found = read_document(b"---\nname: a\ndescription: Use: this\n  and that\n---\n", "a.md")
    assert found.meta == {"name": "a", "description": "Use: this and that"}
    assert found.problems[0].line == 3
    found = read_document(b"---\nname: a\ndescription: Use: this\n---\n", "a.md")
    assert found.problems[0].fix is not None
    assert found.problems[0].fix.text == ('description: "Use: this"',)


def test_unclosed_front_matter_is_reported_with_a_fix() -> None:
    (problem,) = read_document(b"---\nname: a\n\nBody\n", "a.md").problems
    assert (problem.kind, problem.line) == ("parse", 1)
    assert problem.fix is not None
    assert (problem.fix.first, problem.fix.last, problem.fix.text) == (3, 2, ("---",))


def test_a_key_that_is_given_twice_is_reported_with_both_lines() -> None:
    (problem,) = read_document(b"---\na: 1\nb:\n  c: 1\n  c: 2\n---\n", "a.md").problems
    assert (problem.line, problem.column) == (5, 3)
    assert "line 4" in problem.message


@pytest.mark.parametrize(
    ("front", "reason"),
    [
        ("a: &x [1, 1]\nb: [*x, *x]", "anchors"),
        ("a: &a [*a]", "anchors"),
        ("[" * 60_000, "deep"),
        ("- " * 30_000 + "a", "deep"),
        ("{a: " * 15_000, "deep"),
        ("? " * 30_000, "deep"),
        ("\n".join(f"k{n}: v" for n in range(100_000)), "limit"),
        ("a: !!python/object/apply:os.system [ls]", "constructor"),
        ("a: 2020-13-45", "month"),
        ("a: " + "9" * 9_000, "digits"),
        ("a: \x07", "control"),
        ("- a\n- b", "key: value"),
        ("? [a, b]\n: c", "plain text"),
        ("a: b\n...\n---x", "valid YAML"),
    ],
)
def test_hostile_front_matter_is_a_problem_with_a_line(front: str, reason: str) -> None:
    found = read_document(f"---\n{front}\n---\nBody\n".encode(), "a.md")
    assert found.problems
    assert all(each.kind == "parse" and each.line >= 1 for each in found.problems)
    assert any(reason in each.message for each in found.problems)
    assert found.body.endswith("Body\n")


@pytest.mark.parametrize(
    ("raw", "reason"),
    [(b"x" * (MAX_BYTES + 1), "limit"), (b"\xff\xfe\x00", "UTF-8"), (b"a\x00b", "NUL")],
)
def test_a_file_that_is_no_text_says_why(raw: bytes, reason: str) -> None:
    (problem,) = read_document(raw, "a.md").problems
    assert reason in problem.message


def test_a_body_of_a_megabyte_is_read() -> None:
    body = "x" * 1_000_000
    assert read_document(f"---\nname: a\n---\n{body}".encode(), "a.md").body == body


def test_keys_that_yaml_takes_for_other_things_keep_their_spelling() -> None:
    assert read_document(b"---\non: 1\n2: a\nnull: b\n---\n", "a.md").meta == {"on": 1, "2": "a", "null": "b"}


@given(
    st.binary(max_size=300)
    | st.text(alphabet="---\n:[]{}'\"&*!|> ab#", max_size=120).map(lambda text: f"---\n{text}".encode())
)
def test_nothing_breaks_it(raw: bytes) -> None:
    found = read_document(raw, "a.md")
    lines = raw.decode("utf-8", "replace").count("\n") + raw.count(b"\r") + 1
    assert all(0 <= each.line <= lines + 1 for each in found.problems)


def test_a_tab_is_reported_and_fixed_if_spaces_suffice() -> None:
    (problem,) = read_document(b"---\ndescription: b\ntriggers:\n\twords: [a]\n---\nx", "a.md").problems
    assert (problem.line, problem.hint) == (4, "Indent with spaces")
    assert problem.message == "the front matter is not valid YAML: a line begins with a tab"
    assert problem.fix is not None
    assert problem.fix.text == ("description: b", "triggers:", "  words: [a]")
    (problem,) = read_document(b"---\ntriggers:\n\twords: [a\n---\nx", "a.md").problems
    assert (problem.hint, problem.fix) == ("Indent with spaces", None)
