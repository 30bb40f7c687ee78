"""Every Python block in the docs runs, and prints what the block after it shows.

A block that names the usual address of a server finds one there, on the folder `.clew` beside it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs/tutorial.md", *sorted((ROOT / "docs/guides").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```\n(.*?)^```\n)?", re.S | re.M)
SNIPPETS = [
    pytest.param(match[1], match[2], id=f"{page.stem}-{number}")
    for page in PAGES
    for number, match in enumerate(BLOCK.finditer(page.read_text(encoding="utf-8")), 1)
]


ADDRESS = "http://127.0.0.1:8081"
PATIENCE = 60.0


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """`clew up` in a folder, on a free port; its address."""
    command = [sys.executable, "-m", "clew", "up", "--port", "0", "--json"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield json.loads(server.stdout.readline())["url"]
        finally:
            server.terminate()
            server.wait(PATIENCE)


@pytest.mark.parametrize(("code", "shown"), SNIPPETS)
def test_a_python_block_prints_what_the_page_shows(code: str, shown: str | None, tmp_path: Path) -> None:
    with serving(tmp_path) if ADDRESS in code else nullcontext(ADDRESS) as url:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code.replace(ADDRESS, url)],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            cwd=tmp_path,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    if shown is not None:
        assert [line.rstrip() for line in done.stdout.splitlines()] == [line.rstrip() for line in shown.splitlines()]
