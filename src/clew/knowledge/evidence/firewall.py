"""The firewall: checks texts of models against the code and the known history before they are stored (SYL-78,
SYL-79). A text that fails the check gets the lowest trust and an [UNVERIFIED] mark."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Literal, Unpack

import msgspec

from clew.access import Principal
from clew.catalog.operations.text import inline
from clew.errors import Busy, NotFound
from clew.knowledge.code.files import TEXT, kind_of
from clew.knowledge.code.models import PREFIX
from clew.knowledge.evidence.conflicts import SourceConflict, record_conflicts
from clew.knowledge.nodes.kinds import ConflictKind, NodeDomain, NodeType, SourceKind, TrustLevel, Verification
from clew.knowledge.nodes.node_graph import NodeGraph
from clew.knowledge.nodes.node_store import Node, NodeFields, NodeFilter, ScoredNode
from clew.lazy_pattern import lazy_pattern
from clew.secrecy import mask_keys
from clew.trail.model.edge import EdgeType
from clew.trail.store import Trail

if TYPE_CHECKING:  # it loads numpy, which a reader of entries does not need
    from clew.knowledge.code.graph import CodeGraph

UNSUPPORTED, MISSING_FILE, CONTRADICTED = 0.5, 0.8, 0.7
"""Factors on the confidence: for each unsupported claim, for each missing file, and once for contradictions."""
SURE = 0.8
NEAR = 0.7
"""From this similarity on, an entry of history is about the same matter."""
MOST_TEXT = 100_000
"""Characters of a text in which claims are looked for."""
LOOKED_AT, REMEMBERED = 10, 20

ClaimKind = Literal["uses", "implements", "location"]
Anchors = Callable[[Sequence[str]], Awaitable[Sequence[str]]]
"""Maps references to code (`path`, `path:line`, `path#name`) to the ids of their nodes."""

_STOPS = ".,;:!?)"
_NAME = r"[`'\"]?(\w[\w.+#/-]{0,200}?)[`'\"]?"
_END = r"(?=[.,;:!?)]*(?:\s|$))"
_PATTERNS: dict[ClaimKind, re.Pattern[str]] = {
    "uses": lazy_pattern(rf"\bwe\s+use\s+{_NAME}\s+for\s+{_NAME}{_END}", re.IGNORECASE),
    "implements": lazy_pattern(rf"(?<![\w.]){_NAME}\s+implements\s+{_NAME}{_END}", re.IGNORECASE),
    "location": lazy_pattern(rf"\bthe\s+{_NAME}\s+is\s+in\s+[`'\"]?([^\s`'\"]{{1,400}})", re.IGNORECASE),
}
_QUESTIONS: dict[ClaimKind, str] = {"uses": "we use for {}", "implements": "{} implements", "location": "the {} is in"}
_LINES = lazy_pattern(r":\d+(?:-\d+)?$")


# -- claims ----------------------------------------------------------------------------------------------------


class CodeClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A statement on the code: `we use X for Y`, `X implements Y` or `the X is in Y`. `subject` is X, `object` is Y."""

    kind: ClaimKind
    text: str
    subject: str
    object: str

    @property
    def topic(self) -> str:
        """The topic of the claim. Two claims of the same kind and topic with different answers contradict each
        other."""
        return self.object if self.kind == "uses" else self.subject

    def contradicts(self, other: CodeClaim) -> bool:
        is_same = (self.kind, self.topic.casefold()) == (other.kind, other.topic.casefold())
        own, others = ({claim.subject.casefold(), claim.object.casefold()} for claim in (self, other))
        return is_same and own != others


def find_claims(text: str) -> list[CodeClaim]:
    """The distinct claims of a text, by pattern and then by position."""
    found = []
    for kind, pattern in _PATTERNS.items():
        for match in pattern.finditer(text[:MOST_TEXT]):
            said, place = " ".join(match[0].split()).rstrip(_STOPS), match[2].rstrip(_STOPS)
            found += [CodeClaim(kind=kind, text=said, subject=match[1], object=place)] if place else []
    return list(dict.fromkeys(found))


def disagreeing(claim: CodeClaim, found: Sequence[ScoredNode]) -> list[Node]:
    """The nodes that are close to a claim and contradict it on the same topic."""
    near = (each.node for each in found if each.similarity >= NEAR)
    return [node for node in near if any(map(claim.contradicts, find_claims(node.content)))]


# -- check -----------------------------------------------------------------------------------------------------


class ClaimVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check. `checked` is False if the text has nothing to check; `against` are claims with the nodes
    that contradict them, `evidence` are references to code."""

    verified: bool
    confidence: float
    checked: bool = True
    unsupported: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    against: tuple[tuple[CodeClaim, Node], ...] = ()
    evidence: tuple[str, ...] = ()

    @property
    def contradictions(self) -> list[str]:
        return [f"new: {claim.text}; known ({node.id}): {inline(node.name)}" for claim, node in self.against]

    @property
    def warnings(self) -> list[str]:
        """One line for each unsupported claim and missing file."""
        return [
            *([] if self.checked else ["nothing in it can be checked against the code"]),
            *(f"the code shows nothing of: {claim}" for claim in self.unsupported),
            *(f"there is no {'symbol' if '#' in path else 'file'} {path}" for path in self.missing),
        ]


class Ground:
    """The facts that claims are checked against: the code, the history that one caller sees, and the decision records
    that `read_records` returns."""

    def __init__(
        self, code: CodeGraph, graph: NodeGraph, read_records: Callable[[], Awaitable[Sequence[Node]]] | None = None
    ) -> None:
        self._code, self._graph, self._read_records = code, graph, read_records

    async def has(self, ref: str) -> bool:
        """Whether the code has a file or symbol now; lines after the path are ignored."""
        try:
            await self._code.symbol(f"{PREFIX}{_LINES.sub('', ref).removeprefix('./')}")
        except NotFound:
            return False
        return True

    async def supports(self, claim: CodeClaim) -> Sequence[str]:
        """References to the code that names the subject of a claim, at the place that the claim gives."""
        found = await self._code.search(claim.subject, limit=LOOKED_AT)
        return [each.node.id.removeprefix(PREFIX) for each in found if await self._is_support(each.node, claim)]

    async def contradicts(self, claim: CodeClaim) -> Sequence[Node]:
        """Current history on the same topic with another answer."""
        question = _QUESTIONS[claim.kind].format(claim.topic)
        found = await self._graph.similar_nodes(question, REMEMBERED, NodeFilter(domain=NodeDomain.HISTORY))
        records = await self._read_records() if self._read_records is not None else ()
        found += [ScoredNode(node=node, similarity=1.0) for node in records]
        return disagreeing(claim, [each for each in found if each.node.superseded_by is None])

    async def _is_support(self, node: Node, claim: CodeClaim) -> bool:
        """Whether the index of a symbol supports a claim, or else the source lines of a program."""
        text = "\n".join(filter(None, (node.name, node.signature, node.content, node.path)))
        if _supports(text, node, claim):
            return True
        if not node.path or kind_of(node.path) & TEXT:
            return False
        try:
            return _supports(f"{text}\n{await self._code.source(node.id)}", node, claim)
        except (NotFound, Busy):  # the file was just removed, or is being written
            return False


async def examine(content: str, files: Sequence[str], ground: Ground) -> ClaimVerdict:
    """Check the claims of a text and the files that it refers to.

    The text is verified if the code supports all claims, something in the code supports it at all (an existing file is
    enough), and the confidence is at least SURE.
    """
    claims, files = find_claims(content), list(dict.fromkeys(files))
    support = [(claim, await ground.supports(claim)) for claim in claims]
    unsupported = [claim.text for claim, found in support if not found]
    missing = [path for path in files if not await ground.has(path)]
    against = [(claim, node) for claim in claims for node in await ground.contradicts(claim)]
    factor = UNSUPPORTED ** len(unsupported) * MISSING_FILE ** len(missing) * (CONTRADICTED if against else 1.0)
    present = [path for path in files if path not in missing]
    evidence = tuple(dict.fromkeys([*(ref for _, found in support for ref in found), *present]))
    return ClaimVerdict(
        verified=bool(evidence) and not unsupported and factor >= SURE,
        confidence=factor,
        checked=bool(claims or files),
        unsupported=tuple(unsupported),
        missing=tuple(missing),
        against=tuple(against),
        evidence=evidence,
    )


def _supports(text: str, node: Node, claim: CodeClaim) -> bool:
    is_named = _names(text, claim.subject)
    match claim.kind:
        case "implements":
            return is_named and _names(text, claim.object)
        case "location":
            return is_named and _is_at(node.path or "", claim.object.removeprefix("./").rstrip("/"))
        case _:
            return is_named


def _names(text: str, name: str) -> bool:
    """Whether a text contains a name as a whole word, in any case."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE) is not None


def _is_at(path: str, place: str) -> bool:
    """Whether a path equals a place, ends with it or lies below it. A place may be written as a dotted module."""
    spelled = (place, place.replace(".", "/"), f"{place.replace('.', '/')}.py")
    return any(path == each or path.endswith(f"/{each}") or f"/{each}/" in f"/{path}" for each in spelled)


# -- storage ---------------------------------------------------------------------------------------------------


class Firewall:
    """Stores statements after a check. A statement of a person is verified if nothing contradicts it."""

    def __init__(self, trail: Trail, by: Principal, ground: Ground, anchors: Anchors) -> None:
        self._trail, self._by, self._graph = trail, by, NodeGraph(trail, by)
        self._ground, self._anchors = ground, anchors

    async def store(
        self,
        name: str,
        content: str,
        *,
        files: Sequence[str] = (),
        said_by: SourceKind = SourceKind.LLM_INFERENCE,
        node_type: NodeType = NodeType.HISTORY_ENTRY,
        **fields: Unpack[NodeFields],
    ) -> tuple[Node, ClaimVerdict]:
        """Check and store a piece of history: with trust 80 and edges to its evidence if it holds, otherwise with trust
        20, a mark, and the warnings in its metadata. Contradictions are recorded as conflicts. Keys are masked."""
        name, content = mask_keys(name), mask_keys(content)
        verdict = await examine(content, files, self._ground)
        judged = _with_verdict(fields, verdict, said_by)
        node = await self._graph.add_node(name, NodeDomain.HISTORY, node_type, content, **judged)
        anchors = await self._anchors(verdict.evidence) if node.verified and verdict.evidence else ()
        for target in dict.fromkeys(anchors):
            await self._graph.add_edge(node.id, target, EdgeType.REFERENCES)
        await record_conflicts(self._trail, [_conflict(node, *each) for each in verdict.against], by=self._by)
        return node, verdict


def _conflict(new: Node, claim: CodeClaim, known: Node) -> SourceConflict:
    description = f"'{inline(claim.text)}' contradicts '{inline(known.name)}' of {known.at:%Y-%m-%d}"
    return SourceConflict(
        kind=ConflictKind.SEMANTIC, subject=claim.topic, node_a=new.id, node_b=known.id, description=description
    )


def _with_verdict(fields: NodeFields, verdict: ClaimVerdict, said_by: SourceKind) -> NodeFields:
    is_said_by_user = said_by is SourceKind.USER and not verdict.unsupported and verdict.confidence >= SURE
    by_user = Verification.USER if is_said_by_user else Verification.NONE
    verification = Verification.CODE if verdict.verified else by_user
    holds = verification is not Verification.NONE
    doubts = {"warnings": verdict.warnings, "contradictions": verdict.contradictions, "needs_review": True}
    judged: NodeFields = {
        "verified": holds,
        "verification": verification,
        "confidence": verdict.confidence,
        "trust": TrustLevel.RECENT if holds else TrustLevel.LLM,
        "metadata": {**(fields.get("metadata") or {}), **({} if holds else doubts)},
    }
    return {**fields, **judged}
