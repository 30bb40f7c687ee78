"""The result of a tool: content for the reader, and guidance to the next tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

MAX_PARAMS = 20_000
"""The limit for the arguments of one next step, in bytes of JSON."""


class Guidance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One next step: a route, when and why to take it, and arguments with known values."""

    route: str
    prose: str
    params: dict[str, Any] | None = None


class GuidedContent(msgspec.Struct, frozen=True, kw_only=True):
    """Markdown, and suggested next steps. A final result has no guidance."""

    content: str
    guidance: Sequence[Guidance] = ()


class ValueContent(GuidedContent, frozen=True, kw_only=True):
    """A JSON value with its text form. Programs use the value."""

    value: Any


def guide(route: str, prose: str, **params: Any) -> Guidance:
    """Build a next step."""
    return Guidance(route=route, prose=prose, params=params or None)


def as_content(value: Any) -> GuidedContent:
    """Convert the result of a tool to guided content. Text stays as it is, other values become a block of JSON.

    Raises TypeError or ValueError for a value that JSON cannot express, for invalid guidance, and for guidance whose
    arguments have more than 20,000 bytes.
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
            raise ValueError(f"the params of a next step have {size:,} bytes, over {MAX_PARAMS:,}: {step.route[:200]}")
    return steps


def _text(content: Any) -> str:
    """Replace lone surrogates, which come from file names that are not UTF-8, so that the text can be sent."""
    if not isinstance(content, str):
        raise TypeError(f"content must be text, not {type(content).__name__}")
    return content if content.isascii() else content.encode(errors="replace").decode()
