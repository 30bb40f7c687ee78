"""Commits by when they were made, by whom, of which files and on what: questions to the tables of the log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from clew.knowledge.code.store import Sql
from clew.knowledge.history.commit_words import commits_on

MOST_PATHS = 5_000
_FIRST, _LAST = -(1 << 62), 1 << 62


class CommitFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which commits; all given parts must hold. `until` is the first moment that is not meant. `words` are in the
    message, or in the path of a file that was touched."""

    since: datetime | None = None
    until: datetime | None = None
    paths: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


def find_numbers(sql: Sql, wanted: CommitFilter, limit: int, *, oldest_first: bool = False) -> tuple[list[int], int]:
    """The numbers of the newest commits that are meant, newest first, or of the oldest ones, and how many there are."""
    first, last = _seconds(wanted.since, _FIRST), _seconds(wanted.until, _LAST)
    conditions, values = ["c.at >= ? AND c.at < ?"], list[Any]([first, last])
    if wanted.authors:
        conditions.append("c.author IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(wanted.authors))
    if wanted.paths:
        conditions.append(
            "c.number IN (SELECT t.of_commit FROM git_touched t JOIN git_paths p ON p.number = t.path"
            " WHERE p.path IN (SELECT value FROM json_each(?)))"
        )
        values.append(json.dumps(wanted.paths))
    if wanted.words:
        conditions.append("c.number IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(_on_words(sql, wanted.words, first, last)))
    where = f"FROM git_commits c WHERE {' AND '.join(conditions)}"
    order = "c.at, c.number DESC" if oldest_first else "c.at DESC, c.number"
    rows = sql.execute(f"SELECT c.number {where} ORDER BY {order} LIMIT ?", (*values, limit)).fetchall()
    [(total,)] = sql.execute(f"SELECT count(*) {where}", tuple(values)).fetchall()
    return [number for (number,) in rows], int(total)


def find_paths(sql: Sql, name: str) -> list[str]:
    """The files that a name means: the one of this path; else those of this name in any folder; else those below a
    folder of this path."""
    plain = name.removeprefix("./").rstrip("/")
    if not plain:
        return []
    for condition, value in (
        ("path = ?", plain),
        ("substr(path, -length(?1)) = ?1", f"/{plain}"),
        ("substr(path, 1, length(?1)) = ?1", f"{plain}/"),
    ):
        rows = sql.execute(f"SELECT path FROM git_paths WHERE {condition} ORDER BY path LIMIT {MOST_PATHS}", (value,))
        found = [path for (path,) in rows]
        if found:
            return found
    return []


def find_authors(sql: Sql, name: str) -> list[str]:
    """The authors of this name, or whose name has all of its words."""
    wanted = name.casefold().split()
    authors = [author for (author,) in sql.execute("SELECT DISTINCT author FROM git_commits ORDER BY author")]
    same = [author for author in authors if author.casefold().split() == wanted]
    return same or [author for author in authors if wanted and set(wanted) <= set(author.casefold().split())]


def _on_words(sql: Sql, words: Sequence[str], first: int, last: int) -> list[int]:
    touching = " AND ".join("instr(lower(p.path), ?)" for _ in words)
    rows = sql.execute(
        "SELECT DISTINCT c.number FROM git_paths p JOIN git_touched t ON t.path = p.number"
        f" JOIN git_commits c ON c.number = t.of_commit WHERE {touching} AND c.at >= ? AND c.at < ?",
        (*(word.lower() for word in words), first, last),
    ).fetchall()
    return [*commits_on(sql, " ".join(words), first, last), *(number for (number,) in rows)]


def _seconds(moment: datetime | None, otherwise: int) -> int:
    return otherwise if moment is None else int(moment.astimezone(UTC).timestamp())
