"""Selection of the items of a context: best first, within the whole budget, each section's share and each item's cap.
Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

SHARES: Mapping[str, float] = {"tools": 0.4, "browser": 0.2, "knowledge": 0.5, "history": 0.4, "message": 0.5}
"""The share of the budget that one section may take."""
SHARE = 0.25
"""The default share of a section."""
ITEM_SHARE = 0.2
"""The share of the budget that one item may take, up to MAX_ITEM tokens. The trigger may take the share of its
section."""
MAX_ITEM = 16_000

Dropped = Mapping[str, str]
"""The reason for each dropped item, by key."""


class ContextCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """An item to choose from. Pinned items are taken before all others."""

    key: str
    section: str
    score: float
    tokens: int
    is_pinned: bool = False


class TokenLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The token limits of a context. `heading` is the number of tokens for the heading of a section."""

    total: int
    heading: int = 0
    shares: Mapping[str, float] = msgspec.field(default_factory=lambda: dict(SHARES))

    def section(self, name: str) -> int:
        return max(0, int(self.total * self.shares.get(name, SHARE)))

    def item(self, section: str, *, is_pinned: bool = False) -> int:
        """Return the token limit of one item in a section."""
        most = max(0, self.section(section) - self.heading)
        return most if is_pinned else min(most, MAX_ITEM, int(self.total * ITEM_SHARE))


class ContextFit(msgspec.Struct, frozen=True, kw_only=True):
    """Return the keys of the chosen items, best first, then the dropped keys with the reason, then the tokens of each
    section."""

    chosen: tuple[str, ...]
    dropped: Dropped
    sections: dict[str, int]

    @property
    def tokens(self) -> int:
        return sum(self.sections.values())


def fit(candidates: Sequence[ContextCandidate], room: TokenLimits) -> ContextFit:
    """Choose greedily by score; equal scores keep their order. The limits of the whole, of each section and of each
    item are never exceeded. Each key is taken once."""
    order = sorted(candidates, key=lambda each: (not each.is_pinned, -each.score))
    chosen: dict[str, None] = {}
    dropped: dict[str, str] = {}
    sections: dict[str, int] = {}
    spent = 0
    for each in order:
        if each.key in chosen:
            continue
        before = sections.get(each.section, 0)
        more = max(0, each.tokens) + (0 if before else room.heading)
        why = _why_not(each, room, spent + more, before + more)
        if why:
            dropped[each.key] = why
            continue
        chosen[each.key] = None
        dropped.pop(each.key, None)
        sections[each.section] = before + more
        spent += more
    return ContextFit(chosen=tuple(chosen), dropped=dropped, sections=sections)


def _why_not(each: ContextCandidate, room: TokenLimits, total: int, section: int) -> str:
    """Return the reason why an item does not fit; empty if it fits."""
    if each.tokens > room.item(each.section, is_pinned=each.is_pinned):
        return f"its {each.tokens:,} tokens exceed the limit for one item"
    if total > room.total:
        return f"its {each.tokens:,} tokens do not fit into the budget of {room.total:,}"
    if section > room.section(each.section):
        return f"its {each.tokens:,} tokens do not fit into the share of {each.section}"
    return ""
