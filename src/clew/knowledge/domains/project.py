"""Tools of the domain `code` on the project itself: its style, components, dependencies and design tokens."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from clew.knowledge.domains.method_tool import method_tool
from clew.knowledge.project.components import find_component
from clew.knowledge.project.dependencies import analyze_dependencies, check_dependency
from clew.knowledge.project.style import detect_patterns, get_style_guide
from clew.knowledge.project.tokens import find_design_token, get_design_tokens
from clew.tools import Tool

if TYPE_CHECKING:
    from clew.knowledge.domains.code import OpenKnowledge

_TITLES = {
    analyze_dependencies: "What this project depends on",
    detect_patterns: "Which patterns the code follows",
}
_HIDDEN = (get_style_guide, find_component, check_dependency, get_design_tokens, find_design_token)


def project_tools(known: OpenKnowledge) -> Sequence[Tool]:
    """The tools, each from the function of its name."""
    made = partial(method_tool, known, lambda knowledge, _: knowledge.code, render=lambda found: found)
    return *(made(each, title=title) for each, title in _TITLES.items()), *map(made, _HIDDEN)
