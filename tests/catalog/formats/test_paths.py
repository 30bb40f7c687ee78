from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.catalog.formats.paths import MAX_PATH, MAX_SLUG, NodePaths, document_path, shorten, slug
from clew.catalog.route import parse_route


@pytest.mark.parametrize(
    ("id", "path"),
    [
        ("a/b.md", "base/a/b.md"),
        ("/a//b/", "base/a/b"),
        ("../../etc/passwd", "base/%2E./%2E./etc/passwd"),
        ("ä b", "base/%C3%A4%20b"),
        ("/", "base"),
    ],
)
def test_a_document_stands_at_its_id_below_the_base_path(id: str, path: str) -> None:
    assert document_path("base", id) == path


def test_a_document_always_stands_somewhere() -> None:
    assert document_path("", "/") == "_"


def test_composed_and_decomposed_letters_give_one_slug() -> None:
    assert slug("Café au lait") == slug("Cafe\u0301 au lait") == "caf%C3%A9-au-lait"


def test_marks_of_a_script_do_not_split_its_words() -> None:
    assert "-" not in slug("हिन्दी")


def test_a_path_that_is_too_long_ends_in_a_digest_of_the_whole() -> None:
    long = shorten("漢".encode().hex("%") * 300)
    assert len(long) <= MAX_PATH
    assert shorten("x/" * 600 + "a") != shorten("x/" * 600 + "b")


@given(st.text())
def test_a_slug_is_one_part_of_a_path(name: str) -> None:
    found = slug(name)
    assert len(found) <= MAX_SLUG
    assert parse_route(f"d://resources/{found}").path == found
    assert "/" not in found


@given(st.lists(st.sampled_from(["a", "a-2", "a-3", "b", "a-2-2"])))
def test_claimed_paths_are_distinct(parts: list[str]) -> None:
    paths = NodePaths()
    claimed = [paths.claim("base", part) for part in parts]
    assert len(set(claimed)) == len(parts)
