"""Settings of Sphinx for `make docs`, which builds these pages to a searchable site that needs no server."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

_PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]

project = "Clew"
release = _PROJECT["version"]
copyright = "the Clew developers"

extensions = ["myst_parser"]
exclude_patterns = ["_build"]
myst_heading_anchors = 3
myst_links_external_new_tab = True
suppress_warnings = ["misc.highlighting_failure"]
"""Console blocks hold `…` for output that differs from run to run, which no lexer knows."""

html_theme = "furo"
html_title = f"Clew {release}"
html_copy_source = False
html_show_sphinx = False

_FENCE = re.compile(r"(?P<bar>`{3,})(?:(?P<language>\w+) (?P<file>\S+)$)?")


def setup(app: Any) -> None:
    app.connect("source-read", _add_captions)


def _add_captions(app: Any, name: str, source: list[str]) -> None:
    """Show the name of the file above a block that is one, such as "```python shop.py"."""
    lines, bar = [], ""
    for line in source[0].split("\n"):
        found = _FENCE.match(line)
        if found and not bar:
            bar = found["bar"]
            if found["file"]:
                line = f"{bar}{{code-block}} {found['language']}\n:caption: {found['file']}\n"
        elif line.rstrip() == bar:
            bar = ""
        lines.append(line)
    source[0] = "\n".join(lines)
