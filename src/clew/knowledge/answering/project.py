"""Facts that the manifests and configuration of a project state: versions, dependencies, scripts, tools, people."""

from __future__ import annotations

from collections.abc import Mapping

from clew.knowledge.answering.question import Question
from clew.trail.nodes import ScoredNode


class ProjectFacts:
    """The facts of one folder, read again when a manifest changes."""

    async def search(self, question: Question, weights: Mapping[str, float]) -> list[ScoredNode]:
        """The facts that a question asks for, best first."""
        return []
