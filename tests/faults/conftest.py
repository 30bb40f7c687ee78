"""The folder of a fault test, once for each backend: its processes find the trail by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.conftest import BACKENDS
from tests.faults.processes import ADDRESS


@pytest.fixture(params=BACKENDS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder whose trail is on this backend: see `open_at`."""
    (tmp_path / ADDRESS).write_text(BACKENDS[request.param](request))
    return tmp_path
