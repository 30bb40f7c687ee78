"""Why a line is as it is: the commits that wrote it, the decisions that speak of it, and what history remembers of its
file and symbol."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from clew.access import Principal
from clew.errors import ClewError
from clew.knowledge.git_home import find_head
from clew.knowledge.git_objects import find_objects
from clew.knowledge.history.anchors import CodeRef, references_of
from clew.knowledge.history.blame import LineOrigin, file_of, find_origins, read_line_history
from clew.knowledge.history.commits import Commit, read_named
from clew.knowledge.history.cross_domain import CrossDomain
from clew.knowledge.history.decision import Decision
from clew.knowledge.history.resolutions import Resolution, find_resolutions
from clew.trail.nodes import Node
from clew.trail.store import Trail

NEAR = 5
"""So many lines away, what was noted of a line is still about another."""
_TOLD_APART = frozenset(("adr", "changelog", "commit"))


class Around(msgspec.Struct, frozen=True, kw_only=True):
    """The innermost symbol around a line, and the lines that it takes."""

    qualname: str = ""
    first: int = 0
    last: int = 0


NOWHERE = Around()


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """What explains a line, or several up to `last_line`. Everything cites its source: commits by name, decisions by
    place, entries by id. `origin` is that of the first line, without keys; `uncommitted` are the lines that no commit
    has yet."""

    path: str
    line: int
    last_line: int
    origin: LineOrigin
    uncommitted: tuple[int, ...]
    commits: tuple[Commit, ...]
    resolutions: tuple[Resolution, ...]
    decisions: tuple[Decision, ...]
    history: tuple[Node, ...]


async def blame_why(
    root: Path,
    path: str,
    line: int,
    last_line: int = 0,
    *,
    trail: Trail,
    by: Principal,
    decisions: Sequence[Decision] = (),
    around: Around = NOWHERE,
    limit: int = 10,
) -> Why:
    """Explain a line of a file on disk, or all from it to the last. `decisions` are those of the repository; `around`
    is the symbol around the line, where it is known. Raises NotFound for a line that there is not,
    InvalidInput for a file that is not shown, ClewError without git, SourceError when git cannot say."""
    place, last = file_of(root, path), max(line, last_line)
    if await asyncio.to_thread(find_head, root) is None:
        hint = "Run it in a repository that has a commit"
        raise ClewError("blame-why needs git history; this folder has none", hint=hint)
    origins = await asyncio.to_thread(find_origins, root, place, line, last)
    commits = await asyncio.to_thread(_read_history, root, origins, limit)
    meant = [each for each in decisions if _speaks_of(each, place, around.qualname, commits)]
    return Why(
        path=place,
        line=line,
        last_line=last,
        origin=origins[0],
        uncommitted=tuple(number for number, each in enumerate(origins, line) if not each.sha),
        commits=tuple(commits),
        resolutions=tuple(find_resolutions(commits)),
        decisions=tuple({(each.title, each.version): each for each in meant}.values())[:limit],
        history=tuple(await _remembered(CrossDomain(trail, by), place, line, last, around))[:limit],
    )


def _read_history(root: Path, origins: Sequence[LineOrigin], limit: int) -> list[Commit]:
    """All that made one line what it is; of several lines, the commits that wrote them, newest first."""
    if len(origins) == 1:
        return read_line_history(root, origins[0], limit=limit)
    names = list(dict.fromkeys(each.sha for each in origins if each.sha))
    found = read_named(find_objects(root), names)
    return sorted(found, key=lambda commit: commit.at, reverse=True)[:limit]


async def _remembered(graph: CrossDomain, path: str, line: int, last: int, around: Around) -> list[Node]:
    """Entries about the symbol first, then those about its file, each once. Decisions of files are told apart."""
    refs = [f"{path}#{around.qualname}"] if around.qualname else []
    found = [node for ref in (*refs, path) for node in await graph.history_for_code(ref)]
    told = [node for node in found if node.metadata.get("kind") not in _TOLD_APART]
    return list({node.id: node for node in told if _is_about(node, path, line, last, around)}.values())


def _is_about(node: Node, path: str, line: int, last: int, around: Around) -> bool:
    """Whether an entry that names this file means these lines: it names them, their symbol, or the file as a whole."""
    refs = [ref for ref in references_of(node) if ref.path == path]
    return not refs or any(_covers(ref, line, last, around) for ref in refs)


def _covers(ref: CodeRef, line: int, last: int, around: Around) -> bool:
    if ref.qualname:
        return around.qualname == ref.qualname or around.qualname.startswith(f"{ref.qualname}.")
    is_near = line - NEAR <= ref.line <= last + NEAR
    return not ref.line or is_near or (bool(around.qualname) and around.first <= ref.line <= around.last)


def _speaks_of(decision: Decision, path: str, symbol: str, commits: Sequence[Commit]) -> bool:
    """Whether a decision record names the file or the symbol, or was written in a commit that wrote the line, not
    being the first of all. An entry of a changelog must do both."""
    codes = (f"`{symbol}`", f"`{symbol}()`", f"#{symbol}") if symbol else ()
    is_named = any(code in decision.text for code in codes) or decision.mentions(path)
    written_in = {file.path for commit in commits if commit.parents for file in commit.files}
    is_written = decision.source in written_in or any(decision.source == commit.sha for commit in commits)
    return is_named and is_written if decision.kind == "changelog" else is_named or is_written
