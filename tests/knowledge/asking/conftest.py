"""A sample shop for questions: its code, its documents and its tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clew.app import App, open_app
from clew.config import Config, HygieneConfig
from tests.knowledge.code.repositories import make_repository
from tests.knowledge.doors import PATIENCE

FILES = {
    "src/factory.py": (
        '"""Makes places."""\n\n\n'
        'class PlaceFactory:\n    """Makes places to work in."""\n\n'
        "    def __init__(self, *places: list[str], **more: int) -> None:\n        self.places = places\n\n"
        '    def base_place(self) -> str:\n        """The place of all places."""\n        return "/"\n\n'
        "    def make(self) -> str:\n        return self.base_place()\n"
    ),
    "src/user.py": (
        "from src.factory import PlaceFactory\n\n\n"
        'def build(*names: list[str], depth: int = 1) -> dict[str, str]:\n    """Build it all."""\n'
        "    return {name: PlaceFactory().base_place() for name in names}\n\n\n"
        "class SpecialFactory(PlaceFactory):\n    pass\n\n\ndef idle() -> None:\n    return None\n"
    ),
    "src/Adapter.java": (
        "package shop;\n\n/** Turns one thing into another. */\npublic abstract class Adapter<T> {\n"
        "  public Adapter() {}\n\n  public T adapt(T value) { return value; }\n}\n"
    ),
    "tests/test_factory.py": (
        "from src.factory import PlaceFactory\n\n\nclass Adapter:\n    pass\n\n\n"
        "def test_skip_a_place():\n    PlaceFactory().base_place()\n\n\n"
        "def test_how_to_skip_places():\n    assert True\n\n\ndef test_buy_bananas():\n    assert 'banana'\n"
    ),
    "docs/skipping.md": "# How to skip a place\n\nMark a place with the word `skip` and it is not visited.\n",
    "docs/other.md": "# Colours\n\nPlaces are green.\n",
    "README.md": "# Shop\n\nA shop of kettles.\n",
    ".gitignore": ".clew/\n",
}


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[App]:
    root = make_repository(tmp_path / "shop", FILES)
    config = Config(folder=root / ".clew", hygiene=HygieneConfig(enabled=False))
    async with open_app(config, patience=PATIENCE) as opened:
        await opened.bootstrap()
        await opened.knowledge().gather()
        yield opened
