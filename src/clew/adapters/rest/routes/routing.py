"""Routing over REST: the agent that takes a message."""

from __future__ import annotations

import msgspec

from clew.adapters.rest.operation import RestAnswer, RestCall, RestOperation, reply
from clew.errors import InvalidInput
from clew.team.route import MessageRoute


class RoutedMessage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message of the user. `talking_to` is the agent who answered last, empty at the beginning of a conversation."""

    message: str
    talking_to: str = ""


async def route(call: RestCall) -> RestAnswer:
    asked: RoutedMessage = call.body
    return reply(
        await call.services.router.route(asked.message, talking_to=asked.talking_to, owner=call.by.owner_id),
    )


OPERATIONS = (
    RestOperation(
        method="POST",
        path="/route",
        handler=route,
        summary="Decide who takes a message, and how sure that is",
        group="chat",
        verb="create",
        writes=True,
        body=RoutedMessage,
        answer=MessageRoute,
        raises=(InvalidInput,),
    ),
)
