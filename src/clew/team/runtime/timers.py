"""Timers of a team: records that wait until they are due, and then send TIMER_DUE. They survive the end of the
process."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.team.guide import checked_message_draft
from clew.team.messages.message import TeamMessage
from clew.team.messages.message_types import ORCHESTRATOR, RUNTIME, MessageType
from clew.team.runtime.effect_drafts import TIMER, derived_id
from clew.trail.model.breadcrumb import Draft
from clew.trail.model.event import Event, RetryPolicy
from clew.trail.model.selector import Selector
from clew.trail.work.claims import NotNow
from clew.trail.work.handlers import Handler

NAME = "team/timers"
LONGEST_WAIT = 3_600.0
"""Seconds after which a timer checks the clock again, because the clock may have been changed."""

_log = logging.getLogger(__name__)


class TeamTimer(msgspec.Struct, frozen=True, kw_only=True):
    """A timer as stored."""

    session_id: str
    key: str
    due_at: datetime


def timer_handler(clock: Clock, *, by: Principal) -> Handler:
    """The handler of all timers. A timer that is not due yet is released until then."""

    async def handle(event: Event, deps: Any) -> Sequence[Draft]:
        record = event.breadcrumb
        if record is None:
            return ()
        try:
            timer = msgspec.convert(record.context, TeamTimer)
        except msgspec.ValidationError as error:
            _log.warning("the timer %s cannot be read: %s", record.id, error)
            return ()
        left = (timer.due_at - clock.now()).total_seconds()
        if left > 0:
            raise NotNow(min(left, LONGEST_WAIT))
        due = TeamMessage(
            id=derived_id(by, record.id, 0),
            parent_id=record.id,
            session_id=timer.session_id,
            source=RUNTIME,
            target=ORCHESTRATOR,
            type=MessageType.TIMER_DUE,
            payload={"key": timer.key},
            timestamp=clock.now(),
        )
        return (checked_message_draft(due, key=f"team/timer/{record.id}"),)

    return Handler(
        name=NAME,
        selector=Selector(schema_name=TIMER),
        function=handle,
        retry=RetryPolicy(attempts=100, backoff=0.5, backoff_limit=30.0),
        start="beginning",
        types=("breadcrumb.created",),
        ordered=False,
    )
