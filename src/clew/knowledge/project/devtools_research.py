"""The second tier: which tools the references recommend. A tool is recommended where a line names it together with what
it is for; one that several documents name, and twice as many as the next, is clearly the best."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from clew.access import Principal
from clew.catalog.text import inline
from clew.knowledge.evidence.citations import citation_of
from clew.knowledge.project.devtools_data import known_tools
from clew.knowledge.project.devtools_records import (
    DiscoveredTool,
    Recommendation,
    Research,
    ToolCategory,
    ToolDiscoveryRequest,
)
from clew.knowledge.shelves import Shelf
from clew.trail.nodes import Node

LOOKED_AT = 20
ENOUGH = 2
"""So many documents make a recommendation."""
_WORDS: dict[ToolCategory, str] = {
    "linter": r"lint",
    "formatter": r"format",
    "type_checker": r"typ(?:e|es|ing)[ -]?check|static typ",
    "test_framework": r"\btest",
    "lsp": r"language server|\blsp\b",
}


def shelf_research(shelf: Shelf, by: Principal) -> Research:
    """Research in the documents of a shelf, as one principal sees them. No model is asked."""

    async def research(request: ToolDiscoveryRequest, inferred: Sequence[DiscoveredTool]) -> Recommendation:
        category, language = request.tool_category, next(iter(request.languages), "")
        question = f"recommended {category.replace('_', ' ')} for {language}"
        await shelf.catch_up()
        found = [each.node for each in await shelf.search(question, by=by, limit=LOOKED_AT)]
        named = {name: _naming(found, name, category) for name in _candidates(category, language)}
        ranked = sorted((name for name in named if named[name]), key=lambda name: -len(named[name]))
        counts = [len(named[name]) for name in ranked]
        is_clear = bool(counts) and counts[0] >= ENOUGH and (len(counts) == 1 or counts[0] >= 2 * counts[1])
        tools = tuple(_recommended(name, category, language, named[name]) for name in ranked)
        return Recommendation(tools=tools[:1] if is_clear else tools, satisfactory=is_clear)

    return research


def _candidates(category: ToolCategory, language: str) -> list[str]:
    return [name for name, known in known_tools().items() if category in known.run and language in known.languages]


def _naming(nodes: Sequence[Node], name: str, category: ToolCategory) -> list[Node]:
    """The nodes, one a document, that name a tool for what it is for."""
    found: dict[str, Node] = {}
    for node in nodes:
        if any(_pattern(name).search(line) and _purpose(category).search(line) for line in node.content.splitlines()):
            found.setdefault(node.path or node.url or node.id, node)
    return list(found.values())


def _recommended(name: str, category: ToolCategory, language: str, nodes: Sequence[Node]) -> DiscoveredTool:
    places = ", ".join(citation_of(node) for node in nodes[:ENOUGH])
    return DiscoveredTool(
        name=name,
        category=category,
        language=language,
        source="academic_research",
        rationale=inline(f"{name} is recommended in {places}"),
    )


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])", re.IGNORECASE)


@cache
def _purpose(category: ToolCategory) -> re.Pattern[str]:
    return re.compile(_WORDS[category], re.IGNORECASE)
