"""Where in the files that a text is about: the function that a traceback names, or else the symbol that fits best."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from clew.knowledge.code.models import Located, SymbolRow
from clew.knowledge.code.queries import find_place
from clew.knowledge.code.rows import find_symbols
from clew.knowledge.code.search_index import Hit
from clew.knowledge.code.store import Sql

MAX_LOOKED_AT, MOST_FRAMES = 20_000, 100

_FRAME = re.compile(r'File "([^"\n]{1,300})", line (\d{1,7}), in (\w{1,200})')


class Frame(NamedTuple):
    """A line of a traceback; its number may be that of another version of the file."""

    path: str
    line: int
    name: str


def place_hits(sql: Sql, text: str, hits: Sequence[Hit]) -> list[Located]:
    """Each hit with its best line, in the same order."""
    frames = read_frames(text)
    places = [
        _framed(sql, frames, hit.path) or find_place(sql, hit.path, hit.name) or find_place(sql, hit.path, "")
        for hit in hits
    ]
    return [_located(hit, row) for hit, row in zip(hits, places, strict=True) if row is not None]


def read_frames(text: str) -> list[Frame]:
    """The frames of the tracebacks in a text, the innermost first."""
    found = _FRAME.findall(text[:MAX_LOOKED_AT])[-MOST_FRAMES:]
    return [Frame(path.replace("\\", "/"), int(line), name) for path, line, name in reversed(found)]


def _framed(sql: Sql, frames: Sequence[Frame], path: str) -> SymbolRow | None:
    """The function of the innermost frame in a file; of several of its name the one around the line, or the first."""
    for frame in frames:
        if f"/{frame.path}".endswith(f"/{path}") or f"/{path}".endswith(f"/{frame.path}"):
            rows = find_symbols(sql, "WHERE f.path = ? AND s.name = ? ORDER BY s.line_start", (path, frame.name))
            around = [row for row in rows if row.line_start <= frame.line <= row.line_end]
            if rows:
                return (around or rows)[0]
    return None


def _located(hit: Hit, row: SymbolRow) -> Located:
    return Located(path=row.path, score=hit.score, blob=row.blob, line=row.line_start, symbol=row.qualname, why=hit.why)
