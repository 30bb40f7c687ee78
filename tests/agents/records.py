"""Breadcrumbs and events without a trail."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from clew.agents.repairs.reliability_settings import KEY, Reliability
from clew.trail.bootstrap import read_pieces
from clew.trail.model.breadcrumb import NEVER, Breadcrumb
from clew.trail.model.event import Event

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def shipped_reliability() -> Reliability:
    """The settings that come with Clew."""
    (found,) = (piece for piece in read_pieces() if piece.key == KEY)
    return msgspec.convert(found.context, Reliability)


def record(schema: str, /, *tags: str, **context: object) -> Breadcrumb:
    """A breadcrumb as a trail gives it."""
    return Breadcrumb(
        id="01980000-0000-7000-8000-000000000001",
        owner_id="acme",
        title="A record",
        context=context,
        tags=tags,
        schema_name=schema,
        version=1,
        scopes=(),
        llm_hints=None,
        ttl=NEVER,
        entities=None,
        entity_keywords=(),
        checksum="",
        created_at=NOW,
        updated_at=NOW,
        created_by=None,
        updated_by=None,
    )


def event(breadcrumb: Breadcrumb) -> Event:
    """The event of its creation, as a handler gets it."""
    return Event(
        seq=7,
        type="breadcrumb.created",
        breadcrumb_id=breadcrumb.id,
        owner_id="acme",
        version=1,
        schema_name=breadcrumb.schema_name,
        tags=breadcrumb.tags,
        at=NOW,
        breadcrumb=breadcrumb,
        key="c/7",
        attempt=1,
    )
