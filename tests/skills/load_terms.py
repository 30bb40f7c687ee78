"""Terms and stamps for loads, with a fixed clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from clew.skills.exposure import Items, Via
from clew.skills.manifest import Manifest
from clew.skills.sessions.loads import (
    LoadRecord,
    LoadTerms,
)
from clew.skills.sessions.session import SessionState, derive
from tests.skills.research_manifest import MANIFEST

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STAMP = LoadRecord(since=NOW, by="ann", why="asked for")


def terms(agent: str = "researcher", manifest: Manifest = MANIFEST, **more: Any) -> LoadTerms:
    return LoadTerms(manifest=manifest, agent=manifest.agents[agent], **more)


def state_of(items: Items, given: LoadTerms) -> SessionState:
    return derive(given.manifest, given.agent.name, items, given.withhold)


def later(minutes: int, via: Via = "load", **more: Any) -> LoadRecord:
    return LoadRecord(since=NOW + timedelta(minutes=minutes), via=via, by="ann", **more)
