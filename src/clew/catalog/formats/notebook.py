"""Jupyter notebooks. Headings of markdown cells start sections, code cells become fenced blocks, and outputs are cut to
a length of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from clew.catalog.formats.json_body import decode_body
from clew.catalog.formats.markdown import find_headings
from clew.catalog.formats.outline import OutlineHeading, build_outline
from clew.catalog.formats.prose import clean_text, cut, fence, one_line
from clew.catalog.formats.tree import Branch, build_tree
from clew.catalog.formats.types import NOTEBOOK, media_type
from clew.catalog.resource import RawContent, ResourceNode

MAX_OUTPUT = 1_000
MAX_LANGUAGE = 40
Text = str | list[str]


class Output(msgspec.Struct, frozen=True, kw_only=True):
    output_type: str = ""
    text: Text = ""
    data: dict[str, Any] = {}
    ename: str = ""
    evalue: str = ""


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    cell_type: str
    source: Text = ""
    outputs: list[Output] = []


class Language(msgspec.Struct, frozen=True, kw_only=True):
    name: str = ""


class NotebookMetadata(msgspec.Struct, frozen=True, kw_only=True):
    language_info: Language = Language()


class Cells(msgspec.Struct, frozen=True, kw_only=True):
    cells: list[Cell]
    metadata: NotebookMetadata = NotebookMetadata()


class Notebook:
    name = "notebook"

    def can_handle(self, content_type: str) -> bool:
        return media_type(content_type) in (NOTEBOOK, "application/x-jupyter+json")

    def parse(self, content: RawContent, base_path: str) -> Sequence[ResourceNode]:
        notebook = decode_body(content, Cells, "a notebook of version 4 with its cells")
        return build_tree(content, base_path, _grow(notebook, content.name))


def _grow(notebook: Cells, name: str) -> Branch:
    language = one_line(notebook.metadata.language_info.name[:MAX_LANGUAGE].replace("`", ""))
    lines: list[str] = []
    headings: list[OutlineHeading] = []
    for cell in notebook.cells:
        text = _show_cell(cell, language)
        if cell.cell_type == "markdown":
            headings += find_headings(text, first_line=len(lines))
        lines += [*text.split("\n"), ""]
    root = build_outline(lines, headings, name)
    return msgspec.structs.replace(root, metadata={"language": language, "cells": len(notebook.cells)})


def _show_cell(cell: Cell, language: str) -> str:
    source = _join(cell.source)
    if cell.cell_type != "code":
        return source
    blocks = [fence(source, language)] if source.strip() else []
    outputs = (_show_output(output) for output in cell.outputs)
    return "\n\n".join([*blocks, *(fence(cut(text, MAX_OUTPUT), "output") for text in outputs if text.strip())])


def _show_output(output: Output) -> str:
    """The text of an output. Images and HTML are omitted, because they contain nothing to search for."""
    if output.output_type == "error":
        return f"{output.ename}: {output.evalue}"
    shown = output.data.get("text/plain", output.text)
    is_text = isinstance(shown, str) or (isinstance(shown, list) and all(isinstance(line, str) for line in shown))
    return _join(shown) if is_text else ""


def _join(text: Text) -> str:
    return clean_text(text if isinstance(text, str) else "".join(text))
