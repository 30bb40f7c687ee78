"""Settings of Sphinx for `make docs`, which builds these pages to a searchable site that needs no server."""

from __future__ import annotations

import tomllib
from pathlib import Path

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
