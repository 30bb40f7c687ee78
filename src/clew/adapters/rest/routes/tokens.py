"""Routes that issue tokens."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from clew.access import Principal
from clew.adapters.rest.auth import IssuedToken
from clew.adapters.rest.operation import RequestHeader, RestAnswer, RestCall, RestOperation, reply

Role = Literal["curator", "emitter", "subscriber"]
_NO_STORE = ((b"cache-control", b"no-store"),)


class TokenRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request for a token: the principal and its rights."""

    owner_id: str
    agent_id: str
    roles: Annotated[frozenset[Role], Meta(min_length=1)]
    scopes: Annotated[frozenset[str], Meta(max_length=64)] = frozenset()
    session: Annotated[str, Meta(max_length=200)] | None = None


async def issue_token(call: RestCall) -> RestAnswer:
    asked: TokenRequest = call.body
    principal = Principal(
        owner_id=asked.owner_id,
        agent_id=asked.agent_id,
        roles=frozenset(asked.roles),
        scopes=asked.scopes,
        session=asked.session,
    )
    return reply(call.services.keys.issue(principal), headers=_NO_STORE)


async def issue_stream_token(call: RestCall) -> RestAnswer:
    assert call.caller is not None  # the guard of this route lets nobody else in
    return reply(call.services.keys.issue_for_stream(call.caller), headers=_NO_STORE)


OPERATIONS = (
    RestOperation(
        method="POST",
        path="/auth/token",
        handler=issue_token,
        summary="Issue a token for an owner and agent; needs the credential of this server",
        group="tokens",
        guard="credential",
        body=TokenRequest,
        answer=IssuedToken,
        headers=(
            RequestHeader(
                name="X-Clew-Credential",
                description="The text of the file `credential` in the .clew folder, or send it as Bearer",
            ),
        ),
    ),
    RestOperation(
        method="POST",
        path="/auth/stream-token",
        handler=issue_stream_token,
        summary="Issue a token that opens an event stream, for clients that cannot send a header; it lasts a minute",
        group="tokens",
        verb="subscribe",
        answer=IssuedToken,
    ),
)
