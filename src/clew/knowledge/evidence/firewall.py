"""The firewall: what a model says is checked against the code and the known history before it is stored (SYL-78,
SYL-79). A text that fails the check gets the lowest trust and an [UNVERIFIED] mark."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Literal, Protocol, Unpack

import msgspec

from clew.access import Principal
from clew.catalog.text import inline
from clew.errors import Busy, NotFound
from clew.knowledge.code.files import TEXT, kind_of
from clew.knowledge.shelves import Shelf
from clew.secrecy import mask_keys
from clew.trail.edge import EdgeType
from clew.trail.kinds import NodeDomain, NodeType, SourceKind, Trust, Verification
from clew.trail.nodes import Node, NodeFields, NodeFilter, NodeGraph, ScoredNode

UNSUPPORTED, MISSING_FILE, CONTRADICTED = 0.5, 0.8, 0.7
"""Factors on the confidence: for each unsupported claim, for each missing file, and once for contradictions."""
SURE = 0.8
NEAR = 0.7
"""From this similarity on, an entry of history is about the same matter."""
MOST_TEXT = 100_000
"""Characters of a text in which claims are looked for."""
PREFIX = "code:"
"""Prefix of the ids of code nodes; the reference to the code follows."""
LOOKED_AT, REMEMBERED = 10, 20

ClaimKind = Literal["uses", "implements", "location"]
Anchors = Callable[[Sequence[str]], Awaitable[Sequence[str]]]
"""Maps references to code (`path`, `path:line`, `path#name`) to ids of nodes that stand for them."""
ReadSource = Callable[[str], Awaitable[str]]
"""Maps the id of a code node to its source lines. Raises NotFound, Busy."""

_STOPS = ".,;:!?)"
_NAME = r"[`'\"]?(\w[\w.+#/-]{0,200}?)[`'\"]?"
_END = r"(?=[.,;:!?)]*(?:\s|$))"
_PATTERNS: tuple[tuple[ClaimKind, re.Pattern[str]], ...] = (
    ("uses", re.compile(rf"\bwe\s+use\s+{_NAME}\s+for\s+{_NAME}{_END}", re.IGNORECASE)),
    ("implements", re.compile(rf"(?<![\w.]){_NAME}\s+implements\s+{_NAME}{_END}", re.IGNORECASE)),
    ("location", re.compile(rf"\bthe\s+{_NAME}\s+is\s+in\s+[`'\"]?([^\s`'\"]{{1,400}})", re.IGNORECASE)),
)
_PLACE = re.compile(r"(?::\d+(?:-\d+)?|#.*)$")


# -- claims ----------------------------------------------------------------------------------------------------


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A statement on the code: `we use X for Y`, `X implements Y` or `the X is in Y`. `subject` is X, `object` is Y."""

    kind: ClaimKind
    text: str
    subject: str
    object: str

    @property
    def topic(self) -> str:
        """What the claim answers. Two claims of one kind and topic with different answers contradict each other."""
        return (self.object if self.kind == "uses" else self.subject).casefold()

    @property
    def answer(self) -> str:
        return (self.subject if self.kind == "uses" else self.object).casefold()

    @property
    def question(self) -> str:
        """The claim without its answer, as a search query for other claims on the same topic."""
        match self.kind:
            case "uses":
                return f"we use for {self.object}"
            case "implements":
                return f"{self.subject} implements"
            case _:
                return f"the {self.subject} is in"


def find_claims(text: str) -> list[Claim]:
    """The distinct claims of a text, by pattern and then by position."""
    found = dict.fromkeys(claim for kind, pattern in _PATTERNS for claim in _claims(kind, pattern, text[:MOST_TEXT]))
    return list(found)


def disagreeing(claim: Claim, found: Sequence[ScoredNode]) -> list[Node]:
    """The nodes near enough to a claim that answer its topic differently."""
    near = (each.node for each in found if each.similarity >= NEAR)
    return [node for node in near if any(_disagree(claim, other) for other in find_claims(node.content))]


def _claims(kind: ClaimKind, pattern: re.Pattern[str], text: str) -> Iterator[Claim]:
    for match in pattern.finditer(text):
        subject, place = match[1], match[2].rstrip(_STOPS)
        if place:
            yield Claim(kind=kind, text=" ".join(match[0].split()).rstrip(_STOPS), subject=subject, object=place)


def _disagree(one: Claim, other: Claim) -> bool:
    return one.kind == other.kind and one.topic == other.topic and one.answer != other.answer


# -- check -----------------------------------------------------------------------------------------------------


class Ground(Protocol):
    """The facts that claims are checked against."""

    async def has_file(self, path: str) -> bool:
        """Whether the code has this file now."""
        ...

    async def supports(self, claim: Claim) -> Sequence[str]:
        """References to the code that supports a claim; empty if nothing does."""
        ...

    async def contradicts(self, claim: Claim) -> Sequence[Node]:
        """Known nodes that make another claim on the same topic."""
        ...


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check. `checked` is False if the text has nothing to check; `evidence` are references to code."""

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
        """One line for each unsupported claim and missing file."""
        return [
            *([] if self.checked else ["nothing in it can be checked against the code"]),
            *(f"the code shows nothing of: {claim}" for claim in self.unsupported),
            *(f"there is no file {path}" for path in self.missing),
        ]


async def examine(content: str, files: Sequence[str], ground: Ground) -> Verdict:
    """Check the claims of a text and the files that it refers to.

    The text is verified if the code supports all claims, something in the code supports it at all (an existing file is
    enough), and the confidence is at least SURE.
    """
    claims, files = find_claims(content), list(dict.fromkeys(files))
    support = [(claim, await ground.supports(claim)) for claim in claims]
    unsupported = [claim for claim, found in support if not found]
    missing = [path for path in files if not await ground.has_file(path)]
    against = [
        f"new: {claim.text}; known ({node.id}): {inline(node.name)}"
        for claim in claims
        for node in await ground.contradicts(claim)
    ]
    factor = UNSUPPORTED ** len(unsupported) * MISSING_FILE ** len(missing) * (CONTRADICTED if against else 1.0)
    present = [path for path in files if path not in missing]
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


class KnowledgeGround:
    """The code and the history of one owner. With `source`, the lines of programs support claims too, not only the
    indexed text."""

    def __init__(self, code: Shelf, graph: NodeGraph, by: Principal, source: ReadSource | None = None) -> None:
        self._code, self._graph, self._by, self._source = code, graph, by, source

    async def has_file(self, path: str) -> bool:
        """Whether the code has the file; a line or symbol after the path is ignored."""
        try:
            await self._code.get(f"{PREFIX}{_PLACE.sub('', path).removeprefix('./')}", by=self._by)
        except NotFound:
            return False
        return True

    async def supports(self, claim: Claim) -> Sequence[str]:
        """The code that names the subject of a claim, at the place that the claim gives."""
        found = await self._code.search(claim.subject, by=self._by, limit=LOOKED_AT)
        return [each.node.id.removeprefix(PREFIX) for each in found if await self._is_support(each.node, claim)]

    async def _is_support(self, node: Node, claim: Claim) -> bool:
        if _bears_out(node, claim):
            return True
        if self._source is None or not node.path or kind_of(node.path) & TEXT:
            return False
        try:
            return _bears_out(node, claim, await self._source(node.id))
        except (NotFound, Busy):  # the file was just removed, or is being written
            return False

    async def contradicts(self, claim: Claim) -> Sequence[Node]:
        """Current history on the same topic with another answer."""
        found = await self._graph.similar_nodes(claim.question, REMEMBERED, NodeFilter(domain=NodeDomain.HISTORY))
        return disagreeing(claim, [each for each in found if each.node.superseded_by is None])


def _bears_out(node: Node, claim: Claim, source: str = "") -> bool:
    text = "\n".join(filter(None, (node.name, node.signature, node.content, node.path, source)))
    if not _names(text, claim.subject):
        return False
    match claim.kind:
        case "implements":
            return _names(text, claim.object)
        case "location":
            return _is_at(node.path or "", claim.object.removeprefix("./").rstrip("/"))
        case _:
            return True


def _names(text: str, name: str) -> bool:
    """Whether a text contains a name as a whole word, in any case."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE) is not None


def _is_at(path: str, place: str) -> bool:
    """Whether a path equals a place, ends with it or lies below it. A place may be written as a dotted module."""
    spelled = (place, place.replace(".", "/"), f"{place.replace('.', '/')}.py")
    return any(path == each or path.endswith(f"/{each}") or f"/{each}/" in f"/{path}" for each in spelled)


# -- storage ---------------------------------------------------------------------------------------------------


class Firewall:
    """Stores statements after a check. A statement of a person counts as verified if nothing contradicts it."""

    def __init__(self, graph: NodeGraph, ground: Ground, anchors: Anchors) -> None:
        self._graph, self._ground, self._anchors = graph, ground, anchors

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
        """Check and store a piece of history: with trust 80 and edges to its evidence if it holds, otherwise with trust
        20, a mark, and the warnings in its metadata. Keys are masked."""
        name, content = mask_keys(name), mask_keys(content)
        verdict = await examine(content, files, self._ground)
        node = await self._graph.add_node(
            name, NodeDomain.HISTORY, node_type, content, **_with_verdict(fields, verdict, said_by)
        )
        anchors = await self._anchors(verdict.evidence) if node.verified and verdict.evidence else ()
        for target in dict.fromkeys(anchors):
            await self._graph.add_edge(node.id, target, EdgeType.REFERENCES)
        return node, verdict


def _with_verdict(fields: NodeFields, verdict: Verdict, said_by: SourceKind) -> NodeFields:
    is_said_by_user = said_by is SourceKind.USER and not verdict.unsupported and verdict.confidence >= SURE
    verification = Verification.USER if is_said_by_user and not verdict.verified else verdict.verification
    holds = verification is not Verification.NONE
    doubts = {"warnings": verdict.warnings, "contradictions": list(verdict.contradictions), "needs_review": True}
    judged: NodeFields = {
        "verified": holds,
        "verification": verification,
        "confidence": verdict.confidence,
        "trust": Trust.RECENT if holds else Trust.LLM,
        "metadata": {**(fields.get("metadata") or {}), **({} if holds else doubts)},
    }
    return {**fields, **judged}
