"""The pages hang together: links lead somewhere, the README is one screen, every package and guide can be found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)#\s]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_link_leads_nowhere(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_readme_is_one_screen_and_names_every_guide() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 64
    guides = {path.name for path in (ROOT / "docs" / "guides").glob("*.md")}
    assert {name for name in guides if f"docs/guides/{name}" not in text} == set()


def test_the_architecture_names_every_package_and_no_file_that_is_not_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    source = ROOT / "src" / "clew"
    packages = {path.parent for path in source.rglob("__init__.py")} - {source}
    assert {path.name for path in packages if f"{path.name}/" not in text and f"`{path.name}`" not in text} == set()
    files = {name.rpartition("/")[2] for name in re.findall(r"`([\w/]+\.py)`", text)}
    assert files - {path.name for folder in (source, ROOT / "tests") for path in folder.rglob("*.py")} == set()
