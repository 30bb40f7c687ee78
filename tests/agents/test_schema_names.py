"""Runners, context builder and the pieces around them know no schema by name: names are data."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import pytest

import clew.agents
import clew.context

NAME = re.compile(r"\b[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*\.v[0-9]+\b")
FILES = [path for package in (clew.agents, clew.context) for path in Path(package.__path__[0]).rglob("*.py")]


@pytest.mark.req("RCR-26")
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_schema_name_is_in_the_code(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    texts = [token for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type == tokenize.STRING]
    code = [token for token in texts if not token.string.startswith('"""')]

    assert [token.string for token in code if NAME.search(token.string)] == []
    assert len(texts) > 0
