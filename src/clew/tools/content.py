"""The result of a tool: content for the reader, and guidance to the next tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

MAX_PARAMS = 20_000
"""Bytes of JSON that the arguments of one next step may take."""


class Guidance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One next step: a route, when and why to take it, and arguments that are filled in already."""

    route: str
    prose: str
    params: dict[str, Any] | None = None


class GuidedContent(msgspec.Struct, frozen=True, kw_only=True):
    """Markdown, and the next steps that this very result suggests. A tool that ends a path gives no guidance."""

    content: str
    guidance: Sequence[Guidance] = ()


class ValueContent(GuidedContent, frozen=True, kw_only=True):
    """A value that is not text, with the text that shows it. Programs use the value."""

    value: Any


def guide(route: str, prose: str, **params: Any) -> Guidance:
    """A next step in short."""
    return Guidance(route=route, prose=prose, params=params or None)


def as_content(value: Any) -> GuidedContent:
    """The result of a tool as guided content that every door can send: text as it is, other values as a block of JSON,
    arguments that are filled in as JSON.

    Raises TypeError or ValueError for a value that JSON cannot hold, for guidance that is none, and for guidance whose
    arguments take over 20,000 bytes.
    """
    if isinstance(value, GuidedContent):
        guidance = _steps(value.guidance) if value.guidance != () else ()
        return GuidedContent(content=_text(value.content), guidance=guidance)
    if isinstance(value, str):
        return GuidedContent(content=_text(value))
    if value is None:
        return GuidedContent(content="")
    encoded = msgspec.json.encode(value)
    shown = msgspec.json.format(encoded, indent=2).decode()
    return ValueContent(content=f"```json\n{shown}\n```", value=msgspec.json.decode(encoded))


_STEPS = msgspec.json.Decoder(list[Guidance])


def _steps(guidance: Any) -> list[Guidance]:
    steps = _STEPS.decode(msgspec.json.encode(guidance))
    for step in steps:
        if step.params and (size := len(msgspec.json.encode(step.params))) > MAX_PARAMS:
            raise ValueError(f"the params of a next step take {size:,} bytes, over {MAX_PARAMS:,}: {step.route[:200]}")
    return steps


def _text(content: Any) -> str:
    """Text that can be sent: halves of characters, as odd file names hold them, are replaced."""
    if not isinstance(content, str):
        raise TypeError(f"content is text, not {type(content).__name__}")
    return content if content.isascii() else content.encode(errors="replace").decode()
