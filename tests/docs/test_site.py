"""The documentation as a site: it builds without a warning, can be searched, and loads nothing from outside."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", str(ROOT / "docs"), str(place)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return place


def test_every_page_is_in_the_site_and_in_its_search(site: Path) -> None:
    sources = [path.relative_to(ROOT / "docs").with_suffix("") for path in (ROOT / "docs").rglob("*.md")]
    assert [path for path in sources if not (site / f"{path}.html").exists()] == []
    index = (site / "searchindex.js").read_text("utf-8")
    assert [path for path in sources if f'"{path.as_posix()}"' not in index] == []


def test_no_page_loads_anything_from_outside(site: Path) -> None:
    loads = re.compile(
        r"""<(?:script|img|iframe)\b[^>]*\bsrc=["']?(?:https?:)?//|<link\b[^>]*\bhref=["']?(?:https?:)?//"""
    )
    assert [path.name for path in site.rglob("*.html") if loads.search(path.read_text("utf-8"))] == []
