"""Why a line is as it is: the commits that wrote it, the decisions that speak of it, and what history remembers of its
file and symbol."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from clew.access import Principal
from clew.knowledge.history.anchors import parse_ref
from clew.knowledge.history.blame import LineOrigin, find_origin, read_line_history
from clew.knowledge.history.commits import Commit
from clew.knowledge.history.cross_domain import CrossDomain
from clew.knowledge.history.decision import Decision
from clew.knowledge.history.resolutions import Resolution, find_resolutions
from clew.trail.nodes import Node
from clew.trail.store import Trail


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """What explains a line. Everything cites its source: commits by name, decisions by place, entries by id."""

    path: str
    line: int
    origin: LineOrigin
    commits: tuple[Commit, ...]
    resolutions: tuple[Resolution, ...]
    decisions: tuple[Decision, ...]
    history: tuple[Node, ...]


async def blame_why(
    root: Path,
    path: str,
    line: int,
    *,
    trail: Trail,
    by: Principal,
    decisions: Sequence[Decision] = (),
    symbol: str = "",
    limit: int = 10,
) -> Why:
    """Explain one line of a file on disk. `decisions` are those of the repository; `symbol` is the qualname around the
    line, where it is known. Raises NotFound for a line that there is not, SourceError when git cannot say."""
    place = parse_ref(path).path
    origin = await asyncio.to_thread(find_origin, root, place, line)
    commits = await asyncio.to_thread(read_line_history, root, origin, limit=limit)
    return Why(
        path=place,
        line=line,
        origin=origin,
        commits=tuple(commits),
        resolutions=tuple(find_resolutions(commits)),
        decisions=tuple(decision for decision in decisions if _speaks_of(decision, place, symbol, commits))[:limit],
        history=tuple(await _remembered(CrossDomain(trail, by), place, symbol))[:limit],
    )


async def _remembered(graph: CrossDomain, path: str, symbol: str) -> list[Node]:
    """Entries about the symbol first, then those about its file, each once."""
    refs = [f"{path}#{symbol}"] if symbol else []
    found = [node for ref in (*refs, path) for node in await graph.history_for_code(ref)]
    return list({node.id: node for node in found}.values())


def _speaks_of(decision: Decision, path: str, symbol: str, commits: Sequence[Commit]) -> bool:
    """Whether a decision names the file or the symbol, or was written in a commit that wrote the line."""
    is_named = (
        any(code in decision.text for code in (f"`{symbol}`", f"`{symbol}()`", f"#{symbol}")) if symbol else False
    )
    if is_named or decision.mentions(path):
        return True
    written_in = {file.path for commit in commits for file in commit.files}
    by_commit = any(decision.source == commit.sha for commit in commits)
    return by_commit or (decision.kind == "adr" and decision.source in written_in)
