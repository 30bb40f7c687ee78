"""When things of history happened, and which of them are the newest: a changelog need not say the day of a version, and
when its lines were read is not when they happened."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

from clew.knowledge.history.versions import VersionKey, version_key

NEVER = datetime.min.replace(tzinfo=UTC)
CHANGELOG = "changelog"

_NO_VERSION: VersionKey = ((), 0, 0)


class Happened(Protocol):
    """A node or an entry of history."""

    @property
    def id(self) -> str: ...
    @property
    def metadata(self) -> Mapping[str, Any]: ...
    @property
    def timestamp(self) -> datetime | None: ...
    @property
    def created_at(self) -> datetime: ...
    @property
    def path(self) -> str | None: ...
    @property
    def line_start(self) -> int | None: ...


_Any = TypeVar("_Any", bound=Happened)


def happened_at(node: Happened) -> datetime | None:
    """When it happened; None for what a file tells of without a day."""
    return node.timestamp if node.timestamp is not None or "kind" in node.metadata else node.created_at


def is_unreleased(node: Happened) -> bool:
    """Whether it is a line of a changelog that no version has yet."""
    told = node.metadata
    return told.get("kind") == CHANGELOG and not told.get("version") and not told.get("day")


def newest_first(nodes: Iterable[_Any]) -> list[_Any]:
    """What is not released yet, then by when it happened. A version without a day is at least as new as what stands
    below it in its file; versions of no known time come last, the highest first. Lines of one version keep the order
    of their file."""
    known = list(nodes)
    since = _at_least(known)
    in_file = sorted(known, key=lambda node: (node.path or "", node.line_start or 0))
    return sorted(
        in_file, key=lambda node: (is_unreleased(node), since.get(node.id, NEVER), _version(node)), reverse=True
    )


def _at_least(nodes: Sequence[Happened]) -> dict[str, datetime]:
    """The time since which each is known, by its id: its own, or the latest of what stands below it in its file."""
    found = {node.id: at for node in nodes if (at := happened_at(node)) is not None}
    latest: dict[str, datetime] = {}
    for node in sorted(nodes, key=lambda each: -(each.line_start or 0)):
        path = node.path or ""
        if node.id not in found and node.metadata.get("kind") == CHANGELOG and path in latest:
            found[node.id] = latest[path]
        elif node.id in found:
            latest[path] = max(latest.get(path, NEVER), found[node.id])
    return found


def _version(node: Happened) -> VersionKey:
    return version_key(str(node.metadata.get("version", ""))) or _NO_VERSION
