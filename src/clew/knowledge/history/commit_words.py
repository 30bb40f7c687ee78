"""Which commits a text is about, by the words of their messages: an FTS5 index beside the commits, kept in step with
them by the database itself."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from clew.knowledge.code.store import Sql
from clew.knowledge.history.wording import stems
from clew.knowledge.membership import telling_words
from clew.trail.text import STOP, split_text

CANDIDATES = 100
MOST_LOOKED_AT = 3_000
LEAST = 0.5
"""The share of a question's words that a commit has at least; rare words count more."""
MAX_WORDS = 24
IN_BODY = 0.8
"""What a word counts that stands in the body only."""
_SUBJECT_WEIGHT = 3.0

_INDEX = """
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
_OF_PAST = re.compile(
    r"\b(?:commit(?:s|ted)?|why|when (?:was|were|did)"
    r"|who (?:\w+ed|broke|wrote)|(?:what|which) (?:change|release|version|broke|fixed)\w*"
    r"|(?:was|were|been|got) (?:\w+ ){0,3}?\w+ed"
    r"|removed|dropped|reverted|introduced|deprecated|broke|broken|went wrong|regressions?|bisect|history|decided"
    r"|chosen|decisions?|before|previously|used to|in the past|changed|happened)\b",
    re.IGNORECASE,
)
MADE = ("added", "add", "adds", "introduced", "introduce", "implement", "implemented")
UNMADE = ("removed", "remove", "removes", "drop", "dropped", "delete", "deleted")
_ALIKE = (("broke", "broken", "breaks", "fix", "fixed", "regression", "revert", "crash"), MADE, UNMADE)
"""Words that messages of commits use for the same: one that a question has may stand for the others."""
_LIKE = {word: group for group in _ALIKE for word in group}
_PART = re.compile(r"[^\W_]+")
_ASKING_WORDS = (
    "commit commits committed history git change changed happened decided decision chose chosen choose picked wrote"
)
_ASKING = frozenset(_ASKING_WORDS.split())


def ensure_index(sql: Sql) -> None:
    """Make the index where there is none, also of commits that are there already."""
    is_there = sql.execute("SELECT 1 FROM sqlite_schema WHERE name = 'git_words'").fetchone()
    if is_there is None:
        sql.execute(_INDEX)
        sql.execute("INSERT INTO git_words(git_words) VALUES ('rebuild')")


def asks_of_past(text: str) -> bool:
    """Whether a question is about what was done: why, when, by which commit; or names a ticket or a commit."""
    return any(pattern.search(text) for pattern in (_OF_PAST, _TICKET, _SHA))


def named_commits(text: str) -> list[str]:
    """What may be names of commits in a text, in order."""
    return list(dict.fromkeys(_SHA.findall(text)))


def has_words(sql: Sql, text: str) -> bool:
    """Whether any commit has a word of a text."""
    query = _any_of(_words(text))
    found = (
        sql.execute("SELECT 1 FROM git_words WHERE git_words MATCH ? LIMIT 1", (query,)).fetchone() if query else None
    )
    return found is not None


def find_commits(sql: Sql, text: str, limit: int, since: int) -> list[tuple[int, float]]:
    """Numbers of the commits after a moment that a text is about, best first, each with how much of the text it has,
    from LEAST to 1."""
    words = _words(text)
    if not words:
        return []
    rows = sql.execute(
        "SELECT c.number, c.subject, c.body, -bm25(git_words, ?, 1.0) AS score FROM git_words"
        " JOIN git_commits c ON c.number = git_words.rowid WHERE git_words MATCH ? AND c.at >= ?"
        " ORDER BY score DESC LIMIT ?",
        (
            _SUBJECT_WEIGHT,
            _any_of([*([word for word in words if word not in _LIKE] or words), *_compounds(text)]),
            since,
            max(limit, CANDIDATES),
        ),
    ).fetchall()
    rarity = _rarity(sql, words)
    best = max((score for *_, score in rows), default=0.0) or 1.0
    found = [(number, _share(subject, body, rarity), score / best) for number, subject, body, score in rows]
    fitting = sorted((each for each in found if each[1] >= LEAST), key=lambda each: -(each[1] + each[2]))
    return [(number, round(min(1.0, share), 4)) for number, share, _ in fitting[:limit]]


def commits_on(sql: Sql, text: str, first: int, last: int) -> list[int]:
    """Numbers of all commits from a second to another, without that, that a text is about, newest first."""
    words = _words(text)
    if not words:
        return []
    rows = sql.execute(
        "SELECT c.number, c.subject, c.body FROM git_words JOIN git_commits c ON c.number = git_words.rowid"
        " WHERE git_words MATCH ? AND c.at >= ? AND c.at < ? ORDER BY c.at DESC LIMIT ?",
        (_any_of([*words, *_compounds(text)]), first, last, MOST_LOOKED_AT),
    ).fetchall()
    rarity = _rarity(sql, words)
    return [number for number, subject, body in rows if _share(subject, body, rarity) >= LEAST]


def _words(text: str) -> list[str]:
    """What to look for: tickets as a whole, and the other words that tell something."""
    tickets = [f"{found[1]} {found[2]}".lower() if found[1] else found[3] for found in _TICKET.finditer(text)]
    rest = _TICKET.sub(" ", text)
    words = [word for word in telling_words(rest) if word not in _ASKING | STOP] if rest.strip() else []
    return list(dict.fromkeys((*tickets, *words)))[:MAX_WORDS]


def _compounds(text: str) -> list[str]:
    """The names of a text as one word each, as the index has them."""
    return split_text(text).compounds[:MAX_WORDS]


def _any_of(words: Sequence[str]) -> str:
    """A question to FTS5; quoted, so that nothing in a word is taken for its language."""
    whole = [each for word in words for each in (*_LIKE.get(word, (word,)), *split_text(word).compounds)]
    return " OR ".join('"' + word.replace('"', "") + '"' for word in whole)


def _rarity(sql: Sql, words: Sequence[str]) -> dict[str, float]:
    total = sql.execute("SELECT count(*) FROM git_commits").fetchone()[0]
    found = {}
    for word in words:
        query = _any_of([word])
        having = sql.execute("SELECT count(*) FROM git_words WHERE git_words MATCH ?", (query,)).fetchone()[0]
        found[word] = math.log(1 + (total + 1) / (having + 0.5))
    return found


def _share(subject: str, body: str, rarity: dict[str, float]) -> float:
    """How much of the words is there, by how rare they are."""
    title, rest = _held(subject), _held(body)
    counted = sum(
        weight * (1.0 if _is_in(word, title) else IN_BODY if _is_in(word, rest) else 0.0)
        for word, weight in rarity.items()
    )
    return counted / (sum(rarity.values()) or 1.0)


def _held(text: str) -> tuple[frozenset[str], str]:
    return stems(text), f" {' '.join(_PART.findall(text.lower()))} "


def _is_in(word: str, held: tuple[frozenset[str], str]) -> bool:
    """A ticket by its letters, another word, or one that stands for it, by its stem."""
    known, plain = held
    if " " in word:
        return f" {word} " in plain
    return any(stem and stem <= known for stem in map(stems, _LIKE.get(word, (word,))))
