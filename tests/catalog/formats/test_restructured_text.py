from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.catalog.resource import ResourceNode
from tests.catalog.formats.documents import check_nothing_lost, paths, read, walk

LINES = st.sampled_from(
    ["One", "Two words", "===", "====", "---", "~~~~~~~~~", "..", "::", "  in", "", "1. a", "*", "A"]
)


def read_rst(text: str) -> ResourceNode:
    root = read(text, "text/x-rst", id="guide.rst")
    check_nothing_lost(text, root)
    return root


def names(root: ResourceNode) -> list[str]:
    return [node.name for node in walk([root])]


def test_sections_follow_the_order_in_which_styles_are_met() -> None:
    root = read_rst(
        "=====\nGuide\n=====\n\nHow to.\n\nInstall\n=======\n\nRun it.\n\nLinux\n-----\n\nUse apt.\n\nUse\n===\n\nGo.\n"
    )
    assert paths(root) == ["guide.rst", "guide.rst/install", "guide.rst/install/linux", "guide.rst/use"]
    assert names(root) == ["Guide", "Install", "Linux", "Use"]
    assert root.description == "How to."
    assert root.children[0].content == "Install\n=======\n\nRun it.\n"[:-1]


def test_any_mark_may_be_the_outermost() -> None:
    assert names(read_rst("A\n~~~~\n\nB\n####\n\nC\n~~~~\n")) == ["guide.rst", "A", "B", "C"]


def test_a_rule_below_is_another_style_than_one_on_both_sides() -> None:
    root = read_rst("====\nA\n====\n\nB\n====\n")
    assert paths(root) == ["guide.rst", "guide.rst/b"]


@pytest.mark.parametrize(
    "text",
    [
        "Text\n\n----\n\nMore text\n",
        "A long line of text\n--\n",
        "::\n\n    Code\n    ----\n",
        "=====  =====\nA      B\n=====  =====\n1      2\n=====  =====\n",
        "+----+\n| A  |\n+----+\n",
        "first line\nsecond line\n-----------\n",
        "----\n----\n",
        "",
    ],
)
def test_text_that_only_looks_like_a_title_is_no_title(text: str) -> None:
    assert names(read_rst(text)) == ["guide.rst"]


def test_a_short_rule_still_makes_a_title_when_it_has_four_marks() -> None:
    assert names(read_rst("A rather long title\n====\n\ntext")) == ["A rather long title"]


def test_a_title_at_once_after_a_title_counts() -> None:
    assert names(read_rst("A\n===\nB\n---\ntext\n")) == ["A", "B"]


def test_equal_titles_get_distinct_paths() -> None:
    assert paths(read_rst("A\n==\n\nX\n--\n\nX\n--\n"))[1:] == ["guide.rst/x", "guide.rst/x-2"]


def test_a_document_without_titles_is_one_node_described_by_its_prose() -> None:
    root = read_rst(":orphan:\n\n.. note:: aside\n\nReal text.\n")
    assert (root.children, root.description) == ((), "Real text.")


def test_very_many_titles_give_a_bounded_tree() -> None:
    root = read_rst("".join(f"h{number}\n======\n\n" for number in range(20_000)))
    assert len(root.children) == 2_000


def test_all_styles_at_once_make_a_deep_tree() -> None:
    marks = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
    over = "".join(f"{mark * 4}\n{mark * 2}a\n{mark * 4}\n\n" for mark in marks)
    under = "".join(f"title\n{mark * 5}\n\n" for mark in marks)
    assert len(paths(read_rst(over.replace("!!a", "a") + under))) > 32


@given(st.lists(LINES).map("\n".join) | st.text())
def test_nothing_is_lost_of_any_text(text: str) -> None:
    read_rst(text.encode("utf-8", "replace").decode().removeprefix("\ufeff"))
