"""Renders a breadcrumb for a model: a heading line, then its content in a fence.

The content is data: it can neither close its fence nor begin a section. Only the message of the user who gets the
answer has no fence, because the agent should follow it. It cannot begin a section either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from clew.fences import clean, escape_headings, fenced
from clew.llm.tokens import count_tokens
from clew.trail.model.breadcrumb import Breadcrumb

MAX_TITLE = 120
_LETTERS_A_TOKEN = 8
"""An upper bound for ordinary text. Text beyond it is cut without counting tokens."""
REPEATED = 40
"""The least length of a text that marks two breadcrumbs as duplicates."""
_FOLDED = 20_000
"""The number of characters that the comparison uses."""
_SUMMARIES = ("description", "summary")

_encode = msgspec.json.Encoder(order="deterministic").encode


class Rendered(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a breadcrumb and its tokens. `gist` identifies duplicates. It is the longest text, in lower case and
    without whitespace; if that is short, it is the whole shown text."""

    text: str
    tokens: int
    is_excerpt: bool = False
    gist: str = ""


def render(breadcrumb: Breadcrumb, view: Mapping[str, Any], *, cap: int, is_spoken: bool = False) -> Rendered:
    """Render a breadcrumb within `cap` tokens. A longer one becomes a marked excerpt. If not even the heading fits, the
    text is empty."""
    room = max(0, cap) * _LETTERS_A_TOKEN
    body = clean(_spoken(view, room + 1) if is_spoken else body_of(view, room + 1))
    heading = heading_of(breadcrumb, body)
    gist = _gist(view) or fold(f"{_title(breadcrumb, body)} {body}")
    write = _quoted if is_spoken else _fenced
    whole = write(heading, body)
    tokens = count_tokens(whole)
    if tokens <= cap and len(body) <= room:
        return Rendered(text=whole, tokens=tokens, gist=gist)
    return _excerpt(heading, body, tokens, cap, write, gist)


def _excerpt(heading: str, body: str, tokens: int, cap: int, write: Callable[[str, str], str], gist: str) -> Rendered:
    """Return the longest beginning of the body that fits, found by a few attempts."""
    keep = len(body)
    note = f"{heading} (the beginning)"
    while keep > 0:
        keep = max(0, min(keep - 1, keep * cap // max(tokens, 1) * 95 // 100))
        text = write(note, body[:keep])
        tokens = count_tokens(text)
        if tokens <= cap:
            return Rendered(text=text, tokens=tokens, is_excerpt=True, gist=gist)
    return Rendered(text="", tokens=0, is_excerpt=True, gist=gist)


def _fenced(heading: str, body: str) -> str:
    return f"{heading}\n{fenced(body, '')}"


def _quoted(heading: str, body: str) -> str:
    return f"{heading}\n{escape_headings(body)}"


def _spoken(view: Mapping[str, Any], room: int) -> str:
    """Return the text of a message without its metadata."""
    said = next((view[name] for name in ("message", "content") if isinstance(view.get(name), str)), "")
    return said[:room] or body_of(view, room)


def heading_of(breadcrumb: Breadcrumb, body: str = "") -> str:
    """Return one line: the title unless the body begins with it, the schema and the time."""
    title = _title(breadcrumb, body)
    shown = title if len(title) <= MAX_TITLE else f"{title[:MAX_TITLE]}…"
    facts = f"{breadcrumb.schema_name or 'no schema'}, {breadcrumb.updated_at:%Y-%m-%d %H:%M}"
    return f"{shown} ({facts})" if shown else facts


def _title(breadcrumb: Breadcrumb, body: str) -> str:
    """Return the title on one line; empty if the body begins with it."""
    title = " ".join(clean(breadcrumb.title).split())
    begun = fold(title.rstrip("…"))
    return "" if begun and fold(body[: 4 * len(title)].lstrip("# ")).startswith(begun) else title


def fold(text: str) -> str:
    """Normalise case and whitespace."""
    return " ".join(text[:_FOLDED].casefold().split()) + text[_FOLDED:]


def body_of(view: Mapping[str, Any], room: int) -> str:
    """Convert a view to text of at most `room` characters: a single text as it is, else one line for each field. A text
    under two names appears once; a description that another text contains is left out."""
    fields = dict(_without_repeats(view))
    if len(fields) == 1 and isinstance(alone := next(iter(fields.values())), str):
        return alone[:room]
    lines: list[str] = []
    for name, value in fields.items():
        line = _line(name, value, room)
        lines.append(line)
        room -= len(line) + 1
        if room <= 0:
            break
    return "\n".join(lines)


def _without_repeats(view: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    texts = {name: fold(value) for name, value in view.items() if isinstance(value, str)}
    seen: set[str] = set()
    for name, value in view.items():
        text = texts.get(name)
        if value is None or value in ("", [], {}) or (text is not None and (text in seen or _is_held(name, texts))):
            continue
        if text is not None:
            seen.add(text)
        yield name, value


def _is_held(name: str, texts: Mapping[str, str]) -> bool:
    """Whether another text contains a description."""
    text = texts[name].rstrip(".… ")
    if name not in _SUMMARIES and len(text) < REPEATED:
        return False
    return any(text in other and len(other) > len(texts[name]) for each, other in texts.items() if each != name)


def _line(name: str, value: Any, room: int) -> str:
    if not isinstance(value, str):
        return f"{name}: {_encode(value).decode()}"[: max(room, 0)]
    shown = value[: max(room, 0)]
    return f"{name}:\n{shown}" if "\n" in shown else f"{name}: {shown}"


def _gist(view: Mapping[str, Any]) -> str:
    """Return the longest text of a view, at the top or one level below; empty if it is short."""
    texts = [text for value in view.values() for text in _texts(value)]
    longest = max(texts, key=len, default="")
    return fold(longest) if len(longest) >= REPEATED else ""


def _texts(value: Any) -> Iterator[str]:
    inner = value.values() if isinstance(value, dict) else (value,)
    return (each for each in inner if isinstance(each, str))
