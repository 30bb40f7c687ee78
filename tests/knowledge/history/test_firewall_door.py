"""Entries and summaries that pass the firewall on their way in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.knowledge.evidence.firewall import CodeClaim, Firewall
from clew.knowledge.history.entries import Category
from clew.knowledge.history.journal import Archive, Chronicle
from clew.knowledge.history.links import CrossDomain, ensure_anchors
from clew.knowledge.nodes.kinds import TrustLevel
from clew.knowledge.nodes.node_graph import NodeGraph
from clew.knowledge.nodes.node_store import UNVERIFIED, Node
from clew.trail.store import Trail


class Folder:
    """The facts of a folder for the checks: its files and their contents."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def has(self, path: str) -> bool:
        return (self._root / path).is_file()

    async def supports(self, claim: CodeClaim) -> Sequence[str]:
        files = sorted(self._root.rglob("*.py"))
        return [str(file.relative_to(self._root)) for file in files if "sqlite" in file.read_text(encoding="utf-8")]

    async def contradicts(self, claim: CodeClaim) -> Sequence[Node]:
        return ()


@pytest.fixture
def firewall(trail: Trail, me: Principal, tmp_path: Path) -> Firewall:
    root = tmp_path / "code"
    root.mkdir()
    (root / "store.py").write_text("import sqlite\n", encoding="utf-8")

    async def anchors(refs: Sequence[str]) -> Sequence[str]:
        return await ensure_anchors(trail, refs, by=me)

    return Firewall(trail, me, Folder(root), anchors)  # type: ignore[arg-type]


@pytest.mark.req("O17", "SYL-96")
async def test_a_summary_of_a_file_that_is_not_there_is_marked(trail: Trail, me: Principal, firewall: Firewall) -> None:
    archive = Archive(trail, me, firewall)
    good = await archive.store_summary("we use sqlite for storage", "decision", "s1", ["store.py"])
    bad = await archive.store_summary("Rewrote the parser", "feature", "s1", ["gone/parser.py", "gone/lexer.py"])

    graph = NodeGraph(trail, me)
    kept, doubted = await graph.get_node(good.node_id), await graph.get_node(bad.node_id)
    assert (kept.verified, kept.trust) == (True, TrustLevel.RECENT)
    assert (doubted.verified, doubted.trust) == (False, TrustLevel.LLM)
    assert doubted.content.startswith(UNVERIFIED)
    assert bad.edges == 2
    assert [node.id for node in await CrossDomain(trail, me).linked("store.py")] == [good.node_id]


@pytest.mark.req("O17")
async def test_statements_of_the_user_need_no_code(
    trail: Trail, me: Principal, clock: ManualClock, firewall: Firewall
) -> None:
    chronicle = Chronicle(trail, me, "s1", clock, firewall)
    said = await chronicle.store("I like short names", Category.USER_VOICE)
    guessed = await chronicle.store("They like short names", Category.INSIGHT)
    assert (said.trust, guessed.trust) == (TrustLevel.RECENT, TrustLevel.LLM)
    assert guessed.content.startswith(UNVERIFIED)
