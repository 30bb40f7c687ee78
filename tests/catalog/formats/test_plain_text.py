from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.catalog.formats.prose import PART, WHOLE
from tests.catalog.formats.documents import check_nothing_lost, paths, read, walk


def test_a_short_text_is_one_node() -> None:
    root = read("A note.\n\nMore of it.\n", "text/plain", id="notes/a.txt", base="files")
    assert (root.path, root.name, root.content) == ("files/notes/a.txt", "a.txt", "A note.\n\nMore of it.")
    assert (root.description, root.children, root.type) == ("A note.", (), "document")


def test_a_long_text_goes_on_in_parts_that_begin_with_a_paragraph() -> None:
    text = "\n\n".join(f"Paragraph {number}. " + "word " * 150 for number in range(20))
    root = read(text, "text/plain", id="a.txt")
    check_nothing_lost(text, root)
    assert paths(root) == ["a.txt", "a.txt/part-2", "a.txt/part-3", "a.txt/part-4"]
    assert all(child.content.startswith("Paragraph") for child in root.children)
    assert all(len(child.content) <= PART * 1.5 for child in (root, *root.children))
    assert root.children[0].description.startswith("Part 2 of a.txt: Paragraph 5.")


@pytest.mark.parametrize("kind", ["RSA PRIVATE KEY", "PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
@pytest.mark.parametrize("type", ["text/plain", "text/x-source", "text/markdown", "text/x-rst"])
@pytest.mark.parametrize("is_whole", [True, False])
def test_a_private_key_is_masked_before_the_text_is_cut(kind: str, type: str, is_whole: bool) -> None:
    key = [f"MIIE{number:02}{'aB3+' * 14}/=" for number in range(25)]
    end = [f"-----END {kind}-----"] if is_whole else [""]
    lines = [f"Line {number} of the note." for number in range(475)]
    text = "\n".join((*lines[:175], f"-----BEGIN {kind}-----", *key, *end, *lines[175:]))
    kept = "\n".join(f"{node.description}\n{node.content}" for node in walk([read(text, type)]))
    assert "MIIE" not in kept
    assert "aB3+" not in kept
    assert all(line in kept for line in lines)


@pytest.mark.parametrize("heading", ["# Half", "Half\n----"])
def test_a_private_key_is_masked_whole_although_a_heading_stands_in_it(heading: str) -> None:
    half = "\n".join(f"MIIE{number:02}{'aB3+' * 14}/=" for number in range(12))
    text = f"# Note\n\n-----BEGIN PRIVATE KEY-----\n{half}\n\n{heading}\n\n{half}\n-----END PRIVATE KEY-----\n\nMore.\n"
    kept = "\n".join(f"{node.description}\n{node.content}" for node in walk([read(text, "text/markdown")]))
    assert "aB3+" not in kept
    assert "More." in kept


def test_the_mention_of_a_private_key_hides_nothing() -> None:
    text = "It begins with -----BEGIN PRIVATE KEY----- and goes on.\n\nMore words.\n"
    assert read(text, "text/plain").content == text.strip()


def test_code_is_cut_between_its_functions_and_described_by_its_file() -> None:
    text = "\n\n\n".join(f"def f{number}():\n    x = 1\n\n    return {'x' * 300!r}" for number in range(40))
    root = read(text, "text/x-source", id="src/a.py")
    check_nothing_lost(text, root)
    assert root.type == "code"
    assert root.description.startswith("a.py: defines f0, f1, f2")
    assert root.children[0].description.startswith("Part 2 of a.py: defines f1")
    assert root.children
    assert all(child.content.startswith("def f") for child in root.children)


@pytest.mark.parametrize("text", ["x" * 50_000, "x\n" * 30_000, "word " * 10_000, "\n" * 50_000 + "x", "漢" * 9_000])
def test_text_without_paragraphs_is_cut_all_the_same(text: str) -> None:
    root = read(text, "text/plain")
    check_nothing_lost(text, root)
    assert all(0 < len(node.content) <= PART * 1.5 for node in root.children)


def test_a_text_just_short_enough_stays_whole() -> None:
    assert not read("x" * WHOLE, "text/plain").children
    assert read("x" * (WHOLE + 1), "text/plain").children


def test_text_that_is_not_utf_8_is_read_with_replacements() -> None:
    assert read(b"caf\xe9 \x00", "text/plain").content == "caf\ufffd \ufffd"


def test_many_megabytes_give_a_bounded_number_of_parts() -> None:
    root = read("All work and no play.\n" * 500_000, "text/plain")
    assert len(root.children) < 3_000


@given(st.text(), st.integers(min_value=1, max_value=9_000))
def test_nothing_is_lost_of_any_text(piece: str, times: int) -> None:
    text = (piece.encode("utf-8", "replace").decode().removeprefix("\ufeff") * times)[:20_000]
    root = read(text, "text/plain")
    contents = "".join(node.content for node in (root, *root.children))
    source = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    assert "".join(contents.split()) == "".join(source.split())
