"""Build one text from scored parts: sections within a budget, and a reason for each part left out. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from clew.context.receipts import MAX_DROPPED, DroppedItem, ReceiptItem
from clew.context.rendering import REPEATED, Rendered
from clew.context.sections import HISTORY, NUMBER_TOKENS, compose, ordered
from clew.context.selection import ContextCandidate, ContextFit, TokenLimits, fit
from clew.llm.tokens import count_tokens
from clew.trail.model.breadcrumb import Breadcrumb

_RANK = {"trigger": 0, "always": 1, "session": 2}
"""If two parts have the same text, the one with the lower rank stays; at equal ranks, the one with the higher score."""


class ContextPart(msgspec.Struct, frozen=True, kw_only=True):
    """A rendered breadcrumb that is a candidate for a context. `repeats` is the id of a breadcrumb with the same
    text."""

    breadcrumb: Breadcrumb
    origin: str
    reason: str
    score: float
    section: str
    rendered: Rendered
    repeats: str = ""
    hops: int = 0
    path: tuple[str, ...] = ()


class AssembledContext(msgspec.Struct, frozen=True, kw_only=True):
    """A text within its budget, the items in it, and the items left out. `tokens` is the tokenizer's count. `read` are
    the breadcrumbs that the text shows."""

    text: str
    tokens: int
    items: tuple[ReceiptItem, ...]
    dropped: tuple[DroppedItem, ...]
    more_dropped: int
    sections: dict[str, int]
    read: tuple[Breadcrumb, ...]


def assemble(parts: Sequence[ContextPart], room: TokenLimits) -> AssembledContext:
    """Return the best parts that fit. Empty parts, and parts with the same text as a better one, are left out."""
    by_id = {part.breadcrumb.id: part for part in parts}
    candidates, dropped = _candidates(parts)
    while True:
        found = fit(candidates, room)
        shown = _in_sections([by_id[key] for key in found.chosen])
        text = compose({name: [part.rendered.text for part in each] for name, each in shown.items()})
        tokens = count_tokens(text)
        if tokens <= room.total or not found.chosen:
            return _assembled(text, tokens, shown, found, {**dropped, **found.dropped}, by_id)
        # the whole may have a few tokens more than its parts: drop the last item, and try again
        last = found.chosen[-1]
        dropped[last] = "the complete text has more tokens than the budget"
        candidates = [each for each in candidates if each.key != last]


def _candidates(parts: Sequence[ContextPart]) -> tuple[list[ContextCandidate], dict[str, str]]:
    """Return the parts that may be shown, and the reasons for the others."""
    best = sorted(parts, key=lambda part: (_RANK.get(part.origin, len(_RANK)), -part.score))
    candidates: list[ContextCandidate] = []
    dropped: dict[str, str] = {}
    said: dict[str, str] = {}
    for part in best:
        id, gist = part.breadcrumb.id, part.rendered.gist
        same = part.repeats or said.get(gist, "")
        if not part.rendered.text:
            dropped[id] = "its heading alone exceeds the limit for one item"
        elif same and _may_go(part):
            dropped[id] = f"has the same text as {same}"
        else:
            said.update({gist: id} if gist and gist not in said else {})
            candidates.append(_candidate(part))
    return candidates, dropped


def _may_go(part: ContextPart) -> bool:
    """Whether a duplicate may be left out. Short lines of a conversation stay, however often they occur."""
    if part.origin == "session":
        return len(part.rendered.gist) >= REPEATED
    return part.origin not in ("trigger", "always")


def _candidate(part: ContextPart) -> ContextCandidate:
    return ContextCandidate(
        key=part.breadcrumb.id,
        section=part.section,
        score=part.score,
        tokens=part.rendered.tokens + NUMBER_TOKENS,
        is_pinned=part.origin == "trigger",
    )


def _in_sections(parts: Sequence[ContextPart]) -> dict[str, list[ContextPart]]:
    """Group the parts by section: the history by time, fixed items in their order, others best first."""
    shown: dict[str, list[ContextPart]] = {}
    for part in parts:
        shown.setdefault(part.section, []).append(part)
    for name, each in shown.items():
        if name == HISTORY:
            each.sort(key=lambda part: (part.breadcrumb.created_at, part.breadcrumb.id))
    return {name: shown[name] for name in ordered(shown)}


def _assembled(
    text: str,
    tokens: int,
    shown: dict[str, list[ContextPart]],
    found: ContextFit,
    dropped: dict[str, str],
    by_id: dict[str, ContextPart],
) -> AssembledContext:
    listed = [_dropped(by_id[id], why) for id, why in dropped.items()]
    best = sorted(listed, key=lambda each: (-each.score, each.id))
    return AssembledContext(
        text=text,
        tokens=tokens,
        items=tuple(_item(part) for each in shown.values() for part in each),
        dropped=tuple(best[:MAX_DROPPED]),
        more_dropped=max(0, len(best) - MAX_DROPPED),
        sections={name: found.sections[name] for name in shown},
        read=tuple(part.breadcrumb for each in shown.values() for part in each),
    )


def _item(part: ContextPart) -> ReceiptItem:
    return ReceiptItem(
        id=part.breadcrumb.id,
        version=part.breadcrumb.version,
        schema_name=part.breadcrumb.schema_name,
        origin=part.origin,
        reason=part.reason,
        score=round(part.score, 4),
        tokens=part.rendered.tokens,
        section=part.section,
        hops=part.hops,
        path=part.path,
        excerpt=part.rendered.is_excerpt,
    )


def _dropped(part: ContextPart, why: str) -> DroppedItem:
    return DroppedItem(
        id=part.breadcrumb.id,
        version=part.breadcrumb.version,
        origin=part.origin,
        score=round(part.score, 4),
        tokens=part.rendered.tokens,
        why=why,
    )
