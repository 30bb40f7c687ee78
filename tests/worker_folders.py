"""Folders that all processes of a test run share, so that slow fixtures are made only once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def shared_by_workers(factory: pytest.TempPathFactory, name: str) -> Path:
    """The path of a folder of this run, the same in each of its processes. Whoever makes it holds its lock."""
    own = factory.getbasetemp()
    return (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / name
