"""The code of a repository, kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.knowledge.code.store import CodeStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CodeStore]:
    opened = CodeStore(tmp_path / "code.db")
    yield opened
    opened.close()
