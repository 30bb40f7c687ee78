"""Routes for the curator of an owner: hygiene and secrets. No route returns the value of a secret."""

from __future__ import annotations

import msgspec

from clew.adapters.rest.operation import EmptyReply, RestAnswer, RestCall, RestOperation, reply
from clew.errors import AccessDenied
from clew.trail.store import HygieneStats, Purged


class SecretValue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The value of a secret. It can be written, but never read."""

    value: str


class SecretNames(msgspec.Struct, frozen=True, kw_only=True):
    """The names of the owner's secrets."""

    items: list[str]


async def run_hygiene(call: RestCall) -> RestAnswer:
    _require_operator(call)
    return reply(await call.services.hygiene.run())


async def get_hygiene_stats(call: RestCall) -> RestAnswer:
    _require_operator(call)
    return reply(call.services.hygiene.stats())


def _require_operator(call: RestCall) -> None:
    """Raise AccessDenied unless the caller belongs to the server's own owner, because the sweeper handles the records
    of all owners, and its counts include them."""
    if call.by.owner_id != call.services.operator:
        raise AccessDenied("run hygiene", [f"curator of {call.services.operator}"])


async def put_secret(call: RestCall) -> RestAnswer:
    await call.trail.secrets.put(call.path["name"], call.body.value, by=call.by)
    return EmptyReply()


async def list_secrets(call: RestCall) -> RestAnswer:
    return reply(SecretNames(items=await call.trail.secrets.names(by=call.by)))


async def drop_secret(call: RestCall) -> RestAnswer:
    await call.trail.secrets.drop(call.path["name"], by=call.by)
    return EmptyReply()


OPERATIONS = (
    RestOperation(
        method="POST",
        path="/hygiene/run",
        handler=run_hygiene,
        summary="Remove what has expired, now",
        group="hygiene",
        verb="administer",
        writes=True,
        answer=Purged,
    ),
    RestOperation(
        method="GET",
        path="/hygiene/stats",
        handler=get_hygiene_stats,
        summary="Statistics of the hygiene runs of this process",
        group="hygiene",
        verb="administer",
        answer=HygieneStats,
    ),
    RestOperation(
        method="GET",
        path="/secrets",
        handler=list_secrets,
        summary="List the names of secrets",
        group="secrets",
        verb="administer",
        answer=SecretNames,
    ),
    RestOperation(
        method="PUT",
        path="/secrets/{name}",
        handler=put_secret,
        summary="Write a secret; breadcrumbs refer to it by name, and no read returns it",
        group="secrets",
        verb="administer",
        writes=True,
        body=SecretValue,
        status=204,
    ),
    RestOperation(
        method="DELETE",
        path="/secrets/{name}",
        handler=drop_secret,
        summary="Remove a secret",
        group="secrets",
        verb="administer",
        writes=True,
        status=204,
    ),
)
