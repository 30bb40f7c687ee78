"""The log of a repository in SQLite tables, next to the code index: commits, the files each touched, renames, and a
full-text index of the messages. All of it is derived: the next `refresh` restores deleted rows."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import msgspec

from clew.knowledge.git.log import NEWEST, GitCommit, Touched, read_commits
from clew.knowledge.git.run import GitFailed, find_head, run_git
from clew.knowledge.text import telling_words
from clew.lazy_pattern import lazy_pattern
from clew.sqlite_file import Sql
from clew.trail.search.text import STOP, split_text

MOST_PATHS = 5_000
MAX_WORDS = 24
LEAST_SHARE = 0.5
"""The share of a question's words that a commit must have; rare words count more."""
_BATCH = 2_000
_MAX_RENAMES = 50
_CANDIDATES = 100
_SUBJECT_WEIGHT = 3.0
_FIRST, _LAST = -(1 << 62), 1 << 62

_TABLES = """
CREATE TABLE IF NOT EXISTS git_commits(
    number INTEGER PRIMARY KEY, sha TEXT NOT NULL UNIQUE, parents TEXT NOT NULL, at INTEGER NOT NULL,
    author TEXT NOT NULL, subject TEXT NOT NULL, body TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS git_paths(number INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE IF NOT EXISTS git_touched(
    path INTEGER NOT NULL, of_commit INTEGER NOT NULL, old_path INTEGER,
    PRIMARY KEY (path, of_commit)) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS git_touched_commit ON git_touched(of_commit);
CREATE INDEX IF NOT EXISTS git_commits_at ON git_commits(at);
CREATE TABLE IF NOT EXISTS git_head(sha TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE VIRTUAL TABLE IF NOT EXISTS git_words USING fts5(
    subject, body, content='git_commits', content_rowid='number', tokenize='porter unicode61 remove_diacritics 2');
CREATE TRIGGER IF NOT EXISTS git_commits_gone AFTER DELETE ON git_commits BEGIN
    INSERT INTO git_words(git_words, rowid, subject, body) VALUES ('delete', old.number, old.subject, old.body);
    DELETE FROM git_touched WHERE of_commit = old.number;
END;
"""
_NAMES = ("git_words", "git_commits", "git_paths", "git_touched", "git_head")
_COLUMNS = "c.number, c.sha, c.parents, c.at, c.author, c.subject, c.body"
_TICKET = lazy_pattern(r"(?<![\w-])[A-Za-z]{1,12}-\d{1,9}(?![\w-])|(?<!\w)#\d{1,9}\b")
_SHA = lazy_pattern(r"(?<!\w)(?=[0-9a-f]*\d)[0-9a-f]{7,40}(?!\w)")
_ASKING_WORDS = """
    commit commits committed history git change changed happened decided decision chose chosen choose picked wrote
    broke broken breaks fix fixed added add adds introduced introduce implement implemented removed remove removes drop
    dropped delete deleted
"""
_ASKING = frozenset(_ASKING_WORDS.split())
"""Words of questions that do not belong to the subject. Commit messages express the same with other words."""


class Database(Protocol):
    """The SQLite file that holds the index of code and the log of git. `era` changes when it is created again."""

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
    """A filter of commits: all given parts must hold. `since` is inclusive, `until` exclusive."""

    since: datetime | None = None
    until: datetime | None = None
    paths: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()


class GitLog:
    """The log of one folder's repository. Threads may share it."""

    def __init__(self, store: Database, root: Path) -> None:
        self._store, self._root = store, root
        self._era: int | None = None
        self._authors: tuple[object, list[str]] = (None, [])

    def refresh(self, *, limit: int = NEWEST) -> LogRefresh:
        """Read new commits, the newest `limit` of them, and drop those that the checked out commit does not have, after
        a rewrite or on another branch. A refresh that is killed is completed by the next one. Raises SourceError."""
        head, known = find_head(self._root), self.head
        if head == known:
            return LogRefresh(head=head)
        with self._store.writing() as sql:
            removed = self._forget(sql, head, known)
        known = self.head
        revisions = [head, f"^{known}"] if head and known else [head] if head else []
        added, paths = 0, dict[str, int]()
        for batch in _batches(read_commits(self._root, revisions, limit=limit)) if revisions else ():
            with self._store.writing() as sql:
                added += _write(sql, batch, paths)
        with self._store.writing() as sql:
            sql.execute("DELETE FROM git_head")
            sql.executemany("INSERT INTO git_head VALUES (?)", [(head,)] if head else [])
        return LogRefresh(head=head, added=added, removed=removed)

    @property
    def head(self) -> str | None:
        """The commit that was checked out at the last refresh."""
        rows = self._rows("SELECT sha FROM git_head")
        return rows[0][0] if rows else None

    def count(self) -> int:
        return int(self._rows("SELECT count(*) FROM git_commits")[0][0])

    def find(self, sha: str) -> GitCommit | None:
        """The commit whose id begins with a prefix; None if no commit or more than one is known."""
        if len(sha) < 4 or not all(letter in "0123456789abcdef" for letter in sha):
            return None
        statement = f"SELECT {_COLUMNS} FROM git_commits c WHERE c.sha >= ? AND c.sha < ? LIMIT 2"
        rows = self._rows(statement, (sha, f"{sha}g"))
        return self._commits(rows)[0] if len(rows) == 1 else None

    def select(
        self, wanted: CommitFilter, *, limit: int = 10, oldest_first: bool = False
    ) -> tuple[list[GitCommit], int]:
        """The newest commits that fit, newest first, or the oldest, with their files; and the number of all that
        fit."""
        order = "c.at, c.number DESC" if oldest_first else "c.at DESC, c.number"
        where, values = _where(wanted)
        with self._reading() as sql:
            rows = sql.execute(f"SELECT {_COLUMNS} {where} ORDER BY {order} LIMIT ?", (*values, limit)).fetchall()
            [(total,)] = sql.execute(f"SELECT count(*) {where}", tuple(values)).fetchall()
        return self._commits(rows), int(total)

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
            ("path > ?1 || '/' AND path < ?1 || '0'", plain),  # `0` comes after `/`
        ):
            statement = f"SELECT path FROM git_paths WHERE {condition} ORDER BY path LIMIT {MOST_PATHS}"
            if plain and (rows := self._rows(statement, (value,))):
                return self.names_of(rows[0][0]) if len(rows) == 1 else [path for (path,) in rows]
        return []

    def authors_of(self, name: str) -> list[str]:
        """The authors of this name, else those whose name has all of its words."""
        wanted = name.casefold().split()
        state = self._store.era, self.head
        if self._authors[0] != state:
            rows = self._rows("SELECT DISTINCT author FROM git_commits ORDER BY author")
            self._authors = state, [author for (author,) in rows]
        authors = self._authors[1]
        same = [author for author in authors if author.casefold().split() == wanted]
        return same or [author for author in authors if wanted and set(wanted) <= set(author.casefold().split())]

    def search(self, text: str, *, limit: int = 10, since: datetime | None = None) -> list[tuple[GitCommit, float]]:
        """Commits that a text is about, best first, each with the share of the text's words that its message has, from
        0 to 1. A commit that the text names comes first."""
        named = self._named(text)
        with self._reading() as sql:
            rows = _search(sql, text, limit, _seconds(since, _FIRST))
        shares = [share for _, share in rows]
        others = list(zip(self._commits([row for row, _ in rows]), shares, strict=True))
        return [*((each, 1.0) for each in named), *(each for each in others if each[0] not in named)][:limit]

    def has_words(self, text: str) -> bool:
        """Whether any message has a word of a text, or the text names a commit."""
        query = " OR ".join(_queries(text))
        statement = "SELECT 1 FROM git_words WHERE git_words MATCH ? LIMIT 1"
        return bool(query and self._rows(statement, (query,))) or bool(self._named(text))

    def _named(self, text: str) -> list[GitCommit]:
        return [found for found in map(self.find, _SHA.findall(text)[:MAX_WORDS]) if found is not None]

    def _forget(self, sql: Sql, head: str | None, known: str | None) -> int:
        """Drop commits that the new head does not have; all of them when git no longer knows the old head."""
        if known is None:
            return 0
        try:
            gone = run_git(self._root, ["rev-list", "--end-of-options", known, f"^{head}", "--"]) if head else None
        except GitFailed:
            gone = None
        if gone is not None:
            names = json.dumps(gone.decode(errors="replace").split())
            return _delete(sql, "sha IN (SELECT value FROM json_each(?))", names)
        sql.execute("DELETE FROM git_head")
        return _delete(sql, "number >= ?", 0)

    def _reading(self) -> AbstractContextManager[Sql]:
        """A read transaction. In a new file, the tables are created first."""
        if self._era != self._store.era:
            with self._store.writing() as sql:
                _prepare(sql)
            self._era = self._store.era
        return self._store.reading()

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._reading() as sql:
            return list(sql.execute(statement, tuple(values)))

    def _commits(self, rows: Sequence[tuple[Any, ...]]) -> list[GitCommit]:
        """The commits of some rows with their files."""
        files: dict[int, list[Touched]] = {row[0]: [] for row in rows}
        touched = self._rows(
            "SELECT t.of_commit, p.path, coalesce(o.path, '') FROM git_touched t JOIN git_paths p ON p.number = t.path"
            " LEFT JOIN git_paths o ON o.number = t.old_path WHERE t.of_commit IN (SELECT value FROM json_each(?))"
            " ORDER BY p.path",
            (json.dumps(list(files)),),
        )
        for number, path, old_path in touched:
            files[number].append(Touched(path, old_path))
        return [
            GitCommit(
                sha=sha,
                parents=tuple(parents.split()),
                at=datetime.fromtimestamp(at, UTC),
                author=author,
                subject=subject,
                body=body,
                files=tuple(files[number]),
            )
            for number, sha, parents, at, author, subject, body in rows
        ]


# -- writing -------------------------------------------------------------------------------------------------------


def _prepare(sql: Sql) -> None:
    """Create the tables. If some are missing, all are created again, so that they belong together."""
    found = sql.execute(f"SELECT name FROM sqlite_schema WHERE name IN ({','.join('?' * len(_NAMES))})", _NAMES)
    present = {name for (name,) in found}
    if present and present != set(_NAMES):
        for name in _NAMES:
            sql.execute(f"DROP TABLE IF EXISTS {name}")
    sql.execute(_TABLES)


def _write(sql: Sql, commits: Sequence[GitCommit], paths: dict[str, int]) -> int:
    """Write the commits that are not known, and return their number."""
    named = {commit.sha: commit for commit in commits}
    known = sql.execute(
        "SELECT sha FROM git_commits WHERE sha IN (SELECT value FROM json_each(?))", (json.dumps(list(named)),)
    )
    for (sha,) in known.fetchall():
        del named[sha]
    [(last,)] = sql.execute("SELECT coalesce(max(number), 0) FROM git_commits").fetchall()
    numbered = list(enumerate(named.values(), last + 1))
    sql.executemany(
        "INSERT INTO git_commits VALUES (?,?,?,?,?,?,?)",
        [
            (at, each.sha, " ".join(each.parents), int(each.at.timestamp()), each.author, each.subject, each.body)
            for at, each in numbered
        ],
    )
    # all at once: inserting row by row takes eight times as long
    sql.execute(
        "INSERT INTO git_words(rowid, subject, body) SELECT number, subject, body FROM git_commits WHERE number > ?",
        (last,),
    )
    touched = [
        (_path(sql, file.path, paths), at, _path(sql, file.old_path, paths))
        for at, each in numbered
        for file in each.files
    ]
    sql.executemany("INSERT OR REPLACE INTO git_touched VALUES (?,?,?)", touched)
    return len(numbered)


def _path(sql: Sql, path: str, paths: dict[str, int]) -> int | None:
    """The number of a path, which is added if new; None for an empty path."""
    if path and path not in paths:
        statement = "INSERT INTO git_paths(path) VALUES (?) ON CONFLICT DO UPDATE SET path = path RETURNING number"
        [(paths[path],)] = sql.execute(statement, (path,)).fetchall()
    return paths[path] if path else None


def _delete(sql: Sql, condition: str, value: object) -> int:
    return len(sql.execute(f"DELETE FROM git_commits WHERE {condition} RETURNING 1", (value,)).fetchall())


def _batches(commits: Iterable[GitCommit]) -> Iterator[list[GitCommit]]:
    feed = iter(commits)
    while batch := list(islice(feed, _BATCH)):
        yield batch


# -- filters and search --------------------------------------------------------------------------------------------


def _where(wanted: CommitFilter) -> tuple[str, list[Any]]:
    conditions = ["c.at >= ? AND c.at < ?"]
    values = list[Any]([_seconds(wanted.since, _FIRST), _seconds(wanted.until, _LAST)])
    if wanted.authors:
        conditions.append("c.author IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(wanted.authors))
    if wanted.paths:
        conditions.append(
            "c.number IN (SELECT t.of_commit FROM git_touched t JOIN git_paths p ON p.number = t.path"
            " WHERE p.path IN (SELECT value FROM json_each(?)))"
        )
        values.append(json.dumps(wanted.paths[:MOST_PATHS]))
    return f"FROM git_commits c WHERE {' AND '.join(conditions)}", values


def _search(sql: Sql, text: str, limit: int, since: int) -> list[tuple[tuple[Any, ...], float]]:
    """Rows of the commits after a moment that match a text, best first, with the shares of words that they have."""
    queries = _queries(text)
    if not queries:
        return []
    recent = "AND rowid IN (SELECT number FROM git_commits WHERE at >= ?)" if since > _FIRST else ""
    moment = (since,) if since > _FIRST else ()
    rows = sql.execute(  # only the messages of the best commits are read
        f"SELECT {_COLUMNS}, score FROM (SELECT rowid AS found, -bm25(git_words, ?, 1.0) AS score FROM git_words"
        f" WHERE git_words MATCH ? {recent} ORDER BY score DESC LIMIT ?)"
        " JOIN git_commits c ON c.number = found ORDER BY score DESC",
        (_SUBJECT_WEIGHT, " OR ".join(queries), *moment, max(limit, _CANDIDATES)),
    ).fetchall()
    shares = _shares(sql, queries, [row[0] for row in rows])
    best = max((row[-1] for row in rows), default=0.0) or 1.0
    fitting = [row for row in rows if shares[row[0]] >= LEAST_SHARE]
    fitting.sort(key=lambda row: -(shares[row[0]] + row[-1] / best))
    return [(row[:-1], round(min(1.0, shares[row[0]]), 4)) for row in fitting[:limit]]


def _shares(sql: Sql, queries: Sequence[str], numbers: Sequence[int]) -> dict[int, float]:
    """For some commits, the share of the queries that their messages match. Rare queries count more."""
    [(total,)] = sql.execute("SELECT count(*) FROM git_commits").fetchall()
    found, weights = dict.fromkeys(numbers, 0.0), 0.0
    statement = (
        "SELECT count(*), json_group_array(rowid) FILTER (WHERE rowid IN (SELECT value FROM json_each(?)))"
        " FROM git_words WHERE git_words MATCH ?"
    )
    for query in queries if numbers else ():
        [(matches, fitting)] = sql.execute(statement, (json.dumps(numbers), query)).fetchall()
        weight = math.log(1 + (total + 1) / (matches + 0.5))
        weights += weight
        for number in json.loads(fitting):
            found[number] += weight
    return {number: weight / weights for number, weight in found.items()}


def _queries(text: str) -> list[str]:
    """A query for each ticket and each significant word of a text. A word comes with the identifiers of the text that
    it is a part of: the index has an identifier as one word."""
    compounds = split_text(text).compounds[:MAX_WORDS]
    rest = _TICKET.sub(" ", text)
    words = [word for word in telling_words(rest) if word not in STOP] if rest.strip() else []
    tickets = [found[0] for found in _TICKET.finditer(text)]
    telling = [*tickets, *(word for word in words if word not in _ASKING)] or words
    groups = ([word, *(each for each in compounds if word in each)] for word in dict.fromkeys(telling[:MAX_WORDS]))
    return [" OR ".join(map(_quoted, group)) for group in groups]


def _quoted(phrase: str) -> str:
    """A phrase of FTS5: nothing in it is taken for its query language."""
    return '"' + phrase.replace('"', "") + '"'


def _seconds(moment: datetime | None, otherwise: int) -> int:
    return otherwise if moment is None else int(moment.astimezone(UTC).timestamp())
