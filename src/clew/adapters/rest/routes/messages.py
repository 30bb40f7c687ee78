"""Messages of the team over REST. `/events/stream?schema_name=team.message.v1&session=ID` sends them live."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from clew.adapters.rest.operation import RestAnswer, RestCall, RestOperation, reply
from clew.adapters.rest.routes.plans import open_team
from clew.errors import AccessDenied, NotFound
from clew.team.messages.message import TeamMessage


class MessagesQuery(msgspec.Struct, frozen=True, kw_only=True):
    limit: Annotated[int, Meta(ge=1, le=10_000, description="The maximum number; the newest are returned")] = 1_000


class MessageList(msgspec.Struct, frozen=True, kw_only=True):
    """Messages of a session, oldest first."""

    items: Sequence[TeamMessage]


async def list_messages(call: RestCall) -> RestAnswer:
    team = await open_team(call)
    return reply(MessageList(items=await team.log(call.path["session"], by=call.by, limit=call.query.limit)))


OPERATIONS = (
    RestOperation(
        method="GET",
        path="/messages/{session}",
        handler=list_messages,
        summary="The messages of the team in a session, oldest first",
        group="team",
        verb="read",
        query=MessagesQuery,
        answer=MessageList,
        raises=(AccessDenied, NotFound),
    ),
)
