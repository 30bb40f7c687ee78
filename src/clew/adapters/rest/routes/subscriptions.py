"""Routes of subscriptions and of the dead letters that they leave behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from clew.access import HEARTBEAT_CONSUMERS, OWN_CONSUMERS
from clew.adapters.rest.operation import EmptyReply, RestAnswer, RestCall, RestOperation, reply
from clew.errors import AccessDenied, AlreadyExists, NotFound
from clew.trail.model.event import Consumer, ConsumerState, DeadLetter


class SubscriptionList(msgspec.Struct, frozen=True, kw_only=True):
    """The owner's subscriptions by name, each with its position in the log."""

    items: list[ConsumerState]


class DeadLetterList(msgspec.Struct, frozen=True, kw_only=True):
    """Events that a subscription gave up on, oldest first."""

    items: Sequence[DeadLetter]


class DeadLetterQuery(msgspec.Struct, frozen=True, kw_only=True):
    subscription: Annotated[str | None, Meta(description="Only those of this subscription")] = None
    limit: Annotated[int, Meta(ge=1, le=1_000, description="At most this many")] = 100


async def list_subscriptions(call: RestCall) -> RestAnswer:
    found = await call.trail.deliveries.consumers(by=call.by)
    return reply(
        SubscriptionList(items=[each for each in found if not each.consumer.name.startswith(HEARTBEAT_CONSUMERS)])
    )


async def subscribe(call: RestCall) -> RestAnswer:
    from clew.trail.work.webhooks import register_webhook  # loads httpx2, which a start without webhooks does not pay

    consumer: Consumer = call.body
    consumer = msgspec.structs.replace(consumer, retry=consumer.retry_policy)
    _refuse_own(consumer.name)
    if consumer.webhook is None:
        state = await call.trail.deliveries.register(consumer, by=call.by)
    else:
        allow = call.services.allow_networks
        state = await register_webhook(call.trail, consumer, by=call.by, allow=allow)
    call.services.refresh_webhooks()
    return reply(state, status=201)


async def unsubscribe(call: RestCall) -> RestAnswer:
    _refuse_own(call.path["name"])
    await call.trail.deliveries.unregister(call.path["name"], by=call.by)
    call.services.refresh_webhooks()
    return EmptyReply()


def _refuse_own(name: str) -> None:
    """Raise AccessDenied for the consumers with which Clew runs agents, because no caller over REST may change them."""
    if name.startswith(OWN_CONSUMERS):
        error = AccessDenied(f"change {name}, which is Clew's own", [])
        error.hint = "Choose another name for a subscription of yours"
        raise error


async def list_dead_letters(call: RestCall) -> RestAnswer:
    asked: DeadLetterQuery = call.query
    found = await call.trail.dead_letters.list(by=call.by, consumer=asked.subscription, limit=asked.limit)
    return reply(DeadLetterList(items=found))


async def retry(call: RestCall) -> RestAnswer:
    await call.trail.dead_letters.replay(call.path["id"], by=call.by)
    call.services.refresh_webhooks()
    return EmptyReply(status=202)


async def drop(call: RestCall) -> RestAnswer:
    await call.trail.dead_letters.drop(call.path["id"], by=call.by)
    return EmptyReply()


OPERATIONS = (
    RestOperation(
        method="GET",
        path="/subscriptions",
        handler=list_subscriptions,
        summary="List subscriptions",
        group="subscriptions",
        verb="subscribe",
        answer=SubscriptionList,
    ),
    RestOperation(
        method="POST",
        path="/subscriptions",
        handler=subscribe,
        summary="Create a subscription or change it; with a webhook, its events are posted there, signed",
        group="subscriptions",
        verb="subscribe",
        writes=True,
        body=Consumer,
        answer=ConsumerState,
        status=201,
        raises=(NotFound, AlreadyExists),
    ),
    RestOperation(
        method="DELETE",
        path="/subscriptions/{name}",
        handler=unsubscribe,
        summary="Forget a subscription and what it had pending",
        group="subscriptions",
        verb="subscribe",
        writes=True,
        status=204,
    ),
    RestOperation(
        method="GET",
        path="/dlq",
        handler=list_dead_letters,
        summary="List dead letters",
        group="subscriptions",
        verb="administer",
        query=DeadLetterQuery,
        answer=DeadLetterList,
    ),
    RestOperation(
        method="POST",
        path="/dlq/{id}/retry",
        handler=retry,
        summary="Make a dead letter pending again, with all its attempts",
        group="subscriptions",
        verb="administer",
        writes=True,
        status=202,
    ),
    RestOperation(
        method="DELETE",
        path="/dlq/{id}",
        handler=drop,
        summary="Forget a dead letter",
        group="subscriptions",
        verb="administer",
        writes=True,
        status=204,
    ),
)
