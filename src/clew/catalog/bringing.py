"""Routes that are open to a caller because of skills that it has loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from clew.skills.exposure import Exposure

Bringing = Callable[[Exposure], Mapping[str, Sequence[str]]]
"""From an exposure set to the routes that its skills bring, each with the names of these skills. They follow from what
is loaded now: nothing has to be taken away when a skill leaves."""


def bring_nothing(exposure: Exposure) -> Mapping[str, Sequence[str]]:
    return {}
