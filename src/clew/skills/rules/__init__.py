"""Rules for agents (AGENTS.md, CLAUDE.md …): always, by path, or by intent. Programs start with `open_rules`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clew.skills.rules.tree import Rules as Rules
    from clew.skills.rules.tree import RuleStats as RuleStats
    from clew.skills.rules.tree import open_rules as open_rules

__all__ = ["RuleStats", "Rules", "open_rules"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from clew.skills.rules import tree  # imported late: reading rule files needs no trail

    return getattr(tree, name)
