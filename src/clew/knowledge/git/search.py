"""Full text over commit messages: an FTS5 index that triggers keep in step with the table of commits."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Protocol

from clew.knowledge.text import telling_words
from clew.trail.text import STOP, split_text

LEAST_SHARE = 0.5
"""The share of a question's words that a commit must have; rare words count more."""
MAX_WORDS = 24
IN_BODY = 0.8
"""The weight of a word that stands in the body only."""
COLUMNS = "c.number, c.sha, c.parents, c.at, c.author, c.subject, c.body, c.trailers"
_CANDIDATES = 100
_SUBJECT_WEIGHT = 3.0
_WORDS = """
CREATE VIRTUAL TABLE IF NOT EXISTS git_words USING fts5(
    subject, body, content='git_commits', content_rowid='number', tokenize='porter unicode61 remove_diacritics 2');
CREATE TRIGGER IF NOT EXISTS git_words_added AFTER INSERT ON git_commits BEGIN
    INSERT INTO git_words(rowid, subject, body) VALUES (new.number, new.subject, new.body);
END;
CREATE TRIGGER IF NOT EXISTS git_words_gone AFTER DELETE ON git_commits BEGIN
    INSERT INTO git_words(git_words, rowid, subject, body) VALUES ('delete', old.number, old.subject, old.body);
END;
"""
_TICKET = re.compile(r"(?<![\w-])([A-Za-z]{1,12})-(\d{1,9})(?![\w-])|(?<!\w)#(\d{1,9})\b")
_SHA = re.compile(r"(?<!\w)(?=[0-9a-f]*\d)[0-9a-f]{7,40}(?!\w)")
MADE = ("added", "add", "adds", "introduced", "introduce", "implement", "implemented")
UNMADE = ("removed", "remove", "removes", "drop", "dropped", "delete", "deleted")
_BROKEN = ("broke", "broken", "breaks", "fix", "fixed", "regression", "revert", "crash")
_SYNONYMS = {word: group for group in (_BROKEN, MADE, UNMADE) for word in group}
"""Words that commit messages use for the same thing."""
_ASKING_WORDS = (
    "commit commits committed history git change changed happened decided decision chose chosen choose picked wrote"
)
_ASKING = frozenset(_ASKING_WORDS.split())
"""Words of questions that say nothing of the subject."""


class Sql(Protocol):
    """A connection to SQLite."""

    def execute(self, sql: str, values: Any = ()) -> Any: ...

    def executemany(self, sql: str, values: Iterable[Any]) -> Any: ...


def ensure_index(sql: Sql) -> None:
    """Create the index if there is none, and fill it from the table."""
    if sql.execute("SELECT 1 FROM sqlite_schema WHERE name = 'git_words'").fetchone() is None:
        sql.execute(_WORDS)
        sql.execute("INSERT INTO git_words(git_words) VALUES ('rebuild')")


def named_commits(text: str) -> list[str]:
    """Possible names of commits in a text, in order."""
    return list(dict.fromkeys(_SHA.findall(text)))


def names_ticket(text: str) -> bool:
    """Whether a text names a ticket, such as `ABC-12` or `#12`."""
    return _TICKET.search(text) is not None


def has_words(sql: Sql, text: str) -> bool:
    """Whether any message has a word of a text."""
    query = " OR ".join(_queries(text).values())
    statement = "SELECT 1 FROM git_words WHERE git_words MATCH ? LIMIT 1"
    return bool(query) and sql.execute(statement, (query,)).fetchone() is not None


def numbers_about(sql: Sql, text: str) -> list[int]:
    """Numbers of the commits whose message has most of a text's words."""
    return [number for number, share in _shares(sql, text).items() if share >= LEAST_SHARE]


def search_rows(sql: Sql, text: str, limit: int, since: int) -> list[tuple[tuple[Any, ...], float]]:
    """Rows of the commits after a moment that a text is about, best first, with their shares from LEAST_SHARE to 1."""
    queries = _queries(text)
    if not queries:
        return []
    telling = [query for word, query in queries.items() if word not in _SYNONYMS] or list(queries.values())
    rows = sql.execute(
        f"SELECT {COLUMNS}, -bm25(git_words, ?, 1.0) AS score FROM git_words"
        " JOIN git_commits c ON c.number = git_words.rowid WHERE git_words MATCH ? AND c.at >= ?"
        " ORDER BY score DESC LIMIT ?",
        (_SUBJECT_WEIGHT, " OR ".join(telling), since, max(limit, _CANDIDATES)),
    ).fetchall()
    shares = _shares(sql, text)
    best = max((row[-1] for row in rows), default=0.0) or 1.0
    fitting = [row for row in rows if shares[row[0]] >= LEAST_SHARE]
    fitting.sort(key=lambda row: -(shares[row[0]] + row[-1] / best))
    return [(row[:-1], round(min(1.0, shares[row[0]]), 4)) for row in fitting[:limit]]


def quoted(phrase: str) -> str:
    """A phrase of FTS5: nothing in it is taken for its query language."""
    return '"' + phrase.replace('"', "") + '"'


def _shares(sql: Sql, text: str) -> dict[int, float]:
    """By the number of a commit, how much of a text's words its message has: rare words count more, and words of the
    body less than those of the subject."""
    [(total,)] = sql.execute("SELECT count(*) FROM git_commits").fetchall()
    found, weights = defaultdict[int, float](float), 0.0
    for query in _queries(text).values():
        anywhere, in_subject = _matching(sql, query), frozenset(_matching(sql, f"subject : ({query})"))
        weight = math.log(1 + (total + 1) / (len(anywhere) + 0.5))
        weights += weight
        for number in anywhere:
            found[number] += weight if number in in_subject else weight * IN_BODY
    return {number: weight / weights for number, weight in found.items()}


def _matching(sql: Sql, query: str) -> list[int]:
    return [number for (number,) in sql.execute("SELECT rowid FROM git_words WHERE git_words MATCH ?", (query,))]


def _queries(text: str) -> dict[str, str]:
    """For each word of a text the query for it, its synonyms, and the identifiers of the text that it is a part of: the
    index has an identifier as one word."""
    compounds = split_text(text).compounds[:MAX_WORDS]
    found = {}
    for word in _words(text):
        whole = [each for each in compounds if word in each]
        found[word] = " OR ".join(map(quoted, (*_SYNONYMS.get(word, (word,)), *whole)))
    return found


def _words(text: str) -> list[str]:
    """Search terms: tickets as a whole, and the other words that say something."""
    tickets = [f"{found[1]} {found[2]}".lower() if found[1] else found[3] for found in _TICKET.finditer(text)]
    rest = _TICKET.sub(" ", text)
    words = [word for word in telling_words(rest) if word not in _ASKING | STOP] if rest.strip() else []
    return list(dict.fromkeys((*tickets, *words)))[:MAX_WORDS]
