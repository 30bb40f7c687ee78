"""Answers kept by what was wanted and of what, so that the same question in other words is answered at once.

How long an answer holds depends on the intent: that of code until a file that it rests on changes, that of history
until something is added. An answer that nothing vouches for is not kept at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from clew.clock import Clock
from clew.knowledge.resolving.aspects import are_at_odds, aspect_of
from clew.knowledge.resolving.intents import TRUSTED, Classified, asking_words
from clew.knowledge.resolving.phrases import Intent, Target
from clew.knowledge.resolving.subjects import MAX_WORDS, subject_key, subject_words
from clew.llm.semantic_cache import SemanticCache
from clew.trail.store import Embedder

BULK = 100
"""When more files change at once, all answers about code are forgotten."""
SIMILAR_ENOUGH, ALMOST_THE_SAME = 0.80, 0.95
MAX_ENTRIES = 2_000

Kind = tuple[Target, Intent]

LIFETIMES: dict[Kind, timedelta | None] = {
    (Target.LIBRARIAN, Intent.LOCATE): None,
    (Target.LIBRARIAN, Intent.PATTERN): timedelta(minutes=60),
    (Target.LIBRARIAN, Intent.EXPLAIN): timedelta(minutes=30),
    (Target.LIBRARIAN, Intent.GENERAL): timedelta(minutes=15),
    (Target.ARCHIVALIST, Intent.HISTORICAL): timedelta(minutes=60),
    (Target.ARCHIVALIST, Intent.ACTIVITY): timedelta(minutes=5),
    (Target.ARCHIVALIST, Intent.OUTCOME): timedelta(minutes=30),
    (Target.ARCHIVALIST, Intent.SIMILAR): timedelta(minutes=30),
    (Target.ARCHIVALIST, Intent.RESUME): timedelta(minutes=2),
    (Target.ARCHIVALIST, Intent.GENERAL): timedelta(minutes=15),
    (Target.ACADEMIC, Intent.GENERAL): timedelta(hours=24),
}
"""None holds until a file changes."""
BY_MEANING = frozenset(
    {
        (Target.LIBRARIAN, Intent.GENERAL),
        (Target.ARCHIVALIST, Intent.SIMILAR),
        (Target.ARCHIVALIST, Intent.GENERAL),
        (Target.ACADEMIC, Intent.GENERAL),
    }
)
"""Kept by the meaning of the whole question: it has no subject that would do."""
THRESHOLDS: dict[Kind, float] = {
    kind: SIMILAR_ENOUGH if kind in BY_MEANING else ALMOST_THE_SAME
    for kind in LIFETIMES
    if kind in BY_MEANING or kind[0] is Target.ARCHIVALIST
}
"""How near in meaning a question must be to a kept one. Of history, what has a subject is found by it or, failing that,
by being all but the same."""


class Kept(msgspec.Struct, kw_only=True):
    """An answer with the question that it was given to and what it rests on: `files` by their hashes, a `version` of
    what it tells the state of."""

    question: str
    value: Any
    created_at: datetime
    expires_at: datetime | None
    files: Mapping[str, str] = {}
    session_id: str = ""
    version: str = ""
    is_complete: bool = True
    hit_count: int = 0


class CacheReport(msgspec.Struct, frozen=True, kw_only=True):
    """How often an answer was there."""

    size: int
    hits: int
    misses: int
    invalidated: int

    @property
    def hit_rate(self) -> float:
        asked = self.hits + self.misses
        return self.hits / asked if asked else 0.0


Key = tuple[str, str, str, str]


class IntentCache:
    """Answers of one process, found by intent and subject, or by meaning. For use from one thread."""

    def __init__(self, clock: Clock, embedder: Embedder | None = None) -> None:
        self._clock = clock
        self._kept: dict[Key, Kept] = {}
        self._similar: dict[Kind, SemanticCache] = {}
        if embedder is not None:
            self._similar = {
                kind: SemanticCache(embedder, clock, threshold=threshold, max_entries=MAX_ENTRIES)
                for kind, threshold in THRESHOLDS.items()
            }
        self._hits = self._misses = self._invalidated = 0

    def get(self, question: str, what: Classified, *, session_id: str = "", version: str = "") -> Kept | None:
        """The answer, where one is kept and still holds. A question that was not understood for sure has none."""
        found = self._find(question, what, session_id, version)
        if found is None:
            self._misses += 1
            return None
        self._hits += 1
        found.hit_count += 1
        return found

    def put(
        self,
        question: str,
        what: Classified,
        value: Any,
        *,
        files: Mapping[str, str] | None = None,
        session_id: str = "",
        version: str = "",
        is_complete: bool = True,
    ) -> None:
        """Keep an answer. `version` names the state that it tells of: another version is another answer."""
        kind = (what.target, what.intent)
        if kind not in LIFETIMES:
            return
        now, lifetime = self._clock.now(), LIFETIMES[kind] if is_complete else None
        kept = Kept(
            question=question,
            value=value,
            created_at=now,
            expires_at=now + lifetime if lifetime is not None else None,
            files=dict(files or {}),
            session_id=session_id,
            version=version,
            is_complete=is_complete,
        )
        if kind in self._similar:
            self._similar[kind].set(question, kept, ttl=lifetime)
        if kind in BY_MEANING:
            return
        self._kept.pop(key := _key(question, what, session_id), None)
        self._kept[key] = kept
        while len(self._kept) > MAX_ENTRIES:
            del self._kept[next(iter(self._kept))]

    def files_changed(self, changed: Iterable[str], added: Iterable[str] = ()) -> None:
        """Forget what rests on files that changed or are gone, and patterns of folders that got or lost a file; after
        many changes at once, all that is about code."""
        paths, new = set(changed), set(added)
        folders = {path.rpartition("/")[0] for path in paths | new}
        is_bulk = len(paths | new) > BULK
        stale = [
            key
            for key, kept in self._kept.items()
            if key[0] == Target.LIBRARIAN
            and (is_bulk or _rests_on(kept, paths) or (key[1] == Intent.PATTERN and _is_near(kept, folders, new)))
        ]
        self._forget(stale)
        self._drop_similar(paths, everything=is_bulk)

    def something_happened(self, session_id: str) -> None:
        """Forget the activity and the state of a session in which something was done."""
        wanted = (Intent.ACTIVITY, Intent.RESUME)
        self._forget([key for key, kept in self._kept.items() if key[1] in wanted and kept.session_id == session_id])
        for intent in wanted:
            if (similar := self._similar.get((Target.ARCHIVALIST, intent))) is not None:
                similar.clear()

    def outcome_updated(self, subject: str) -> None:
        """Forget how something that goes on turned out so far."""
        wanted = subject_key(subject)
        self._forget(
            [
                key
                for key, kept in self._kept.items()
                if key[1] == Intent.OUTCOME and key[2] == wanted and not kept.is_complete
            ]
        )

    def report(self) -> CacheReport:
        similar = sum(self._similar[kind].size for kind in BY_MEANING if kind in self._similar)
        return CacheReport(
            size=len(self._kept) + similar, hits=self._hits, misses=self._misses, invalidated=self._invalidated
        )

    def _find(self, question: str, what: Classified, session_id: str, version: str) -> Kept | None:
        kind = (what.target, what.intent)
        if kind not in BY_MEANING:
            if what.confidence < TRUSTED:
                return None
            found = self._alive(_key(question, what, session_id), version)
            if found is not None and not are_at_odds(question, found.question):
                return found
        hit = self._similar[kind].get(question) if kind in self._similar else None
        if hit is None or not are_about_the_same(question, hit.query, what.intent):
            return None
        kept: Kept = hit.value
        return kept if (kept.session_id, kept.version) == (session_id, version) else None

    def _alive(self, key: Key, version: str) -> Kept | None:
        kept = self._kept.get(key)
        if kept is None:
            return None
        is_over = kept.expires_at is not None and kept.expires_at <= self._clock.now()
        if is_over or kept.version != version:
            self._forget([key])
            return None
        return kept

    def _forget(self, keys: Iterable[Key]) -> None:
        for key in keys:
            del self._kept[key]
            self._invalidated += 1

    def _drop_similar(self, paths: set[str], *, everything: bool) -> None:
        similar = self._similar.get((Target.LIBRARIAN, Intent.GENERAL))
        for entry in similar.entries() if similar is not None else ():
            if everything or _rests_on(entry.value, paths):
                assert similar is not None
                similar.delete(entry.query)
                self._invalidated += 1


def are_about_the_same(one: str, other: str, intent: Intent) -> bool:
    """Whether two questions that ask for one intent are about the same and want the same of it; near in meaning is not
    enough: the same sentence about another thing is near."""
    return _wanted(one, intent) == _wanted(other, intent) and not are_at_odds(one, other)


def _wanted(text: str, intent: Intent) -> tuple[str, str]:
    words = subject_words(text, asking_words(text, intent))
    return subject_key("_".join(words)), aspect_of(text)


def _key(question: str, what: Classified, session_id: str) -> Key:
    """The subject as it was understood; all else that tells the question from others is read off its words. What a
    session is asked to go on with is its own, however that is asked."""
    of_session = what.intent in (Intent.ACTIVITY, Intent.RESUME)
    words = subject_words(question, asking_words(question, what.intent))
    aspect = "" if what.intent is Intent.RESUME else f"{aspect_of(question)}|{subject_key('_'.join(words[MAX_WORDS:]))}"
    return (
        what.target,
        what.intent,
        subject_key(what.subject),
        f"{what.time_scope}:{aspect}:{session_id if of_session else ''}",
    )


def _rests_on(kept: Kept, paths: set[str]) -> bool:
    return not paths.isdisjoint(kept.files)


def _is_near(kept: Kept, folders: set[str], new: set[str]) -> bool:
    return bool(new) and any(path.rpartition("/")[0] in folders for path in kept.files)
