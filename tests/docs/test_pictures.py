"""The pictures of the documentation show what the commands print today, and load nothing from outside."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_picture_shows_what_its_commands_print() -> None:
    command = [sys.executable, str(ROOT / "tools" / "pictures.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_picture_loads_anything_from_outside() -> None:
    texts = {path.name: path.read_text("utf-8") for path in (ROOT / "docs" / "images").glob("*.svg")}
    assert len(texts) >= 6
    assert [name for name, text in texts.items() if re.search(r"url\(\s*['\"]?http|href=\"http|@import", text)] == []


def test_the_pages_show_the_pictures_of_the_team() -> None:
    pages = {page: (ROOT / page).read_text("utf-8") for page in ("README.md", "docs/guides/team.md")}
    assert "docs/images/team-live.svg" in pages["README.md"]
    for name in ("team-live", "team-end", "team-proof"):
        assert f"../images/{name}.svg" in pages["docs/guides/team.md"]
