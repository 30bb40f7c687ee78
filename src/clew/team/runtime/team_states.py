"""The state of a team: the result of all its messages, in order. The trail alone holds the messages; this is a cache
that any process can rebuild."""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass, field

import msgspec

from clew.access import Principal
from clew.errors import ClewError, InvalidInput
from clew.skills.lru_cache import LruCache
from clew.team.machines.effects import Effects
from clew.team.machines.pipeline import Gate
from clew.team.machines.team_machine import step
from clew.team.machines.team_state import TeamState
from clew.team.messages.message import SCHEMA, TeamMessage, read_message
from clew.team.messages.message_types import MessageType
from clew.trail.model.breadcrumb import Breadcrumb
from clew.trail.model.selector import Selector
from clew.trail.store import Trail

MAX_SESSIONS = 64
"""States that one process keeps."""
EXPIRED = "expired"
"""The reason in the refusal of an expired message. Such a message does not change the state."""
_PAGE = 500

_log = logging.getLogger(__name__)


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """The state after a message, and its effects. A refused message changes nothing; `refusal` is the reason."""

    state: TeamState
    effects: Effects = ()
    refusal: ClewError | None = None


def apply(state: TeamState, message: TeamMessage, gate: Gate) -> Applied:
    """Apply a message to a state. It never raises: any error of the state machine also refuses the message, so that
    every process computes the same state."""
    try:
        changed, effects = step(state, message, gate)
    except ClewError as error:
        return Applied(state=state, refusal=error)
    except msgspec.ValidationError as error:
        return Applied(state=state, refusal=InvalidInput("payload", str(error)))
    except Exception as error:
        _log.exception("the message %s (%s) cannot be applied", message.id, message.type)
        return Applied(state=state, refusal=ClewError(f"{message.type} cannot be applied: {error!r}"[:500]))
    return Applied(state=changed, effects=effects)


@dataclass(slots=True)
class _Session:
    """The state up to one message, and later messages that are already read but not applied. `perishable` are applied
    messages that can expire and may still be refused for that."""

    state: TeamState
    cursor: str | None = None
    waiting: deque[TeamMessage] = field(default_factory=deque)
    expired: set[str] = field(default_factory=set)
    perishable: set[str] = field(default_factory=set)


class TeamStates:
    """States of teams, for one owner. `gate` decides whether work counts as done."""

    def __init__(self, trail: Trail, gate: Gate, *, by: Principal, limit: int = MAX_SESSIONS) -> None:
        self._records = trail.records
        self.gate = gate
        self._by = by
        self._kept: LruCache[str, _Session] = LruCache(limit)

    async def before(self, message: TeamMessage) -> TeamState:
        """The state right before a message that is on the trail."""
        known = self._kept.find(message.session_id)
        if known is not None:
            await self._read(message.session_id, known)
            if not any(each.id == message.id for each in known.waiting):
                known = None  # the message was applied already
        if known is None:
            known = _Session(TeamState(session=message.session_id))
            await self._read(message.session_id, known)
            self._kept.keep(message.session_id, known)
        while known.waiting and known.waiting[0].id != message.id:
            self._fold(known, known.waiting.popleft())
        return known.state

    async def latest(self, session: str) -> TeamState:
        """The state after all messages of a session; the initial state if there are none."""
        known = self._kept.find(session) or self._kept.keep(session, _Session(TeamState(session=session)))
        await self._read(session, known)
        if known.expired & known.perishable:  # it was applied before its refusal was read
            known = self._kept.keep(session, _Session(TeamState(session=session)))
            await self._read(session, known)
        while known.waiting:
            self._fold(known, known.waiting.popleft())
        return known.state

    def _fold(self, known: _Session, message: TeamMessage) -> None:
        if message.id not in known.expired:
            if message.ttl or message.deadline is not None:
                known.perishable.add(message.id)
            known.state = apply(known.state, message, self.gate).state

    async def _read(self, session: str, known: _Session) -> None:
        """Read the messages that were written since the last read. Several callers may read at once; each page is added
        only once."""
        has_more = True
        while has_more:
            start = known.cursor
            page = await self._records.list(
                session_selector(session), by=self._by, limit=_PAGE, cursor=start, oldest_first=True
            )
            if known.cursor != start:
                continue
            for record in page.items:
                self._add(known, record)
            known.cursor, has_more = page.end or known.cursor, page.cursor is not None

    def _add(self, known: _Session, record: Breadcrumb) -> None:
        try:
            message = read_message(record)
        except InvalidInput as error:
            _log.warning("the message %s cannot be read: %s", record.id, error)
            return
        if message.type is MessageType.MESSAGE_REFUSED and message.payload.get("reason") == EXPIRED:
            known.expired.add(str(message.payload.get("message")))
        known.waiting.append(message)


def session_selector(session: str) -> Selector:
    """All messages of the team of a session."""
    return Selector(schema_name=SCHEMA, session=session)
