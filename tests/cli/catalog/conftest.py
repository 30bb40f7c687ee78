"""Folders for `clew ask`, `get` and their kin: a project of notes, and tools of every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.consent import trust_all

TOPICS = ("ledger", "kettle", "orchard", "harbour", "violin", "glacier", "saddle", "lantern")
TOOLS = '''
"""Two domains for the tests of the commands."""

from typing import Literal

from clew.catalog.domain import Domain
from clew.catalog.resource import Resource
from clew.tools import GuidedContent, guide, tool


@tool()
async def analyst(text: str = "", limit: int = 3, note: str | None = None, kind: Literal["1", "2"] = "1",
                  tags: list[str] = [], deep: bool = False) -> GuidedContent:
    """Look into payments of the warehouse."""
    told = repr((text, limit, note, kind, tags, deep))
    return GuidedContent(content=told, guidance=[guide("warehouse://tools/hidden/query", "run it")])


@tool(searchable=False)
async def query(sql: str) -> str:
    """Run a query."""
    return f"ran {sql}"


@tool(scopes=("finance",))
async def payroll() -> str:
    """Show what people are paid."""
    return "much"


@tool()
async def breaks() -> str:
    """Break on purpose."""
    raise ValueError("broken on purpose")


@tool()
async def noisy() -> str:
    """Give back control characters."""
    return "red \\x1b[31mand \\x07bell \\u202ereversed"


warehouse = Domain(
    name="warehouse", description="Payments and those who make them.", tools=(analyst, query, payroll, breaks, noisy)
)
'''


@pytest.fixture
def project(folder: Path) -> Path:
    """A folder with 188 small files, which are all indexed before the first answer. Eight are about something."""
    root = folder.parent
    for number in range(180):
        place = root / f"part-{number % 10}"
        place.mkdir(exist_ok=True)
        (place / f"file-{number}.md").write_text(f"# Page {number}\n\nNothing but the number {number} in here.\n")
    for topic in TOPICS:
        (root / f"{topic}.md").write_text(f"# The {topic}\n\nHow to look after the {topic} of the house, every week.\n")
    return root


@pytest.fixture
def tools(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without files of its own, whose settings name a domain in a module."""
    code = folder.parent / "code"
    code.mkdir()
    (code / "warehouse_tools.py").write_text(TOOLS)
    monkeypatch.syspath_prepend(str(code))
    monkeypatch.setenv("PYTHONPATH", str(code))
    settings(folder, '[catalog]\nrepository = false\ndomains = ["warehouse_tools:warehouse"]\n')
    trust_all(folder)
    return folder


def settings(folder: Path, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(text)


def resources(answer: Any) -> list[str]:
    return [entry["route"] for section in answer["sections"] for entry in section.get("resources", ())]
