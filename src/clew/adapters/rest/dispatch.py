"""From a path to its endpoint: exact paths in a dictionary, the others by pattern."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from starlette.types import ASGIApp, Receive, Scope, Send

from clew.adapters.rest.advice import advise_path
from clew.adapters.rest.errors import NoSuchPath

_PARAMETER = re.compile(r"\{(\w+)\}")


class Dispatcher:
    """An ASGI application that calls the endpoint of a path. Raises NoSuchPath for an unknown path.

    A parameter is one part of a path. Only `name` may contain slashes; it is always the last part.
    """

    def __init__(self, endpoints: Mapping[str, ASGIApp]) -> None:
        self._exact = {path: endpoint for path, endpoint in endpoints.items() if "{" not in path}
        self._patterns: dict[str, list[tuple[re.Pattern[str], ASGIApp]]] = {}
        for path, endpoint in endpoints.items():
            if "{" in path:
                self._patterns.setdefault(_first_part(path), []).append((_compile(path), endpoint))
        self._paths = tuple(endpoints)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path: str = scope["path"]
        endpoint = self._exact.get(path)
        scope["path_params"] = {}
        if endpoint is None:
            endpoint = self._match(path, scope)
        await endpoint(scope, receive, send)

    def _match(self, path: str, scope: Scope) -> ASGIApp:
        for pattern, endpoint in self._patterns.get(_first_part(path), ()):
            found = pattern.fullmatch(path)
            if found is not None:
                scope["path_params"] = found.groupdict()
                return endpoint
        raise NoSuchPath(advise_path(path, self._paths))


def _first_part(path: str) -> str:
    return path[1:].partition("/")[0]


def _compile(path: str) -> re.Pattern[str]:
    parts: Sequence[str] = _PARAMETER.split(path)
    return re.compile("".join(_pattern_parts(parts)), re.DOTALL)


def _pattern_parts(parts: Iterable[str]) -> Iterable[str]:
    for at, part in enumerate(parts):
        if at % 2 == 0:
            yield re.escape(part)
        else:
            yield f"(?P<{part}>.*)" if part == "name" else f"(?P<{part}>[^/]+)"
