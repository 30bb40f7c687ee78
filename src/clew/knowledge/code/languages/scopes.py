"""The parts of a file that have names of their own, and what stands before a definition."""

from __future__ import annotations

from typing import Literal, NamedTuple

Role = Literal["module", "class", "function"]
Carried = dict[bytes, list[tuple[bytes, str, int]]]
"""Uses that are not bound where they stand, by the first part of the name."""


class Scope:
    """A part of a file with names of its own. `calls` has all rows of what is called here, `uses` the first
    row of what is named."""

    __slots__ = ("bound", "calls", "carried", "end", "name", "role", "uses")

    def __init__(self, name: str, end: int, role: Role, calls: dict[bytes, list[int]]) -> None:
        self.name = name
        self.end = end
        self.role: Role = role
        self.calls = calls
        self.uses: dict[bytes, int] = {}
        self.bound: set[bytes] = set()
        self.carried: Carried = {}
        """What the scopes below left."""

    def take_over(self, carried: Carried) -> None:
        """What a scope below leaves, the smaller into the larger: deep nesting stays cheap."""
        small, large = sorted((self.carried, carried), key=len)
        for head, uses in small.items():
            if head in large and len(large[head]) < len(uses):
                large[head], uses = uses, large[head]
            large.setdefault(head, []).extend(uses)
        self.carried = large


class Lead(NamedTuple):
    """Decorators before a definition, outside of its node."""

    first_row: int
    last_row: int
    targets: list[tuple[bytes, int]]


class Comment(NamedTuple):
    """Lines of comment without a gap."""

    first_row: int
    last_row: int
    start: int
    end: int
    column: int
