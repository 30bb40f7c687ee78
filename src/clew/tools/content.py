"""What a tool gives back: content for the reader, and guidance to what it can do next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec


class Guidance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One next step: a route, when and why to take it, and arguments that are filled in already."""

    route: str
    prose: str
    params: dict[str, Any] | None = None


class GuidedContent(msgspec.Struct, frozen=True, kw_only=True):
    """Markdown, and the next steps that this very result suggests. A tool that ends a path gives no guidance."""

    content: str
    guidance: Sequence[Guidance] = ()


def guide(route: str, prose: str, **params: Any) -> Guidance:
    """A next step in short."""
    return Guidance(route=route, prose=prose, params=params or None)


def as_content(value: Any) -> GuidedContent:
    """What a tool returned as guided content: text as it is, other values as a block of JSON.

    Raises TypeError for a value that JSON cannot hold.
    """
    if isinstance(value, GuidedContent):
        return value
    if isinstance(value, str):
        return GuidedContent(content=value)
    if value is None:
        return GuidedContent(content="")
    shown = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return GuidedContent(content=f"```json\n{shown}\n```")
