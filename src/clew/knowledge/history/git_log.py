"""What git remembers of a repository, kept in tables beside the code: commits, the files each touched, and the way back
through renames. It is derived: dropping the tables loses nothing that the next `refresh` does not bring back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from clew.knowledge.code.store import CodeStore, Sql
from clew.knowledge.git import GitFailed, run_git
from clew.knowledge.git_home import find_head
from clew.knowledge.history.blame import find_origin, read_line_history
from clew.knowledge.history.commit_queries import CommitFilter, find_authors, find_numbers, find_paths
from clew.knowledge.history.commit_words import ensure_index, find_commits, has_words, named_commits
from clew.knowledge.history.commits import NEWEST, Commit, Touched, read_commits

_BATCH = 500
_SHORTEST = 4
_MAX_NAMES = 50
"""Names that one file is followed through."""

_TABLES = """
CREATE TABLE IF NOT EXISTS git_commits(
    number INTEGER PRIMARY KEY, sha TEXT NOT NULL UNIQUE, parents TEXT NOT NULL, at INTEGER NOT NULL,
    author TEXT NOT NULL, subject TEXT NOT NULL, body TEXT NOT NULL, trailers TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS git_paths(number INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE IF NOT EXISTS git_touched(
    path INTEGER NOT NULL, of_commit INTEGER NOT NULL, kind TEXT NOT NULL, old_path INTEGER,
    PRIMARY KEY (path, of_commit)) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS git_touched_commit ON git_touched(of_commit);
CREATE INDEX IF NOT EXISTS git_commits_at ON git_commits(at);
CREATE TABLE IF NOT EXISTS git_state(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
"""
_NAMES = ("git_commits", "git_paths", "git_touched", "git_state")
_COLUMNS = "c.number, c.sha, c.parents, c.at, c.author, c.subject, c.body, c.trailers"


class LogRefresh(msgspec.Struct, frozen=True, kw_only=True):
    """What one refresh did. `head` is None where there is no history."""

    head: str | None
    added: int = 0
    removed: int = 0


class GitLog:
    """The log of the repository of one folder, in the store of its code. Threads may share it."""

    def __init__(self, store: CodeStore, root: Path) -> None:
        self._store, self._root = store, root
        with store.writing() as sql:
            _prepare(sql)

    def refresh(self, *, limit: int = NEWEST) -> LogRefresh:
        """Follow the repository: read commits that are new, forget those that what is checked out no longer has.

        History that was rewritten, and another branch, are followed as well. A refresh that is killed is completed by
        the next one. Raises SourceError.
        """
        head, known = find_head(self._root), self.head
        if head == known:
            return LogRefresh(head=head)
        with self._store.writing() as sql:
            _prepare(sql)
            removed = self._forget(sql, head, known)
        known = self.head
        revisions = [head, f"^{known}"] if head and known else [head] if head else []
        added, paths = 0, dict[str, int]()
        for batch in _batches(read_commits(self._root, revisions, limit=limit)) if revisions else ():
            with self._store.writing() as sql:
                added += sum(_write(sql, commit, paths) for commit in batch)
        with self._store.writing() as sql:
            removed += _trim(sql, limit)
            _set_head(sql, head)
        return LogRefresh(head=head, added=added, removed=removed)

    @property
    def head(self) -> str | None:
        """The commit that was checked out at the last refresh."""
        rows = self._rows("SELECT value FROM git_state WHERE name = 'head'")
        return rows[0][0] if rows else None

    def count(self) -> int:
        """How many commits are known."""
        return int(self._rows("SELECT count(*) FROM git_commits")[0][0])

    def commits_of(self, path: str, *, line: int | None = None, limit: int = 10) -> list[Commit]:
        """Commits that touched a file, under any name that it had, or that made one of its lines what it is, newest
        first. Raises NotFound for a line that there is not, SourceError when git cannot say."""
        if line is not None:
            return read_line_history(self._root, find_origin(self._root, path, line), limit=limit)
        names = self.names_of(path)
        rows = self._rows(
            f"SELECT DISTINCT {_COLUMNS} FROM git_touched t JOIN git_paths p ON p.number = t.path"
            f" JOIN git_commits c ON c.number = t.of_commit WHERE p.path IN ({','.join('?' * len(names))})"
            " ORDER BY c.at DESC, c.number LIMIT ?",
            (*names, limit),
        )
        return [self._commit(row) for row in rows]

    def names_of(self, path: str) -> list[str]:
        """A path and what the file was called before, latest name first."""
        names = [path]
        for name in names:
            rows = self._rows(
                "SELECT DISTINCT o.path FROM git_touched t JOIN git_paths p ON p.number = t.path"
                " JOIN git_paths o ON o.number = t.old_path WHERE p.path = ?",
                (name,),
            )
            names += [old for (old,) in rows if old not in names][: _MAX_NAMES - len(names)]
        return names

    def recent(self, *, since: datetime | None = None, limit: int = 50) -> list[Commit]:
        """The newest commits, those since a moment where one is given, newest first."""
        rows = self._rows(
            f"SELECT {_COLUMNS} FROM git_commits c WHERE c.at >= ? ORDER BY c.at DESC, c.number LIMIT ?",
            (_seconds(since), limit),
        )
        return [self._commit(row) for row in rows]

    def among(self, wanted: CommitFilter, *, limit: int = 10, oldest_first: bool = False) -> tuple[list[Commit], int]:
        """The newest of the commits that are meant, newest first, or the oldest, and how many there are in all."""
        with self._store.reading() as sql:
            numbers, total = find_numbers(sql, wanted, limit, oldest_first=oldest_first)
        marks = ",".join("?" * len(numbers))
        rows = self._rows(f"SELECT {_COLUMNS} FROM git_commits c WHERE c.number IN ({marks})", numbers)
        known = {row[0]: row for row in rows}
        return [self._commit(known[number]) for number in numbers if number in known], total

    def paths_of(self, name: str) -> list[str]:
        """The files that a name means, each under all names that it had; of several, under the present ones."""
        with self._store.reading() as sql:
            found = find_paths(sql, name)
        return self.names_of(found[0]) if len(found) == 1 else found

    def authors_of(self, name: str) -> list[str]:
        """The authors that a name means."""
        with self._store.reading() as sql:
            return find_authors(sql, name)

    def find(self, sha: str) -> Commit | None:
        """A commit by its name or the beginning of it, if that is known and means only one."""
        if len(sha) < _SHORTEST or not all(letter in "0123456789abcdef" for letter in sha):
            return None
        rows = self._rows(
            f"SELECT {_COLUMNS} FROM git_commits c WHERE c.sha >= ? AND c.sha < ? LIMIT 2", (sha, f"{sha}g")
        )
        return self._commit(rows[0]) if len(rows) == 1 else None

    def search(self, text: str, *, limit: int = 10, since: datetime | None = None) -> list[tuple[Commit, float]]:
        """Commits that a text is about, by their messages, best first, each with how much of the text it has, from 0 to
        1. One that the text names comes before all others."""
        named = [found for found in map(self.find, named_commits(text)) if found is not None]
        with self._store.reading() as sql:
            scored = find_commits(sql, text, limit, _seconds(since))
        marks = ",".join("?" * len(scored))
        rows = self._rows(f"SELECT {_COLUMNS} FROM git_commits c WHERE c.number IN ({marks})", [n for n, _ in scored])
        known = {row[0]: row for row in rows}
        found = [(self._commit(known[number]), share) for number, share in scored if number in known]
        once = {each.sha: (each, share) for each, share in [*found, *((each, 1.0) for each in named)]}
        return sorted(once.values(), key=lambda each: -(each[1] + (each[0] in named)))[:limit]

    def has_words(self, text: str) -> bool:
        """Whether any commit has a word of a text, or is named by it."""
        with self._store.reading() as sql:
            return has_words(sql, text) or any(map(self.find, named_commits(text)))

    def _forget(self, sql: Sql, head: str | None, known: str | None) -> int:
        """Drop what the new head does not have; all of it where git no longer knows the old one."""
        if known is None:
            return 0
        try:
            gone = run_git(self._root, ["rev-list", "--end-of-options", known, f"^{head}", "--"]) if head else None
        except GitFailed:
            gone = None
        if gone is not None:
            return sum(_drop(sql, sha) for sha in gone.decode(errors="replace").split())
        [(removed,)] = sql.execute("SELECT count(*) FROM git_commits").fetchall()
        sql.execute("DELETE FROM git_touched; DELETE FROM git_commits; DELETE FROM git_state")
        return int(removed)

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._store.reading() as sql:
            return list(sql.execute(statement, tuple(values)))

    def _commit(self, row: tuple[Any, ...]) -> Commit:
        number, sha, parents, at, author, subject, body, trailers = row
        files = self._rows(
            "SELECT p.path, t.kind, coalesce(o.path, '') FROM git_touched t JOIN git_paths p ON p.number = t.path"
            " LEFT JOIN git_paths o ON o.number = t.old_path WHERE t.of_commit = ? ORDER BY p.path",
            (number,),
        )
        return Commit(
            sha=sha,
            parents=tuple(parents.split()),
            at=datetime.fromtimestamp(at, UTC),
            author=author,
            subject=subject,
            body=body,
            trailers=msgspec.json.decode(trailers, type=tuple[tuple[str, str], ...]),
            files=tuple(Touched(*file) for file in files),
        )


def _prepare(sql: Sql) -> None:
    """Make the tables; where some of them are gone, all anew, so that they belong together."""
    found = sql.execute(f"SELECT name FROM sqlite_schema WHERE name IN ({','.join('?' * len(_NAMES))})", _NAMES)
    present = {name for (name,) in found}
    if present and present != set(_NAMES):
        for name in ("git_words", *_NAMES):
            sql.execute(f"DROP TABLE IF EXISTS {name}")
    sql.execute(_TABLES)
    ensure_index(sql)


def _seconds(since: datetime | None) -> int:
    return int(since.timestamp()) if since is not None else -(1 << 62)


def _write(sql: Sql, commit: Commit, paths: dict[str, int]) -> int:
    """How many were written: none where it is known already."""
    trailers = msgspec.json.encode(commit.trailers).decode()
    row = (commit.sha, " ".join(commit.parents), int(commit.at.timestamp()), commit.author)
    made = sql.execute(
        "INSERT INTO git_commits(sha, parents, at, author, subject, body, trailers) VALUES (?,?,?,?,?,?,?)"
        " ON CONFLICT DO NOTHING RETURNING number",
        (*row, commit.subject, commit.body, trailers),
    ).fetchall()
    for (number,) in made:
        touched = [
            (_path(sql, file.path, paths), number, file.kind, _path(sql, file.old_path, paths)) for file in commit.files
        ]
        sql.executemany("INSERT OR REPLACE INTO git_touched VALUES (?,?,?,?)", touched)
    return len(made)


def _path(sql: Sql, path: str, paths: dict[str, int]) -> int | None:
    """The number of a path, made where there is none; None for no path."""
    if path and path not in paths:
        statement = "INSERT INTO git_paths(path) VALUES (?) ON CONFLICT DO UPDATE SET path = path RETURNING number"
        [(paths[path],)] = sql.execute(statement, (path,)).fetchall()
    return paths[path] if path else None


def _drop(sql: Sql, sha: str) -> int:
    rows = sql.execute("DELETE FROM git_commits WHERE sha = ? RETURNING number", (sha,)).fetchall()
    sql.executemany("DELETE FROM git_touched WHERE of_commit = ?", rows)
    return len(rows)


def _trim(sql: Sql, limit: int) -> int:
    """Keep the newest only."""
    statement = "SELECT sha FROM git_commits ORDER BY at DESC, number LIMIT -1 OFFSET ?"
    return sum(_drop(sql, sha) for (sha,) in sql.execute(statement, (limit,)).fetchall())


def _set_head(sql: Sql, head: str | None) -> None:
    sql.execute("DELETE FROM git_state WHERE name = 'head'")
    if head is not None:
        sql.execute("INSERT INTO git_state VALUES ('head', ?)", (head,))


def _batches(commits: Iterable[Commit]) -> Iterator[list[Commit]]:
    feed = iter(commits)
    while batch := list(islice(feed, _BATCH)):
        yield batch
