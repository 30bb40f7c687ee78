"""What a model says is checked before it is kept (SYL-78, SYL-79): its claims against the code, the files it names, and
what is known already. What does not stand up is kept with the lowest trust and a mark that every reader sees."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, Unpack

import msgspec

from clew.catalog.text import inline
from clew.knowledge.evidence.claims import Claim, find_claims
from clew.secrecy import mask_keys
from clew.trail.edge import EdgeType
from clew.trail.kinds import NodeDomain, NodeType, SourceKind, Trust, Verification
from clew.trail.nodes import Node, NodeFields, NodeGraph

UNSUPPORTED, MISSING_FILE, CONTRADICTED = 0.5, 0.8, 0.7
"""What remains of the confidence for each claim without support, for each missing file, and if history contradicts."""
SURE = 0.8

Anchors = Callable[[Sequence[str]], Awaitable[Sequence[str]]]
"""From references to code (`path`, `path:line`, `path#name`) to the ids of the nodes that stand for them."""


class Ground(Protocol):
    """What claims are held against."""

    async def has_file(self, path: str) -> bool:
        """Whether the code has this file now."""
        ...

    async def supports(self, claim: Claim) -> Sequence[str]:
        """References to the code that bears a claim out; none where nothing does."""
        ...

    async def contradicts(self, claim: Claim) -> Sequence[Node]:
        """What is known already and says otherwise on the same matter."""
        ...


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a check. `checked` says whether there was anything to check; `unsupported` are claims that the code
    does not bear out, which is not the same as `contradictions`: what history says otherwise. `evidence` are
    references to code."""

    verified: bool
    confidence: float
    checked: bool = True
    unsupported: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    contradictions: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()

    @property
    def verification(self) -> Verification:
        return Verification.CODE if self.verified else Verification.NONE

    @property
    def warnings(self) -> list[str]:
        """One line for each thing that is wrong, but for contradictions."""
        return [
            *([] if self.checked else ["nothing in it can be checked against the code"]),
            *(f"the code shows nothing of: {claim}" for claim in self.unsupported),
            *(f"there is no file {path}" for path in self.missing),
        ]


async def examine(content: str, files: Sequence[str], ground: Ground) -> Verdict:
    """Check what a text claims and the files that it refers to.

    The text is verified against the code if something in the code bears it out, be it that a file it refers to is
    there, all claims hold and the confidence is SURE.
    """
    claims = find_claims(content)
    support = [(claim, await ground.supports(claim)) for claim in claims]
    unsupported = [claim for claim, found in support if not found]
    missing = [path for path in dict.fromkeys(files) if not await ground.has_file(path)]
    against = [_told(claim, node) for claim in claims for node in await ground.contradicts(claim)]
    factor = UNSUPPORTED ** len(unsupported) * MISSING_FILE ** len(missing) * (CONTRADICTED if against else 1.0)
    present = [path for path in dict.fromkeys(files) if path not in missing]
    evidence = tuple(dict.fromkeys([*(ref for _, found in support for ref in found), *present]))
    return Verdict(
        verified=bool(evidence) and not unsupported and factor >= SURE,
        confidence=factor,
        checked=bool(claims or files),
        unsupported=tuple(claim.text for claim in unsupported),
        missing=tuple(missing),
        contradictions=tuple(against),
        evidence=evidence,
    )


class Firewall:
    """The way in for what models say. People may say what no code shows: what they say and nothing speaks against is
    verified by them."""

    def __init__(self, graph: NodeGraph, ground: Ground, anchors: Anchors) -> None:
        self._graph = graph
        self._ground = ground
        self._anchors = anchors

    async def store(
        self,
        name: str,
        content: str,
        *,
        files: Sequence[str] = (),
        said_by: SourceKind = SourceKind.LLM_INFERENCE,
        node_type: NodeType = NodeType.HISTORY_ENTRY,
        **fields: Unpack[NodeFields],
    ) -> tuple[Node, Verdict]:
        """Keep a piece of history with what a check of it found: trust 80 and edges to its evidence where it holds,
        trust 20, a mark and what is wrong in its metadata where it does not. Keys are masked."""
        name, content = mask_keys(name), mask_keys(content)
        verdict = await examine(content, files, self._ground)
        node = await self._graph.add_node(
            name, NodeDomain.HISTORY, node_type, content, **_with_verdict(fields, verdict, said_by)
        )
        if node.verified:
            await self._refer(node, verdict.evidence)
        return node, verdict

    async def _refer(self, node: Node, evidence: Sequence[str]) -> None:
        for target in dict.fromkeys(await self._anchors(evidence)) if evidence else ():
            await self._graph.add_edge(node.id, target, EdgeType.REFERENCES)


def _with_verdict(fields: NodeFields, verdict: Verdict, said_by: SourceKind) -> NodeFields:
    is_said_by_user = said_by is SourceKind.USER and not verdict.unsupported and verdict.confidence >= SURE
    verification = Verification.USER if is_said_by_user and not verdict.verified else verdict.verification
    holds = verification is not Verification.NONE
    metadata = dict(fields.get("metadata") or {})
    if not holds:
        metadata |= {
            "warnings": verdict.warnings,
            "contradictions": list(verdict.contradictions),
            "needs_review": True,
        }
    judged: NodeFields = {
        "verified": holds,
        "verification": verification,
        "confidence": verdict.confidence,
        "trust": Trust.RECENT if holds else Trust.LLM,
        "metadata": metadata,
    }
    return {**fields, **judged}


def _told(claim: Claim, node: Node) -> str:
    return f"new: {claim.text}; known ({node.id}): {inline(node.name)}"
