"""The order of steps in a record: which steps each one waits for, and whether an order is possible at all.

Steps run in the order in which they are listed. Steps of one group run side by side. A step that names its
dependencies waits for these alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from clew.errors import InvalidInput

Needs = Mapping[str, frozenset[str]]
"""For each step the steps that must be done before it."""


class OrderedStep(NamedTuple):
    """One step. Without `needs` it waits for the group before its own."""

    id: str
    group: str | None
    needs: Sequence[str] | None


class StepOrder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The path to the steps in records of a schema: `order` of a schema definition."""

    steps: str
    id: str
    needs: str
    group: str

    def check(self, context: dict[str, Any]) -> None:
        """Raises InvalidInput if the steps of a record have no valid order. Other errors are left to the check of its
        schema."""
        found = context.get(self.steps)
        steps = [self._read(each) for each in found if isinstance(each, dict)] if isinstance(found, list) else []
        require_order(steps, f"context.{self.steps}")

    def _read(self, step: dict[str, Any]) -> OrderedStep:
        needs = step.get(self.needs)
        group = step.get(self.group)
        named = [str(each) for each in needs] if isinstance(needs, list) else None
        return OrderedStep(str(step.get(self.id)), None if group is None else str(group), named)


def dependencies(steps: Sequence[OrderedStep]) -> Needs:
    """For each step the steps that it waits for."""
    needs: dict[str, frozenset[str]] = {}
    before: frozenset[str] = frozenset()
    group: list[OrderedStep] = []
    for step in steps:
        if group and (step.group is None or step.group != group[0].group):
            before, group = frozenset(each.id for each in group), []
        group.append(step)
        needs[step.id] = before if step.needs is None else frozenset(step.needs)
    return needs


def require_order(steps: Sequence[OrderedStep], field: str) -> Needs:
    """The dependencies of steps. Raises InvalidInput for ids that come twice, unknown dependencies and cycles."""
    needs = dependencies(steps)
    if len(needs) != len(steps):
        raise InvalidInput(field, "two have the same id")
    for step, wanted in needs.items():
        if unknown := sorted(wanted - needs.keys()):
            raise InvalidInput(field, f"{step} depends on {unknown[0]}, which does not exist")
    if cycle := find_cycle(needs):
        raise InvalidInput(field, f"circular dependency: {' → '.join(cycle)}")
    return needs


def find_cycle(needs: Needs) -> list[str]:
    """The steps of a cycle, the first one again at the end; empty if there is none."""
    waiting = dict(needs)
    while ready := [id for id, wanted in waiting.items() if not wanted & waiting.keys()]:
        for each in ready:
            del waiting[each]
    path: list[str] = []
    step: str | None = next(iter(waiting), None)
    while step is not None and step not in path:
        path.append(step)
        step = next((each for each in waiting if each in waiting[path[-1]]), None)
    return [] if step is None else [*path[path.index(step) :], step]
