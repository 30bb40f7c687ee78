from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.catalog.formats.markdown import MAX_SECTIONED
from clew.catalog.formats.outline import MAX_SECTIONS
from clew.catalog.resource import ResourceNode
from tests.catalog.formats.documents import check_nothing_lost, paths, read, walk

LINES = st.sampled_from(
    [
        "# One",
        "## Two",
        "### Three",
        "One",
        "===",
        "---",
        "```",
        "~~~py",
        "   # x",
        "    # y",
        "- a",
        "> # q",
        "",
        " ",
        "#",
    ]
)


def read_markdown(text: str, *, id: str = "guide.md", base: str = "") -> ResourceNode:
    root = read(text, "text/markdown", id=id, base=base)
    check_nothing_lost(text, root)
    return root


@pytest.mark.req("ERN-18")
def test_sections_are_children_by_heading_level() -> None:
    root = read_markdown(
        "# Guide\nHow to.\n## Install\nRun it.\n### Linux\nUse apt.\n## Use\nGo.\n", base="docs", id="a/guide.md"
    )
    assert paths(root) == [
        "docs/a/guide.md",
        "docs/a/guide.md/install",
        "docs/a/guide.md/install/linux",
        "docs/a/guide.md/use",
    ]
    assert [node.name for node in walk([root])] == ["Guide", "Install", "Linux", "Use"]
    assert [node.type for node in walk([root])] == ["document", "section", "section", "section"]
    assert root.children[0].children[0].content == "### Linux\nUse apt."


def test_the_content_of_a_parent_is_its_own_text_only() -> None:
    root = read_markdown("# Guide\nHow to.\n## Install\nRun it.\n")
    assert root.content == "# Guide\nHow to."
    assert root.children[0].content == "## Install\nRun it."


def test_a_document_without_headings_is_one_node() -> None:
    root = read_markdown("Only text.\n\nAnd more.")
    assert (root.name, root.path, root.id, root.children) == ("guide.md", "guide.md", "guide.md", ())
    assert root.description == "Only text."


@pytest.mark.parametrize("text", ["", "\n \n", "\ufeff", "---\n---\n"])
def test_a_document_without_words_is_one_node_with_the_name_of_the_file(text: str) -> None:
    root = read("" if text == "\ufeff" else text, "text/markdown")
    assert (root.name, root.children) == ("guide.md", ())


def test_several_top_headings_are_children_of_the_file() -> None:
    root = read_markdown("intro\n# One\na\n# Two\nb\n")
    assert root.name == "guide.md"
    assert root.content == "intro"
    assert [child.name for child in root.children] == ["One", "Two"]


def test_without_prose_the_description_names_the_sections() -> None:
    assert read_markdown("# One\n# Two\n").description == "One, Two"


@pytest.mark.parametrize(
    "text",
    [
        "# A\n```sh\n# not one\n## nor this\n```\n## B\n",
        "# A\n~~~\n# not one\n```\n# nor this\n~~~\n## B\n",
        "# A\n\n    # indented code\n\n## B\n",
        "# A\n- item\n  ```\n  # in a list\n  ```\n\n## B\n",
        "# A\n<!--\n# in a comment\n-->\n\n## B\n",
        "# A\n> # quoted\n\n## B\n",
        "# A\n#no-space\n## B\n",
    ],
)
def test_text_that_only_looks_like_a_heading_is_no_heading(text: str) -> None:
    assert [node.name for node in walk([read_markdown(text)])] == ["A", "B"]


def test_underlined_headings_count() -> None:
    root = read_markdown("Guide\n=====\n\nText.\n\nInstall\non Linux\n-------\nRun.\n\n- item\n---\n")
    assert [node.name for node in walk([root])] == ["Guide", "Install on Linux"]


def test_levels_may_be_left_out() -> None:
    root = read_markdown("# A\n#### Deep\n### Less deep\n## B\n")
    assert paths(root) == ["guide.md", "guide.md/deep", "guide.md/less-deep", "guide.md/b"]


def test_equal_headings_get_distinct_paths() -> None:
    root = read_markdown("# A\n## Usage\n## Usage\n## Usage-2\n## usage!\n## Usage 2\n")
    assert paths(root)[1:] == [
        "guide.md/usage",
        "guide.md/usage-2",
        "guide.md/usage-2-2",
        "guide.md/usage-3",
        "guide.md/usage-2-3",
    ]


@pytest.mark.parametrize(
    ("heading", "name", "slug"),
    [
        ("Größe & Maß", "Größe & Maß", "gr%C3%B6%C3%9Fe-ma%C3%9F"),
        ("設定", "設定", "%E8%A8%AD%E5%AE%9A"),
        ("`clew ask`: the [first](https://e.org/a) step", "clew ask: the first step", "clew-ask-the-first-step"),
        ("**Bold** <a name='x'></a>", "Bold", "bold"),
        ("my\\_name {#anchor}", "my_name", "my-name"),
        ("__init__", "__init__", "init"),
        ("../../etc", "../../etc", "etc"),
        ("!!!", "!!!", "_"),
        ("", "Section at line 2", "section-at-line-2"),
        ("a\u202eb\x07c", "a b c", "a-b-c"),
        ("x" * 500, "x" * 199 + "…", "x" * 120),
    ],
)
def test_headings_give_names_and_safe_paths(heading: str, name: str, slug: str) -> None:
    root = read_markdown(f"# A\n## {heading}\n")
    assert (root.children[0].name, root.children[0].path) == (name, f"guide.md/{slug}")


def test_front_matter_is_metadata_and_names_the_document() -> None:
    text = "---\ntitle: The guide\ndescription: All of it.\ntags: [a, b]\ndate: 2026-01-02\n---\n# A\nx\n## B\n"
    root = read_markdown(text)
    assert root.metadata == {
        "title": "The guide",
        "description": "All of it.",
        "tags": ["a", "b"],
        "date": "2026-01-02",
    }
    assert (root.name, root.description) == ("The guide", "All of it.")
    assert root.content.endswith("# A\nx")
    assert root.children[0].content == "## B"


@pytest.mark.parametrize(
    "front",
    [
        "a: &x [1]\nb: [*x, *x]",
        "a: !!python/object/apply:os.system ['true']",
        "a: [",
        "{{ template }}: x",
        "a: " + "[" * 5_000,
        "a: " + "1" * 5_000,
        "a: 2026-99-99",
    ],
)
def test_front_matter_that_cannot_be_trusted_stays_text(front: str) -> None:
    root = read_markdown(f"---\n{front}\n---\n# A\nx\n")
    assert root.metadata == {}
    assert front in root.content


@pytest.mark.parametrize("text", ["---\n\na: 1\n\n# B\n---\n", "---\n# B\n---\n", "---\na: 1\n# B\n"])
def test_rules_are_not_taken_for_front_matter(text: str) -> None:
    root = read_markdown(text)
    assert root.metadata == {}
    assert root.name == "B"


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("First one. Second one.\nStill.\n\nNext.", "First one. Second one. Still."),
        ("[![badge](https://e.org)](https://e.org)\n\nReal text.", "Real text."),
        ("```\ncode\n\nmore code\n```\n\nAfter code.", "After code."),
        ("<!-- a\n\nnote -->\n\nAfter it.", "After it."),
        ("> **Note** quoted.", "**Note** quoted."),
        ("See [the docs](https://e.org/x).", "See the docs."),
        ("| a | b |\n|---|---|\n\nAfter the table.", "After the table."),
        ("- one\n- two\n\nAfter the list.", "After the list."),
        ("- [One](https://e.org)\n  goes on\n* [x] two\n\n- three", "One goes on; two"),
        ("1. First\n2) Second", "First; Second"),
        ("| Name | Size |\n|:--|--:|\n| big | 9 |\n| small | 1 |", "Name, Size; big, 9; small, 1"),
        ("Name | Size\n--- | ---\nbig | [9](https://e.org)", "Name, Size; big, 9"),
        ("| no rule |\n\n---", "A"),
        ("Long sentence. " * 40, ("Long sentence. " * 20).strip()),
        ("word " * 100, ("word " * 60)[:299].strip() + "…"),
    ],
)
def test_a_section_is_described_by_its_first_paragraph(text: str, description: str) -> None:
    assert read(f"# A\n\n{text}\n", "text/markdown").description == description


def test_a_long_section_goes_on_in_parts() -> None:
    text = "# A\n## Long\n" + "\n\n".join(f"Paragraph {number}. " + "word " * 100 for number in range(40)) + "\n## B\n"
    long, last = read_markdown(text).children
    assert [child.path for child in long.children] == [f"guide.md/long/part-{number}" for number in range(2, 7)]
    assert all(child.content.startswith("Paragraph") and len(child.content) <= 4_000 for child in long.children)
    assert long.metadata == {"parts": 6}
    assert long.children[0].name == "Long (part 2)"
    assert last.name == "B"


def test_very_many_headings_give_a_bounded_tree_and_lose_nothing() -> None:
    root = read_markdown("".join(f"# h{number}\n" for number in range(3 * MAX_SECTIONS)))
    assert len(root.children) == MAX_SECTIONS
    assert root.children[-1].children[0].path == "guide.md/h1999/part-2"


def test_a_very_long_document_is_given_in_parts_without_sections() -> None:
    root = read_markdown("# A\n" + "## B\ntext\n" * (MAX_SECTIONED // 10))
    assert {child.type for child in root.children} == {"part"}


def test_windows_line_ends_make_no_difference() -> None:
    root = read_markdown("# A\r\ntext\r\n\r\n## B\r\nmore\r\n")
    assert [node.content for node in walk([root])] == ["# A\ntext", "## B\nmore"]


def test_deep_folders_and_long_headings_still_fit_into_a_route() -> None:
    folders = "/".join(["ordner-mit-umlaut-ä" * 3] * 10)
    text = "\n".join(f"{'#' * level} {'漢字' * 50} {level}" for level in range(1, 7)) + "\n" + f"###### {'漢字' * 50} 6"
    root = read_markdown(text, id=f"{folders}/a.md", base="b")
    assert len(paths(root)) == 7


def test_the_project_s_own_documents_keep_every_line() -> None:
    for file in Path(__file__).parents[3].glob("docs/**/*.md"):
        read_markdown(file.read_text(), id=file.name)


@given(st.lists(LINES).map("\n".join) | st.text())
def test_nothing_is_lost_of_any_text(text: str) -> None:
    read_markdown(text.encode("utf-8", "replace").decode().removeprefix("\ufeff"))
