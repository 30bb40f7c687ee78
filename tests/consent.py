"""Consent of a user, for tests of other features."""

from __future__ import annotations

from pathlib import Path

from clew.catalog.consent.consent import read_wishes
from clew.config import read_config
from clew.trust import Trust


def trust_all(folder: Path) -> None:
    """Agree to everything in the current settings of a folder."""
    Trust.open().grant(read_wishes(read_config(folder, {})))
