"""An authenticated connection to a server. It gets a token, and renews it when the server refuses it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import msgspec

from clew.access import Principal
from clew.client.failures import error_of
from clew.errors import ClewError, NotAuthenticated

Parameters = Sequence[tuple[str, str]]


class Connection:
    """Sends requests with a token. With a credential it gets the token, and renews it once per request on 401."""

    def __init__(
        self, http: httpx2.AsyncClient, principal: Principal, *, credential: str | None, token: str | None
    ) -> None:
        self._http = http
        self._principal = principal
        self._credential = credential
        self._token = token
        self._renewing = asyncio.Lock()

    async def close(self) -> None:
        await self._http.aclose()

    async def send(
        self,
        method: str,
        path: str,
        *,
        params: Parameters = (),
        headers: Mapping[str, str] | None = None,
        body: Any = None,
    ) -> bytes:
        """Send a request and return the body of the response. Raises the server's error, or ClewError when no server
        answers."""
        content = msgspec.json.encode(body) if body is not None else None
        extra = {**(headers or {}), **({"content-type": "application/json"} if content is not None else {})}
        try:
            token = self._token or await self.renew(None)
            response = await self._try(method, path, params, extra, content, token)
            if response.status_code == 401 and self._credential is not None:
                token = await self.renew(token)
                response = await self._try(method, path, params, extra, content, token)
        except httpx2.TransportError as error:
            reason = str(error) or type(error).__name__
            raise ClewError(
                f"no answer from {self._http.base_url}: {reason}", hint="Is `clew up` running there?"
            ) from error
        if response.status_code >= 400:
            raise error_of(response.status_code, response.content)
        return response.content

    @asynccontextmanager
    async def stream(
        self, path: str, *, params: Parameters, headers: Mapping[str, str], timeout: float
    ) -> AsyncIterator[httpx2.Response]:
        """Yield a streaming response. A refused token is renewed for the next attempt.

        Raises httpx2.HTTPError for temporary errors, the server's error for permanent ones.
        """
        token = self._token or await self.renew(None)
        request = self._http.build_request(
            "GET",
            path,
            params=list(params),
            headers={**headers, "authorization": f"Bearer {token}"},
            timeout=httpx2.Timeout(timeout),
        )
        response = await self._http.send(request, stream=True)
        try:
            if response.status_code == 401 and self._credential is not None:
                await self.renew(token)
            if response.status_code >= 500:
                response.raise_for_status()
            if response.status_code >= 400:
                raise error_of(response.status_code, await response.aread())
            yield response
        finally:
            await response.aclose()

    @property
    def can_renew(self) -> bool:
        return self._credential is not None

    async def renew(self, refused: str | None) -> str:
        """Return a token other than the refused one. Concurrent callers share one new token."""
        async with self._renewing:
            if self._token is not None and self._token != refused:
                return self._token
            if self._credential is None:
                raise NotAuthenticated("there is neither a token nor a credential to get one")
            self._token = await self._issue(self._credential)
            return self._token

    async def _issue(self, credential: str) -> str:
        by = self._principal
        body = {
            "owner_id": by.owner_id,
            "agent_id": by.agent_id,
            "roles": sorted(by.roles),
            "scopes": sorted(by.scopes),
            **({"session": by.session} if by.session is not None else {}),
        }
        headers = {"x-clew-credential": credential, "content-type": "application/json"}
        response = await self._try("POST", "/auth/token", (), headers, msgspec.json.encode(body), None)
        if response.status_code >= 400:
            raise error_of(response.status_code, response.content)
        return str(msgspec.json.decode(response.content)["token"])

    async def _try(
        self,
        method: str,
        path: str,
        params: Parameters,
        headers: Mapping[str, str],
        content: bytes | None,
        token: str | None,
    ) -> httpx2.Response:
        sent = {**headers, **({"authorization": f"Bearer {token}"} if token is not None else {})}
        return await self._http.request(method, path, params=list(params), headers=sent, content=content)
