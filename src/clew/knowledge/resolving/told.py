"""Answers on the past as they are told: a line for each commit or entry with who did it, and how many more there
are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from clew.catalog.text import inline
from clew.knowledge.evidence.citations import COMMIT_PREFIX
from clew.knowledge.evidence.trust import evidence_of
from clew.knowledge.resolving.answers import EXCERPT, Resolved, build_answer, cited_sources, gist, version_of
from clew.knowledge.resolving.intents import Classified
from clew.secrecy import mask_keys
from clew.trail.nodes import Node, ScoredNode


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What is answered: a line before, nodes with a line each, lines without a source after them, and how many nodes
    there are in all. `has_versions` where the version of each change belongs to the answer."""

    nodes: Sequence[Node]
    head: str = ""
    after: Sequence[str] = ()
    total: int = 0
    has_versions: bool = False


def build_told(question: str, what: Classified, told: Told, now: datetime) -> Resolved:
    """The answer, in the words of its sources."""
    evidence = [evidence_of(ScoredNode(node=node, similarity=1.0), now) for node in told.nodes]
    sources = cited_sources(evidence, told.nodes)
    lines = [
        f"[{each.number}] {each.place}: {_line(node)}{version_of(node) if told.has_versions else ''}"
        for each, node in zip(sources, told.nodes, strict=True)
    ]
    text = "\n".join(filter(None, (told.head, *lines, *told.after, *more_lines(told.total - len(told.nodes)))))
    return build_answer(question, what, text, "graph", sources, status="ok" if sources else "no_matches")


def more_lines(left: int) -> list[str]:
    """The line that says how many are left out, where some are."""
    return [f"… and {left:,} more"] if left > 0 else []


def _line(node: Node) -> str:
    """What a node says on one line; of a commit its subject, and who did it."""
    if not node.id.startswith(COMMIT_PREFIX):
        return gist(node)
    by = f" · {inline(mask_keys(node.authors[0]), EXCERPT)}" if node.authors else ""
    return f"{inline(mask_keys(node.name), EXCERPT)}{by}"
