"""Consent as a user gives it, for tests that are about something else."""

from __future__ import annotations

from pathlib import Path

from clew.catalog.consent.consent import read_wishes
from clew.config import read_config
from clew.trust import Trust


def trust_all(folder: Path) -> None:
    """Agree to whatever the settings of a folder bring, as they are now."""
    Trust.open().grant(read_wishes(read_config(folder, {})))
