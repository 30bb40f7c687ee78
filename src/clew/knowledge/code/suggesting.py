"""Names that are close to one that there is not."""

from __future__ import annotations

import difflib

from clew.knowledge.code.refs import readings, short_ref
from clew.knowledge.code.store import Sql

SUGGESTED = 3
MOST_NAMES = 20_000
"""So many names are compared at most."""

_CLOSE = 0.75


def suggest(sql: Sql, ref: str) -> str:
    """A sentence with the names nearest to one, each as it can be asked for; empty where none is near."""
    found = _elsewhere(sql, ref) or _close(sql, ref)
    return f"Did you mean {' or '.join(found)}?" if found else ""


def _elsewhere(sql: Sql, ref: str) -> list[str]:
    """Symbols of the name that was looked for in a file that does not have it."""
    for reading in readings(ref):
        if reading.qualname and reading.line is None:
            query = (
                "SELECT DISTINCT f.path, s.qualname FROM symbols s JOIN files f ON f.id = s.file WHERE s.qualname = ?"
            )
            rows = sql.execute(f"{query} ORDER BY f.path LIMIT ?", (reading.qualname, SUGGESTED))
            return [short_ref(path, qualname) for path, qualname in rows]
    return []


def _close(sql: Sql, ref: str) -> list[str]:
    """The names that differ by a letter or two; of a dotted one, those of the same owner first."""
    owner, _, name = ref.rpartition("#")[2].replace("::", ".").rpartition(".")
    low = name.lower()
    if owner:
        inner = f"{owner.rpartition('.')[2]}.{name}"
        query = "SELECT DISTINCT qualname FROM symbols WHERE abs(length(qualname) - ?) <= 2 AND qualname LIKE '%.%'"
        found = _closest(sql, query, inner, len(inner))
        if found:
            return found
    query = "SELECT DISTINCT name FROM symbols WHERE abs(length(lower) - ?) <= 2 AND qualname != ''"
    return _closest(sql, query, low, len(low))


def _closest(sql: Sql, query: str, wanted: str, length: int) -> list[str]:
    rows = sql.execute(f"{query} LIMIT ?", (length, MOST_NAMES))
    known = {name.lower(): name for (name,) in rows}
    return [known[low] for low in difflib.get_close_matches(wanted.lower(), known, SUGGESTED, _CLOSE)]
