"""Explanations of lines: the commits that wrote them, the decisions that name them, and the entries about their file
and symbol."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from clew.access import Principal
from clew.errors import ClewError
from clew.knowledge.code.file_content import find_origins
from clew.knowledge.code.models import file_of
from clew.knowledge.git.blame import LineOrigin, read_line_history
from clew.knowledge.git.log import GitCommit, read_named
from clew.knowledge.git.run import find_head, find_objects
from clew.knowledge.history.decisions import DecisionRecord
from clew.knowledge.history.links import CrossDomain, references_of
from clew.knowledge.nodes.kinds import NodeDomain
from clew.knowledge.nodes.node_store import Node
from clew.trail.store import Trail

NEAR = 5
"""The largest number of lines between two places for which an entry about one still explains the other."""


class LineExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """The explanation of a line, or of several up to `last_line`. `uncommitted` are the lines that no commit has
    yet."""

    path: str
    line: int
    last_line: int
    uncommitted: tuple[int, ...]
    commits: tuple[GitCommit, ...]
    decisions: tuple[DecisionRecord, ...]
    history: tuple[Node, ...]


async def blame_why(
    root: Path,
    path: str,
    line: int,
    last_line: int = 0,
    *,
    trail: Trail,
    by: Principal,
    decisions: Sequence[DecisionRecord] = (),
    symbol: str = "",
    limit: int = 10,
) -> LineExplanation:
    """Explain a line of a file on disk, or all from it to the last. `decisions` are those of the repository; `symbol`
    is the qualified name of the symbol around the line. Raises NotFound for a missing line, InvalidInput for a file
    that is not shown, ClewError without git history, SourceError when git fails."""
    place, last = file_of(root, path), max(line, last_line)
    if await asyncio.to_thread(find_head, root) is None:
        hint = "Run it in a repository that has a commit"
        raise ClewError("blame-why needs git history; this folder has none", hint=hint)
    origins = await asyncio.to_thread(find_origins, root, place, line, last)
    commits = await asyncio.to_thread(_read_history, root, origins, limit)
    return LineExplanation(
        path=place,
        line=line,
        last_line=last,
        uncommitted=tuple(number for number, each in enumerate(origins, line) if not each.sha),
        commits=tuple(commits),
        decisions=tuple(each for each in decisions if _speaks_of(each, place, symbol, commits))[:limit],
        history=tuple(
            node
            for node in await _entries_about(CrossDomain(trail, by), place, symbol)
            if _is_near(node, place, line, last)
        )[:limit],
    )


def _read_history(root: Path, origins: Sequence[LineOrigin], limit: int) -> list[GitCommit]:
    """The commits that shaped one line; of several lines, the commits that wrote them, newest first."""
    if len(origins) == 1:
        return read_line_history(root, origins[0], limit=limit)
    names = list(dict.fromkeys(each.sha for each in origins if each.sha))
    found = read_named(find_objects(root), names)
    return sorted(found, key=lambda commit: commit.at, reverse=True)[:limit]


async def _entries_about(graph: CrossDomain, path: str, symbol: str) -> list[Node]:
    """Entries about the symbol and those that it is a part of, then about the file."""
    parts = symbol.split(".") if symbol else []
    refs = [f"{path}#{'.'.join(parts[:count])}" for count in range(len(parts), 0, -1)]
    found = [node for ref in (*refs, path) for node in await graph.linked(ref, NodeDomain.HISTORY)]
    return list({node.id: node for node in found}.values())


def _is_near(node: Node, path: str, line: int, last: int) -> bool:
    """Whether an entry names no line of a file, or one that is close to these."""
    noted = [ref.line for ref in references_of(node) if ref.path == path and ref.line]
    return not noted or any(line - NEAR <= each <= last + NEAR for each in noted)


def _speaks_of(decision: DecisionRecord, path: str, symbol: str, commits: Sequence[GitCommit]) -> bool:
    """Whether a decision record names the file or the symbol, or was written in a commit that wrote the line and is not
    the first of all."""
    codes = (f"`{symbol}`", f"`{symbol}()`", f"#{symbol}") if symbol else ()
    is_named = any(code in decision.text for code in codes) or decision.mentions(path)
    written_in = {file.path for commit in commits if commit.parents for file in commit.files}
    return is_named or decision.source in written_in
