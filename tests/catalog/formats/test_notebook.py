from __future__ import annotations

from typing import Any

from clew.catalog.formats.types import NOTEBOOK
from tests.catalog.formats.documents import paths, read, walk


def notebook(*cells: dict[str, Any]) -> dict[str, Any]:
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "python3"}, "language_info": {"name": "python"}},
        "cells": list(cells),
    }


def text(*lines: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": list(lines)}


def code(source: str, *outputs: dict[str, Any]) -> dict[str, Any]:
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "source": source, "outputs": list(outputs)}


def test_headings_of_markdown_cells_give_sections() -> None:
    body = notebook(text("# Analysis\n", "Of orders."), text("## Load"), code("x = 1"), text("## Plot\n", "Nice."))
    root = read(body, NOTEBOOK, id="a.ipynb")
    assert paths(root) == ["a.ipynb", "a.ipynb/load", "a.ipynb/plot"]
    assert (root.name, root.description) == ("Analysis", "Of orders.")
    assert root.children[0].content == "## Load\n\n```python\nx = 1\n```"
    assert root.metadata == {"language": "python", "cells": 4}


def test_a_comment_in_code_is_no_heading_even_where_code_tries_to_end_its_fence() -> None:
    root = read(notebook(code("# a comment\n```\n# still code\n````\n# and this\n")), NOTEBOOK)
    assert root.children == ()
    assert root.content.startswith("`````python\n# a comment")
    assert root.content.endswith("\n`````")


def test_the_name_of_the_language_cannot_forge_lines() -> None:
    body = {**notebook(code("x")), "metadata": {"language_info": {"name": "py\n```\n# Heading"}}}
    assert read(body, NOTEBOOK).content == "```py # Heading\nx\n```"


def test_outputs_are_shown_as_text_and_cut() -> None:
    outputs: list[dict[str, Any]] = [
        {"output_type": "stream", "name": "stdout", "text": ["y" * 5_000]},
        {"output_type": "execute_result", "data": {"text/plain": ["42"], "text/html": "<b>secret</b>"}},
        {"output_type": "display_data", "data": {"image/png": "aGFsbG8="}},
        {"output_type": "error", "ename": "ValueError", "evalue": "bad", "traceback": ["\x1b[31mlong"]},
    ]
    content = read(notebook(code("f()", *outputs)), NOTEBOOK).content
    assert "```output\n" + "y" * 999 + "…\n```" in content
    assert "```output\n42\n```" in content
    assert "ValueError: bad" in content
    assert not any(word in content for word in ("secret", "aGFsbG8=", "long"))


def test_an_open_fence_in_one_cell_does_not_reach_into_the_next() -> None:
    root = read(notebook(text("```\nopen"), text("# A heading")), NOTEBOOK)
    assert [node.name for node in walk([root])] == ["A heading"]


def test_a_notebook_without_cells_is_one_node() -> None:
    root = read({"cells": [], "metadata": {}}, NOTEBOOK, id="e.ipynb")
    assert (root.name, root.content) == ("e.ipynb", "")
