"""Full text over commit messages: an FTS5 index that triggers keep in step with the table of commits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from clew.knowledge.membership import telling_words
from clew.knowledge.text import stems
from clew.trail.text import STOP, split_text

LEAST_SHARE = 0.5
"""The share of a question's words that a commit must have; rare words count more."""
MAX_WORDS = 24
IN_BODY = 0.8
"""The weight of a word that stands in the body only."""
COLUMNS = "c.number, c.sha, c.parents, c.at, c.author, c.subject, c.body, c.trailers"
_CANDIDATES, _MOST_CANDIDATES = 100, 3_000
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
_PART = re.compile(r"[^\W_]+")
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
    query = _any_of(_words(text))
    return (
        bool(query)
        and sql.execute("SELECT 1 FROM git_words WHERE git_words MATCH ? LIMIT 1", (query,)).fetchone() is not None
    )


def numbers_about(sql: Sql, text: str, first: int, last: int) -> list[int]:
    words = _words(text)
    if not words:
        return []
    rows = sql.execute(
        "SELECT c.number, c.subject, c.body FROM git_words JOIN git_commits c ON c.number = git_words.rowid"
        " WHERE git_words MATCH ? AND c.at >= ? AND c.at < ? ORDER BY c.at DESC LIMIT ?",
        (_any_of([*words, *_compounds(text)]), first, last, _MOST_CANDIDATES),
    ).fetchall()
    rarity = _rarity(sql, words)
    return [number for number, subject, body in rows if _share(subject, body, rarity) >= LEAST_SHARE]


def search_rows(sql: Sql, text: str, limit: int, since: int) -> list[tuple[tuple[Any, ...], float]]:
    """Rows of the commits after a moment that a text is about, best first, with their shares from LEAST_SHARE to 1."""
    words = _words(text)
    if not words:
        return []
    query = _any_of([*([word for word in words if word not in _SYNONYMS] or words), *_compounds(text)])
    rows = sql.execute(
        f"SELECT {COLUMNS}, -bm25(git_words, ?, 1.0) AS score FROM git_words"
        " JOIN git_commits c ON c.number = git_words.rowid WHERE git_words MATCH ? AND c.at >= ?"
        " ORDER BY score DESC LIMIT ?",
        (_SUBJECT_WEIGHT, query, since, max(limit, _CANDIDATES)),
    ).fetchall()
    rarity = _rarity(sql, words)
    best = max((row[-1] for row in rows), default=0.0) or 1.0
    found = [(row, _share(row[5], row[6], rarity)) for row in rows]
    fitting = [each for each in found if each[1] >= LEAST_SHARE]
    fitting.sort(key=lambda each: -(each[1] + each[0][-1] / best))
    return [(row[:-1], round(min(1.0, share), 4)) for row, share in fitting[:limit]]


def _words(text: str) -> list[str]:
    """Search terms: tickets as a whole, and the other words that say something."""
    tickets = [f"{found[1]} {found[2]}".lower() if found[1] else found[3] for found in _TICKET.finditer(text)]
    rest = _TICKET.sub(" ", text)
    words = [word for word in telling_words(rest) if word not in _ASKING | STOP] if rest.strip() else []
    return list(dict.fromkeys((*tickets, *words)))[:MAX_WORDS]


def _compounds(text: str) -> list[str]:
    """Identifiers of a text as one word each, as the index has them."""
    return split_text(text).compounds[:MAX_WORDS]


def _any_of(words: Sequence[str]) -> str:
    whole = [each for word in words for each in (*_SYNONYMS.get(word, (word,)), *split_text(word).compounds)]
    return " OR ".join(map(quoted, whole))


def quoted(phrase: str) -> str:
    """A phrase of FTS5: nothing in it is taken for its query language."""
    return '"' + phrase.replace('"', "") + '"'


def _rarity(sql: Sql, words: Sequence[str]) -> dict[str, float]:
    total = sql.execute("SELECT count(*) FROM git_commits").fetchone()[0]
    found = {}
    for word in words:
        query = _any_of([word])
        having = sql.execute("SELECT count(*) FROM git_words WHERE git_words MATCH ?", (query,)).fetchone()[0]
        found[word] = math.log(1 + (total + 1) / (having + 0.5))
    return found


def _share(subject: str, body: str, rarity: dict[str, float]) -> float:
    """How much of the words a message has, weighted by rarity."""
    title, rest = _terms(subject), _terms(body)
    counted = sum(
        weight * (1.0 if _has(title, word) else IN_BODY if _has(rest, word) else 0.0) for word, weight in rarity.items()
    )
    return counted / (sum(rarity.values()) or 1.0)


def _terms(text: str) -> tuple[frozenset[str], str]:
    return stems(text), f" {' '.join(_PART.findall(text.lower()))} "


def _has(terms: tuple[frozenset[str], str], word: str) -> bool:
    """A ticket by its letters; another word, or a synonym, by its stem."""
    known, plain = terms
    if " " in word:
        return f" {word} " in plain
    return any(stem and stem <= known for stem in map(stems, _SYNONYMS.get(word, (word,))))
