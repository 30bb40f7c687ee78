"""The log of a repository in SQLite tables, next to the code index: commits, the files each touched, renames, and a
full-text index of the messages. All of it is derived: the next `refresh` restores what is dropped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import msgspec

from clew.knowledge.git.log import NEWEST, Commit, Touched, read_commits
from clew.knowledge.git.run import GitFailed, find_head, run_git
from clew.knowledge.git.search import (
    COLUMNS,
    Sql,
    ensure_index,
    has_words,
    named_commits,
    numbers_about,
    quoted,
    search_rows,
)

MOST_PATHS = 5_000
_BATCH = 500
_MAX_RENAMES = 50
_FIRST, _LAST = -(1 << 62), 1 << 62

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
_TOUCHING = (
    "c.number IN (SELECT t.of_commit FROM git_touched t JOIN git_paths p ON p.number = t.path"
    " WHERE p.path IN (SELECT value FROM json_each(?)))"
)


class Database(Protocol):
    """The file that holds the tables. `era` changes when the file is made anew."""

    @property
    def era(self) -> int: ...

    def writing(self) -> AbstractContextManager[Sql]:
        """One transaction: all of it happens, or nothing."""
        ...

    def reading(self) -> AbstractContextManager[Sql]: ...


class LogRefresh(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a refresh. `head` is None without history."""

    head: str | None
    added: int = 0
    removed: int = 0


class CommitFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which commits; all given parts must hold. `since` is inclusive, `until` exclusive. `words` stand in the message
    or in the path of a touched file; `mentions` is a name or phrase of the message."""

    since: datetime | None = None
    until: datetime | None = None
    paths: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    mentions: str = ""


class Activity(msgspec.Struct, frozen=True, kw_only=True):
    """The commits that touched some paths: how many, the first and the last, and the authors by number of commits."""

    commits: int
    first: Commit
    last: Commit
    authors: tuple[tuple[str, int], ...]


class GitLog:
    """The log of one folder's repository. Threads may share it."""

    def __init__(self, store: Database, root: Path) -> None:
        self._store, self._root = store, root
        with store.writing() as sql:
            _prepare(sql)

    def refresh(self, *, limit: int = NEWEST) -> LogRefresh:
        """Read new commits, and drop those that the checked out commit does not have, after a rewrite or on another
        branch. A refresh that is killed is completed by the next one. Raises SourceError."""
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
            sql.execute("DELETE FROM git_state WHERE name = 'head'")
            if head is not None:
                sql.execute("INSERT INTO git_state VALUES ('head', ?)", (head,))
        return LogRefresh(head=head, added=added, removed=removed)

    @property
    def head(self) -> str | None:
        """The commit that was checked out at the last refresh."""
        rows = self._rows("SELECT value FROM git_state WHERE name = 'head'")
        return rows[0][0] if rows else None

    def count(self) -> int:
        return int(self._rows("SELECT count(*) FROM git_commits")[0][0])

    def find(self, sha: str) -> Commit | None:
        """The only known commit whose name begins so."""
        if len(sha) < 4 or not all(letter in "0123456789abcdef" for letter in sha):
            return None
        rows = self._rows(
            f"SELECT {COLUMNS} FROM git_commits c WHERE c.sha >= ? AND c.sha < ? LIMIT 2", (sha, f"{sha}g")
        )
        return self._commit(rows[0]) if len(rows) == 1 else None

    def among(self, wanted: CommitFilter, *, limit: int = 10, oldest_first: bool = False) -> tuple[list[Commit], int]:
        """The newest commits that fit, newest first, or the oldest, and the number of all that fit."""
        order = "c.at, c.number DESC" if oldest_first else "c.at DESC, c.number"
        with self._store.reading() as sql:
            where, values = _where(sql, wanted)
            rows = sql.execute(f"SELECT {COLUMNS} {where} ORDER BY {order} LIMIT ?", (*values, limit)).fetchall()
            [(total,)] = sql.execute(f"SELECT count(*) {where}", tuple(values)).fetchall()
        return [self._commit(row) for row in rows], int(total)

    def recent(self, *, since: datetime | None = None, limit: int = 50) -> list[Commit]:
        return self.among(CommitFilter(since=since), limit=limit)[0]

    def commits_of(self, path: str, *, limit: int = 10) -> list[Commit]:
        """Commits that touched a file under any name that it had, newest first."""
        return self.among(CommitFilter(paths=tuple(self.names_of(path))), limit=limit)[0]

    def activity(self, paths: Sequence[str]) -> Activity | None:
        """Who touched these paths, and when first and last. None when no commit did."""
        wanted = CommitFilter(paths=tuple(paths))
        last, total = self.among(wanted, limit=1)
        if not last or not paths:
            return None
        authors = self._rows(
            f"SELECT c.author, count(*) FROM git_commits c WHERE {_TOUCHING} GROUP BY c.author ORDER BY 2 DESC, 1",
            (json.dumps(wanted.paths),),
        )
        [first] = self.among(wanted, limit=1, oldest_first=True)[0]
        return Activity(commits=total, first=first, last=last[0], authors=tuple(authors))

    def names_of(self, path: str) -> list[str]:
        """A path and its earlier names, latest first."""
        names = [path]
        for name in names:
            rows = self._rows(
                "SELECT DISTINCT o.path FROM git_touched t JOIN git_paths p ON p.number = t.path"
                " JOIN git_paths o ON o.number = t.old_path WHERE p.path = ?",
                (name,),
            )
            names += [old for (old,) in rows if old not in names][: _MAX_RENAMES - len(names)]
        return names

    def paths_of(self, name: str) -> list[str]:
        """The files that a name means: the path itself, else files of this name in any folder, else all below a folder.
        A single file comes with its earlier names."""
        plain = name.removeprefix("./").rstrip("/")
        for condition, value in (
            ("path = ?", plain),
            ("substr(path, -length(?1)) = ?1", f"/{plain}"),
            ("substr(path, 1, length(?1)) = ?1", f"{plain}/"),
        ):
            rows = self._rows(
                f"SELECT path FROM git_paths WHERE {condition} ORDER BY path LIMIT {MOST_PATHS}", (value,)
            )
            if plain and rows:
                return self.names_of(rows[0][0]) if len(rows) == 1 else [path for (path,) in rows]
        return []

    def authors_of(self, name: str) -> list[str]:
        """The authors of this name, else those whose name has all of its words."""
        wanted = name.casefold().split()
        authors = [author for (author,) in self._rows("SELECT DISTINCT author FROM git_commits ORDER BY author")]
        same = [author for author in authors if author.casefold().split() == wanted]
        return same or [author for author in authors if wanted and set(wanted) <= set(author.casefold().split())]

    def search(self, text: str, *, limit: int = 10, since: datetime | None = None) -> list[tuple[Commit, float]]:
        """Commits that a text is about, best first, each with the share of the text that its message has, from 0 to 1.
        A commit that the text names comes first."""
        named = [found for found in map(self.find, named_commits(text)) if found is not None]
        with self._store.reading() as sql:
            scored = search_rows(sql, text, limit, _seconds(since, _FIRST))
        found = [(self._commit(row), share) for row, share in scored]
        once = {each.sha: (each, share) for each, share in [*found, *((each, 1.0) for each in named)]}
        return sorted(once.values(), key=lambda each: -(each[1] + (each[0] in named)))[:limit]

    def has_words(self, text: str) -> bool:
        """Whether any message has a word of a text, or the text names a commit."""
        with self._store.reading() as sql:
            return has_words(sql, text) or any(map(self.find, named_commits(text)))

    def _forget(self, sql: Sql, head: str | None, known: str | None) -> int:
        """Drop commits that the new head does not have; all of them when git no longer knows the old head."""
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


# -- writing -------------------------------------------------------------------------------------------------------


def _prepare(sql: Sql) -> None:
    """Create the tables. When some are missing, all are made anew, so that they belong together."""
    found = sql.execute(f"SELECT name FROM sqlite_schema WHERE name IN ({','.join('?' * len(_NAMES))})", _NAMES)
    present = {name for (name,) in found}
    if present and present != set(_NAMES):
        for name in ("git_words", *_NAMES):
            sql.execute(f"DROP TABLE IF EXISTS {name}")
    sql.execute(_TABLES)
    ensure_index(sql)


def _write(sql: Sql, commit: Commit, paths: dict[str, int]) -> int:
    """Write a commit; 0 when it is known."""
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
    """The number of a path, which is added if new; None for an empty path."""
    if path and path not in paths:
        statement = "INSERT INTO git_paths(path) VALUES (?) ON CONFLICT DO UPDATE SET path = path RETURNING number"
        [(paths[path],)] = sql.execute(statement, (path,)).fetchall()
    return paths[path] if path else None


def _drop(sql: Sql, sha: str) -> int:
    rows = sql.execute("DELETE FROM git_commits WHERE sha = ? RETURNING number", (sha,)).fetchall()
    sql.executemany("DELETE FROM git_touched WHERE of_commit = ?", rows)
    return len(rows)


def _trim(sql: Sql, limit: int) -> int:
    statement = "SELECT sha FROM git_commits ORDER BY at DESC, number LIMIT -1 OFFSET ?"
    return sum(_drop(sql, sha) for (sha,) in sql.execute(statement, (limit,)).fetchall())


def _batches(commits: Iterable[Commit]) -> Iterator[list[Commit]]:
    feed = iter(commits)
    while batch := list(islice(feed, _BATCH)):
        yield batch


# -- filters -------------------------------------------------------------------------------------------------------


def _where(sql: Sql, wanted: CommitFilter) -> tuple[str, list[Any]]:
    conditions = ["c.at >= ? AND c.at < ?"]
    values = list[Any]([_seconds(wanted.since, _FIRST), _seconds(wanted.until, _LAST)])
    if wanted.authors:
        conditions.append("c.author IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(wanted.authors))
    if wanted.paths:
        conditions.append(_TOUCHING)
        values.append(json.dumps(wanted.paths[:MOST_PATHS]))
    if wanted.words:
        conditions.append("c.number IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(_numbers_on(sql, wanted.words)))
    if wanted.mentions:
        conditions.append("c.number IN (SELECT rowid FROM git_words WHERE git_words MATCH ?)")
        values.append(quoted(wanted.mentions))
    return f"FROM git_commits c WHERE {' AND '.join(conditions)}", values


def _numbers_on(sql: Sql, words: Sequence[str]) -> list[int]:
    """Commits whose message is about these words, and those that touched a path with all of them."""
    touching = " AND ".join("instr(lower(p.path), ?)" for _ in words)
    rows = sql.execute(
        f"SELECT DISTINCT t.of_commit FROM git_paths p JOIN git_touched t ON t.path = p.number WHERE {touching}",
        tuple(word.lower() for word in words),
    ).fetchall()
    return [*numbers_about(sql, " ".join(words)), *(number for (number,) in rows)]


def _seconds(moment: datetime | None, otherwise: int) -> int:
    return otherwise if moment is None else int(moment.astimezone(UTC).timestamp())
