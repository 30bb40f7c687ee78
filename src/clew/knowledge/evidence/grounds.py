"""What is known, as ground for the firewall: claims are looked up in the code, and in history that says otherwise."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence

from clew.access import Principal
from clew.errors import Busy, NotFound
from clew.knowledge.code.path_kinds import TEXT, kind_of
from clew.knowledge.evidence.claims import Claim, disagreeing
from clew.knowledge.shelves import Shelf
from clew.trail.kinds import NodeDomain
from clew.trail.nodes import Node, NodeFilter, NodeGraph

PREFIX = "code:"
"""What the id of a node of code begins with; the reference to the code follows."""
LOOKED_AT, REMEMBERED = 10, 20

ReadSource = Callable[[str], Awaitable[str]]
"""From the id of a node of code to its lines. Raises NotFound, Busy."""

_PLACE = re.compile(r"(?::\d+(?:-\d+)?|#.*)$")


class KnowledgeGround:
    """The shelf of code and the history of one owner. With `source` the lines of programs bear claims out as well, not
    only what is indexed of them."""

    def __init__(self, code: Shelf, graph: NodeGraph, by: Principal, source: ReadSource | None = None) -> None:
        self._code = code
        self._source = source
        self._graph = graph
        self._by = by

    async def has_file(self, path: str) -> bool:
        """Whether the code has the file, also where a line or a symbol of it is named."""
        try:
            await self._code.get(f"{PREFIX}{_PLACE.sub('', path).removeprefix('./')}", by=self._by)
        except NotFound:
            return False
        return True

    async def supports(self, claim: Claim) -> Sequence[str]:
        """The code that names what a claim is about, at its place where the claim gives one."""
        found = await self._code.search(claim.subject, by=self._by, limit=LOOKED_AT)
        return [each.node.id.removeprefix(PREFIX) for each in found if await self._bears_out(each.node, claim)]

    async def _bears_out(self, node: Node, claim: Claim) -> bool:
        if _bears_out(node, claim):
            return True
        if self._source is None or not node.path or kind_of(node.path) & TEXT:
            return False
        try:
            return _bears_out(node, claim, await self._source(node.id))
        except (NotFound, Busy):  # it was just removed, or is being written
            return False

    async def contradicts(self, claim: Claim) -> Sequence[Node]:
        """History that is about the same, still stands and says otherwise."""
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
    """Whether a name stands in a text as a whole word, whatever its case."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE) is not None


def _is_at(path: str, place: str) -> bool:
    """Whether a path is a place, ends with it or lies below it; a place may be written with dots, as a module is."""
    spelled = (place, place.replace(".", "/"), f"{place.replace('.', '/')}.py")
    return any(path == each or path.endswith(f"/{each}") or f"/{each}/" in f"/{path}" for each in spelled)
