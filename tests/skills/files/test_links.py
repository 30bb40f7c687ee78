"""Links in markdown."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.skills.files.links import extract_links


def paths(content: str, **options: object) -> list[str]:
    return [link.path for link in extract_links(content, **options)]  # type: ignore[arg-type]


@pytest.mark.req("PLA-11")
def test_a_link_has_its_text_its_path_and_its_line() -> None:
    links = extract_links("# Title\n\nSee [the guide](docs/guide.md) and\n[more](more.md).")
    assert [(link.text, link.path, link.line) for link in links] == [
        ("the guide", "docs/guide.md", 3),
        ("more", "more.md", 4),
    ]


@pytest.mark.req("PLA-11")
def test_images_are_no_links() -> None:
    assert paths("![a](a.png) [b](b.md) ![c][d]\n\n[d]: d.md") == ["b.md"]


@pytest.mark.req("PLA-11")
def test_an_external_link_is_given_only_when_asked_for() -> None:
    content = (
        "[a](https://example.org/a.md) [b](mailto:x@example.org) [c](//example.org) <https://example.org/d> [e](e.md)"
    )
    assert paths(content) == ["e.md"]
    assert paths(content, external=True) == [
        "https://example.org/a.md",
        "mailto:x@example.org",
        "//example.org",
        "https://example.org/d",
        "e.md",
    ]


@pytest.mark.req("PLA-11")
def test_links_are_chosen_by_pattern_and_by_extension() -> None:
    content = "[a](a.md) [b](b.TXT) [c](refs/c.MD#part) [d](d)"
    assert paths(content, extensions=["md"]) == ["a.md", "refs/c.MD"]
    assert paths(content, extensions=[".txt", ".md"]) == ["a.md", "b.TXT", "refs/c.MD"]
    assert paths(content, pattern=r"^refs/") == ["refs/c.MD"]
    assert paths(content, pattern=re.compile("a|d$")) == ["a.md", "d"]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("`[a](a.md)` ``[b](`b.md)`` [c](c.md)", ["c.md"]),
        ("```\n[a](a.md)\n```\n[b](b.md)", ["b.md"]),
        ("~~~~\n[a](a.md)\n~~~\n[b](b.md)\n~~~~\n[c](c.md)", ["c.md"]),
        ("```md\n[a](a.md)", []),
        ("> ```\n> [a](a.md)\n> ```\n> [b](b.md)", ["b.md"]),
        ("<!-- [a](a.md) --> [b](b.md)", ["b.md"]),
        ("a ` b [c](c.md)", ["c.md"]),
        ("1. one\n    - [deep](deep.md)", ["deep.md"]),
    ],
)
def test_code_and_comments_hold_no_links(content: str, found: list[str]) -> None:
    assert paths(content) == found


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ('[a](a.md "A title")', [("a", "a.md")]),
        ("[a](a.md 'of (two)\nlines')", [("a", "a.md")]),
        ("[a](<a b.md>)", [("a", "a b.md")]),
        ("[a](a%20b.md)", [("a", "a b.md")]),
        ("[a [b] c](a.md)", [("a [b] c", "a.md")]),
        ("[a](a(b(c)).md)", [("a", "a(b(c)).md")]),
        (r"\[a](a.md)", []),
        (r"[a\]](a.md)", [("a]", "a.md")]),
        (r"[a](a\).md)", [("a", "a).md")]),
        ("[a] (a.md)", []),
        ("[a](a.md", []),
        ("[a](a b.md)", []),
        ("[a](#part)", []),
        ("[a]()", []),
        ("[two\nlines](a.md)", [("two lines", "a.md")]),
        ("[a\n\nb](a.md)", []),
        ("[**bold** `code`](a.md)", [("bold code", "a.md")]),
        ("[`code`](a.md)", [("code", "a.md")]),
        ("[![badge](b.png)](a.md)", [("badge", "a.md")]),
        ("[a [b](b.md)](a.md)", [("b", "b.md")]),
        ("[über](ü.md)", [("über", "ü.md")]),
    ],
)
def test_links_and_text_that_is_no_link(content: str, found: list[tuple[str, str]]) -> None:
    assert [(link.text, link.path) for link in extract_links(content)] == found


def test_reference_links_find_their_definition_wherever_it_is() -> None:
    content = "[One][a] [A] [b][] [none] [no][such]\n\n[a]: one.md 'title'\n[B]: <two words.md>\n[a]: second.md\n"
    assert [(link.text, link.path, link.line) for link in extract_links(content)] == [
        ("One", "one.md", 1),
        ("A", "one.md", 1),
        ("b", "two words.md", 1),
    ]


def test_a_fragment_is_separated_from_the_path() -> None:
    (link,) = extract_links("[a](a.md#part-two)")
    assert (link.path, link.fragment) == ("a.md", "part-two")


def test_lines_count_from_where_the_text_begins() -> None:
    assert [link.line for link in extract_links("x\n[a](a.md)", first_line=7)] == [8]


_HOSTILE = [
    "[",
    "]",
    "[]",
    "[a](",
    "[a](<",
    '[a](b "',
    "[a](b (",
    "`",
    "` `` ",
    "![",
    "\\",
    "<!--",
    "<a:",
    "[a][",
    "[![a](b)",
]


@pytest.mark.parametrize("unit", _HOSTILE)
def test_hostile_text_takes_linear_time(unit: str) -> None:
    """In quadratic time this would take hours."""
    text = "[a]: b.md\n\n" + unit * (100_000 // len(unit))
    assert all(1 <= link.line <= text.count("\n") + 1 for link in extract_links(text)[:100])


@given(st.text(alphabet="[]()<>!`\\\"'ab.md \n#:", max_size=80))
def test_no_text_breaks_it_and_lines_are_in_order(content: str) -> None:
    links = extract_links(content, external=True)
    assert all(1 <= link.line <= content.count("\n") + 1 for link in links)
    assert [link.line for link in links] == sorted(link.line for link in links)
