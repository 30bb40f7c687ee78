"""Routes that a caller may use because of its loaded skills."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from clew.skills.exposure import Exposure


class SkillRoutes(msgspec.Struct, frozen=True, kw_only=True):
    """The routes that loaded skills open, each with the names of those skills. `waiting` has the routes of skills that
    wait for the user's consent."""

    routes: Mapping[str, Sequence[str]] = {}
    waiting: Mapping[str, Sequence[str]] = {}

    def tell_waiting(self, route: str) -> str:
        """A clause for a route whose skills wait for consent; empty for any other route."""
        skills = self.waiting.get(route, ())
        if not skills or route in self.routes:
            return ""
        noun, verb = ("skill", "waits") if len(skills) == 1 else ("skills", "wait")
        return f"came with the {noun} {', '.join(skills)}, which {verb} for the user's consent"


FindSkillRoutes = Callable[[Exposure], SkillRoutes]
"""Finds the routes that the skills of an exposure set open. They follow from the skills that are loaded now, so an
unloaded skill needs no cleanup."""


def no_skill_routes(exposure: Exposure) -> SkillRoutes:
    return SkillRoutes()
