"""The reference is fresh, and leaves nothing out."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from clew.adapters.rest.app import OPERATIONS
from clew.cli.command_table import COMMANDS, CliCommand
from clew.trail.bootstrap import read_pieces

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def reference() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "tools"))
    spec = importlib.util.spec_from_file_location("reference", ROOT / "tools" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(ROOT / "tools"))


def test_every_page_says_what_the_code_says_on_any_terminal(
    reference: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = dict(reference.render_pages())
    assert sorted(path.name for path in pages) == [
        "cli.md",
        "config.md",
        "modules.md",
        "python.md",
        "rest.md",
        "schemas.md",
    ]
    stale = [path.name for path, text in pages.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    assert stale == [], "run `make reference`"
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("CLEW_SERVER_PORT", "9999")
    assert dict(reference.render_pages()) == pages


def test_no_command_route_or_schema_is_left_out() -> None:
    text = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "reference").glob("*.md")}
    for entry in COMMANDS:
        for words in (
            [entry.name] if isinstance(entry, CliCommand) else [f"{entry.name} {one.name}" for one in entry.commands]
        ):
            assert f"## clew {words}\n" in text["cli.md"]
    for operation in OPERATIONS:
        assert f"## {operation.method} {operation.path}\n" in text["rest.md"]
    for piece in read_pieces():
        if piece.schema_name == "schema.def.v1":
            assert f"## {piece.context['schema_name']}\n" in text["schemas.md"]
