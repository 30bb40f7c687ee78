"""Cleans incoming listings before the SDK validates them, since the SDK would reject a whole list for one bad entry.
Invalid entries are dropped and recorded, and an oversized list is truncated."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

import msgspec

from clew.catalog.servers.connections.server_errors import Faults

if TYPE_CHECKING:
    from mcp.client._transport import ReadStream
    from mcp.shared.message import SessionMessage

MAX_ENTRIES = 2_000
MAX_ENTRY = 100_000
"""The most entries of one kind that a server may have, and the most bytes of one."""

_NAMES = {"tools": "name", "prompts": "name", "resources": "uri", "resourceTemplates": "uriTemplate"}
_SCHEMAS = ("inputSchema", "outputSchema")


class TidyStream:
    """A stream of messages with tidy listings."""

    def __init__(self, inner: ReadStream[SessionMessage | Exception], faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    async def receive(self) -> SessionMessage | Exception:
        return self._tidy(await self._inner.receive())

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> TidyStream:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return self._tidy(await self._inner.__anext__())

    async def __aenter__(self) -> TidyStream:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    def _tidy(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        result = getattr(getattr(item, "message", None), "result", None)
        if isinstance(result, dict):
            tidy_result(result, self._faults)
        return item


def tidy_result(result: dict[str, Any], faults: Faults) -> None:
    """Change the lists of a result in place."""
    for kind in _NAMES.keys() & result.keys():
        entries = result[kind]
        if not isinstance(entries, list):
            faults.drop(f"its {kind} are not a list")
            result[kind] = []
            continue
        if len(entries) > MAX_ENTRIES:
            faults.drop(f"{len(entries) - MAX_ENTRIES:,} {kind} past the first {MAX_ENTRIES:,}")
        result[kind] = [entry for entry in entries[:MAX_ENTRIES] if _is_good(entry, kind, faults)]


def _is_good(entry: Any, kind: str, faults: Faults) -> bool:
    name = entry.get(_NAMES[kind]) if isinstance(entry, dict) else None
    if not isinstance(name, str) or not name.strip() or len(name) > 1_000:
        faults.drop(f"one of its {kind} has no name")
        return False
    if (size := len(msgspec.json.encode(entry))) > MAX_ENTRY:
        faults.drop(f"{name[:80]} of its {kind} takes {size:,} bytes, over the limit of {MAX_ENTRY:,}")
        return False
    for key in ("description", "title"):
        if not isinstance(entry.get(key, ""), str):
            del entry[key]
    if kind != "tools":
        return True
    for key in _SCHEMAS:
        if isinstance(schema := entry.get(key), dict):
            schema.setdefault("type", "object")
    if not _is_object(entry.get("outputSchema")):
        entry.pop("outputSchema", None)
    if not _is_object(entry.get("inputSchema")):
        faults.drop(f"the schema of its tool {name[:80]} is not that of an object")
        return False
    return True


def _is_object(schema: Any) -> bool:
    """Whether a schema describes an object, as far as the protocol's own rules require."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return False
    properties, required = schema.get("properties", {}), schema.get("required", [])
    return (
        isinstance(properties, dict)
        and all(isinstance(each, dict | bool) for each in properties.values())
        and isinstance(required, list)
        and all(isinstance(each, str) for each in required)
        and isinstance(schema.get("$schema", ""), str)
    )
