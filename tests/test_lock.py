"""Nothing that `make` installs comes from outside the hashed lock files."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-bench.lock"])
def test_the_build_backend_is_in_the_lock_with_hashes(lock: str) -> None:
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    text = (ROOT / lock).read_text()
    for requirement in needed:
        name = re.split(r"[<>=!~ ]", requirement)[0]
        assert re.search(rf"^{name}==\S+ \\\n +--hash=sha256:", text, re.MULTILINE)
    assert "--no-build-isolation" in (ROOT / "tools" / "setup_venv.py").read_text()
