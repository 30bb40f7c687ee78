"""The client: one method for each operation on a trail."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx2
import msgspec

from clew.access import ROLES, Principal
from clew.client.connection import Connection
from clew.client.stream import StreamEvent, follow
from clew.errors import Conflict
from clew.tls import tls_context
from clew.trail.model.breadcrumb import Breadcrumb, Change, Draft, Page, View
from clew.trail.model.query import SearchRequest, SearchResult
from clew.trail.model.selector import EVERYTHING, Selector

EDIT_ATTEMPTS = 10
PAGE = 200

_breadcrumb = msgspec.json.Decoder(Breadcrumb).decode
_view = msgspec.json.Decoder(View).decode
_page = msgspec.json.Decoder(Page).decode
_result = msgspec.json.Decoder(SearchResult).decode


class _WrittenRecord(msgspec.Struct):
    items: list[Breadcrumb]


_written = msgspec.json.Decoder(_WrittenRecord).decode


class Client:
    """A trail behind a URL, as one principal. Use it as `async with Client(...) as client`.

    With a `credential` it gets and renews its own tokens; with only a `token` it works until that expires.
    Methods raise the errors of `clew.errors` that the server raised, and ClewError when no server answers.
    """

    def __init__(
        self,
        base_url: str,
        *,
        credential: str | None = None,
        owner_id: str = "local",
        agent_id: str = "client",
        roles: Iterable[str] = ROLES,
        scopes: Iterable[str] = (),
        session: str | None = None,
        token: str | None = None,
        timeout: float = 30.0,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        principal = Principal(
            owner_id=owner_id,
            agent_id=agent_id,
            roles=frozenset(roles),
            scopes=frozenset(scopes),
            session=session,
        )
        http = httpx2.AsyncClient(base_url=base_url, timeout=timeout, verify=tls_context(trust_env=True))
        self._connection = Connection(http, principal, credential=credential, token=token)
        self._jitter = jitter

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections. Calling it twice is harmless."""
        await self._connection.close()

    async def create(self, draft: Draft) -> Breadcrumb:
        """Write a breadcrumb. It is durable when this returns."""
        return _breadcrumb(await self._connection.send("POST", "/breadcrumbs", body=draft))

    async def create_many(self, drafts: Sequence[Draft]) -> tuple[Breadcrumb, ...]:
        """Write all in one transaction, in order, or none."""
        body = {"items": list(drafts)}
        return tuple(_written(await self._connection.send("POST", "/breadcrumbs/batch", body=body)).items)

    async def get(self, id: str) -> View:
        """Return a breadcrumb for a model, with its llm_hints applied."""
        return _view(await self._connection.send("GET", _path(id)))

    async def get_full(self, id: str, *, vector: bool = False) -> Breadcrumb:
        """Return a breadcrumb as stored, with its embedding if `vector` is set."""
        params = (("vector", "true"),) if vector else ()
        return _breadcrumb(await self._connection.send("GET", f"{_path(id)}/full", params=params))

    async def update(self, id: str, change: Change, *, expect: int) -> Breadcrumb:
        """Write the next version. Raises Conflict when the current version is not `expect`."""
        headers = {"if-match": f'"{expect}"'}
        return _breadcrumb(await self._connection.send("PATCH", _path(id), headers=headers, body=change))

    async def edit(self, id: str, merge: Callable[[Breadcrumb], Change]) -> Breadcrumb:
        """Read a breadcrumb, call `merge` for the change, and write it. After a conflict, start again. Raises Conflict
        after ten attempts."""
        for attempt in range(1, EDIT_ATTEMPTS):
            found = await self.get_full(id)
            try:
                return await self.update(id, merge(found), expect=found.version)
            except Conflict:
                await asyncio.sleep(0.01 * attempt * self._jitter())
        found = await self.get_full(id)
        return await self.update(id, merge(found), expect=found.version)

    async def delete(self, id: str, *, expect: int | None = None) -> None:
        """Remove a breadcrumb. Raises Conflict when `expect` is given and is not its version."""
        headers = {"if-match": f'"{expect}"'} if expect is not None else {}
        await self._connection.send("DELETE", _path(id), headers=headers)

    async def list(
        self, selector: Selector = EVERYTHING, *, oldest_first: bool = False, page_size: int = PAGE
    ) -> AsyncGenerator[Breadcrumb, None]:
        """Iterate over all matching breadcrumbs, newest first. Pages are read on demand."""
        params = [*selector_params(selector), ("limit", str(page_size))]
        params += [("order", "oldest")] if oldest_first else []
        cursor: tuple[tuple[str, str], ...] = ()
        while True:
            page = _page(await self._connection.send("GET", "/breadcrumbs", params=(*params, *cursor)))
            for item in page.items:
                yield item
            if page.cursor is None:
                return
            cursor = (("cursor", page.cursor),)

    async def search(self, request: SearchRequest | str) -> SearchResult:
        """Return the best breadcrumbs for a request, or for a text with the default ranking."""
        body = SearchRequest(text=request) if isinstance(request, str) else request
        return _result(await self._connection.send("POST", "/breadcrumbs/search", body=body))

    def events(self, selector: Selector = EVERYTHING, *, after: int | None = None) -> AsyncGenerator[StreamEvent, None]:
        """Iterate over changes without end, each once and in order. Reconnects after lost connections and restarts.

        Starts after the event `after`, or with the next event. Close it with `aclose` when leaving early. Raises errors
        that a retry would not solve.
        """
        return follow(self._connection, selector_params(selector), after, self._jitter)


def selector_params(selector: Selector) -> tuple[tuple[str, str], ...]:
    """Convert a selector to query parameters."""
    many = (("schema_name", selector.schemas), ("any_tags", selector.any_tags), ("tag", selector.all_tags))
    params = [(name, value) for name, values in many for value in values]
    for name in ("tag_prefix", "session", "created_after", "created_before", "path"):
        value: Any = getattr(selector, name)
        if value is not None:
            params.append((name, value if isinstance(value, str) else value.isoformat()))
    params += [("context_match", msgspec.json.encode(each).decode()) for each in selector.context_match]
    return tuple(params)


def _path(id: str) -> str:
    return f"/breadcrumbs/{quote(id, safe='')}"
