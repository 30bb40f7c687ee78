"""Routes that are open to a caller because of skills that it has loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from clew.skills.exposure import Exposure


class Brought(msgspec.Struct, frozen=True, kw_only=True):
    """The routes that the skills of a set bring, each with what brings it. `waiting` are those that they would bring
    if the user agreed to them, each with the skills that wait."""

    routes: Mapping[str, Sequence[str]] = {}
    waiting: Mapping[str, Sequence[str]] = {}

    def tell_waiting(self, route: str) -> str:
        """Why a route is not open although it came with a skill; empty where that is not so."""
        skills = self.waiting.get(route, ())
        if not skills or route in self.routes:
            return ""
        noun, verb = ("skill", "waits") if len(skills) == 1 else ("skills", "wait")
        return f"came with the {noun} {', '.join(skills)}, which {verb} for the user's consent"


Bringing = Callable[[Exposure], Brought]
"""From an exposure set to the routes that its skills bring. They follow from what is loaded now: nothing has to be
taken away when a skill leaves."""


def bring_nothing(exposure: Exposure) -> Brought:
    return Brought()
