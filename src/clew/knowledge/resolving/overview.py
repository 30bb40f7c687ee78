"""What a project is about, where a question asks for no more than that: how its README begins."""

from __future__ import annotations

import re

from clew.access import Principal
from clew.trail.kinds import NodeDomain
from clew.trail.node import Node
from clew.trail.nodes import NodeFilter, NodeGraph, ScoredNode, to_selector
from clew.trail.store import Trail

_PROJECT = r"(?:this|the|our) (?:project|repo|repository|code ?base|package|library|program|code|thing)"
_OVERVIEW = re.compile(
    rf"^(?:so |please )?(?:what(?:'s| is| does)|explain|describe|summari[sz]e|tell me about|give me an overview of"
    rf"|overview of|introduce) {_PROJECT}(?: (?:about|for|do|does|all about))*[\s?.!]*$",
    re.IGNORECASE,
)

_NAMED = re.compile(
    r"^(?:so |please )?(?:what(?:'s| is| does)|explain|describe|tell me about|introduce)"
    r" ['\"`]?(?P<name>[\w.@/-]{1,80}?)['\"`]?(?: (?:about|for|do|all about))*[\s?.!]*$",
    re.IGNORECASE,
)
_SPELLINGS = ("README", "Readme", "readme")
LOOKED_AT = 200


def is_overview(question: str) -> bool:
    """Whether a question asks what the whole project is about."""
    return _OVERVIEW.match(" ".join(question[:200].split())) is not None


def named_in(question: str) -> str:
    """The one thing that a question wants to be told of, where it asks for no more than that."""
    found = _NAMED.match(" ".join(question[:200].split()))
    return found["name"] if found is not None else ""


async def find_named_overview(trail: Trail, name: str, folder: str, *, by: Principal, limit: int) -> list[ScoredNode]:
    """The same for a question that calls the project by its name: that of its folder, or the title of its README.
    Nothing where it is no name of the project."""
    found = await find_overview(trail, by=by, limit=limit)
    titles = {folder.casefold(), *(each.node.name.strip("# ").casefold() for each in found[:1])}
    return found if name.casefold() in titles else []


async def find_overview(trail: Trail, *, by: Principal, limit: int) -> list[ScoredNode]:
    """The first sections of the README at the top of the project, in their order."""
    nodes = [node for spelled in _SPELLINGS for node in await _sections(trail, spelled, by)]
    ordered = sorted(nodes, key=lambda node: (node.path or "", node.line_start or 0))
    return [ScoredNode(node=node, similarity=1.0) for node in ordered[:limit]]


async def _sections(trail: Trail, spelled: str, by: Principal) -> list[Node]:
    where = to_selector(NodeFilter(domain=NodeDomain.ACADEMIC, path=f"{spelled}*"))
    page = await trail.records.list(where, by=by, limit=LOOKED_AT)
    return [node for node in await NodeGraph(trail, by).as_nodes(list(page.items)) if "/" not in (node.path or "/")]
