"""Sessions on the trail. A tag identifies a session; its title is the beginning of its first message."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from clew.access import Principal
from clew.agents.runs.requests import find_author
from clew.errors import InvalidInput, NotFound
from clew.fences import clean
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.flow import Flow
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from clew.trail.work.correlation import CONSUMER_TAG, PLACE_TAG, find_run, run_tag

MAX_SESSIONS, MAX_LOOK = 200, 10_000
"""The maximum number of sessions in a list, and of the newest messages that are read to find them."""
MAX_TURNS = 200
SESSION_TAG = "session:"
_PAGE = 200
_TITLE, _NAME = 80, 200


class SentMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message on the trail, and the run that it starts. `after` is the log position from which to follow the run."""

    id: str
    session: str
    run: str
    agent: str
    after: int = 0


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A session as a list shows it."""

    id: str
    title: str
    agent: str
    started_at: datetime
    last_at: datetime


class SessionTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One message or answer of a session. `status` is that of an answer."""

    id: str
    run: str
    role: Literal["user", "agent"]
    text: str
    status: str
    at: datetime


class Sessions:
    """Reads sessions. Records that the caller may not read are treated as missing."""

    def __init__(self, trail: Trail, flow: Flow) -> None:
        self._records = trail.records
        self._flow = flow

    async def recent(self, *, by: Principal, limit: int = 20) -> list[SessionInfo]:
        """Return the sessions with the newest messages, newest first. Raises InvalidInput, AccessDenied."""
        if not 1 <= limit <= MAX_SESSIONS:
            raise InvalidInput("limit", f"must be between 1 and {MAX_SESSIONS}")
        latest: dict[str, Breadcrumb] = {}
        selector = Selector(schema_name=self._flow.message, tag_prefix=SESSION_TAG)
        cursor = None
        for _ in range(MAX_LOOK // _PAGE):
            page = await self._records.list(selector, by=by, limit=_PAGE, cursor=cursor)
            for each in page.items:
                latest.setdefault(each.session or "", each)
            cursor = page.cursor
            if cursor is None or len(latest) >= limit:
                break
        newest = list(latest.items())[:limit]
        return [await self._info(session, last, by) for session, last in newest]

    async def last_message(self, session: str, *, by: Principal) -> datetime | None:
        """The time of the newest message of a session."""
        selector = Selector(schema_name=self._flow.message, session=session)
        page = await self._records.list(selector, by=by, limit=1)
        return page.items[0].created_at if page.items else None

    async def turns(self, session: str, *, by: Principal, limit: int = 20) -> list[SessionTurn]:
        """The last turns of a session, oldest first. Raises NotFound, InvalidInput."""
        if not 1 <= limit <= MAX_TURNS:
            raise InvalidInput("limit", f"must be between 1 and {MAX_TURNS}")
        await self.first(session, by=by)
        return [self._turn(each) for each in reversed(await self._said(session, limit, by))]

    async def first(self, session: str, *, by: Principal) -> Breadcrumb:
        """The record that began a session: its first message, or the session record written before it. Raises
        NotFound."""
        selector = Selector(schema_names=(self._flow.message, self._flow.session), session=session)
        page = await self._records.list(selector, by=by, limit=1, oldest_first=True)
        if not page.items:
            raise NotFound("session", session[:_NAME])
        return page.items[0]

    async def open_runs(self, session: str, *, by: Principal) -> list[SentMessage]:
        """The runs of the newest messages that have no answer yet, oldest first."""
        said = await self._said(session, _PAGE, by)
        answered = {(find_run(each), find_author(each)) for each in said if each.schema_name == self._flow.answer}
        asked = [sent_message(each) for each in said if each.schema_name == self._flow.message]
        return [each for each in reversed(asked) if not answered & {(each.run, each.agent), (each.run, "")}]

    async def _said(self, session: str, limit: int, by: Principal) -> tuple[Breadcrumb, ...]:
        """Messages and answers, newest first."""
        selector = Selector(schema_names=(self._flow.message, self._flow.answer), session=session)
        return (await self._records.list(selector, by=by, limit=limit)).items

    async def _info(self, session: str, last: Breadcrumb, by: Principal) -> SessionInfo:
        first = await self.first(session, by=by)
        title = str(first.context.get("name") or "") if first.schema_name == self._flow.session else _text_of(first)
        if not title:  # a session record without a name
            selector = Selector(schema_name=self._flow.message, session=session)
            title = _text_of((await self._records.list(selector, by=by, limit=1, oldest_first=True)).items[0])
        return SessionInfo(
            id=session,
            title=title_of(title),
            agent=sent_message(last).agent,
            started_at=first.created_at,
            last_at=last.created_at,
        )

    def _turn(self, found: Breadcrumb) -> SessionTurn:
        is_user = found.schema_name == self._flow.message
        return SessionTurn(
            id=found.id,
            run=find_run(found) or found.id,
            role="user" if is_user else "agent",
            text=_text_of(found),
            status="" if is_user else str(found.context.get("status") or "done"),
            at=found.created_at,
        )


def sent_message(message: Breadcrumb, after: int = 0) -> SentMessage:
    """Return the `SentMessage` of a message that is on the trail."""
    agent = next((tag.removeprefix(CONSUMER_TAG) for tag in message.tags if tag.startswith(CONSUMER_TAG)), "")
    run = find_run(message) or message.id
    return SentMessage(id=message.id, session=message.session or "", run=run, agent=agent, after=after)


def message_draft(flow: Flow, text: str, *, id: str, session: str, agent: str, source: str, place: str = "") -> Draft:
    """The draft of a message for an agent. The message starts a new run, whose tools run at `place` if one is given."""
    return Draft(
        id=id,
        title=title_of(text),
        schema_name=flow.message,
        tags=(
            "chat:input",
            SESSION_TAG + session,
            CONSUMER_TAG + agent,
            run_tag(id),
            *((PLACE_TAG + place,) if place else ()),
        ),
        context={"message": text, "content": text, "source": source},
    )


def title_of(text: str) -> str:
    """The beginning of a message on one line, without invisible characters."""
    line = " ".join(clean(text).split()) or "Message"
    return line if len(line) <= _TITLE else f"{line[: _TITLE - 1]}…"


def _text_of(found: Breadcrumb) -> str:
    value = found.context.get("message") or found.context.get("content")
    return value if isinstance(value, str) else ""
